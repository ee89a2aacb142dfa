"""Language models over a translator's tokens: what they say, in which search, and what is
refused."""

from pathlib import Path

import numpy as np
import pytest

from headwise.errors import CheckpointError, DataError, UsageError
from headwise.exporting.export import export_arpa
from headwise.pocket import sentences
from headwise.tasks.language.language_model import LanguageModel
from headwise.tasks.language.recipe import LanguageRecipe
from headwise.tasks.language.taken_tokenizer import find_tokenizer
from headwise.tasks.recipe import load_recipe
from headwise.tasks.run import train
from headwise.tasks.translation.fused_language_model import check_fused, load_fused
from headwise.tasks.translation.judge import have_same_pieces
from headwise.tasks.translation.translator import Translator
from headwise.text.tokenizer import EOS
from headwise.text.tokenizer_pair import TokenizerPair
from tests.tasks.tiny import train_tiny
from tests.tasks.translation.test_parallel_recipes import CTC, GRAPH

TEXTS = [one.text("de") for one in sentences("test", 5)]
SIZE = "text={kind: sentencepiece, size: 500, byte_fallback: false, coverage: 1.0}"
DATA = "data={language: de, train: {kind: pocket, count: 200}, valid: null, test: null}"
NETWORK = (
    "model={kind: recurrent, dim: 8, hidden: 8, layers: 1}",
    "training={steps: 2, batch_tokens: 256, precision: fp32, compile: 'off'}",
)


def train_language(run: Path, *overrides: str) -> Path:
    train("ptb-ngram", run=run, overrides=[DATA, SIZE, *overrides])
    return run


@pytest.fixture(name="ctc", scope="module")
def _ctc(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    return Translator.load(Path(_train(tmp_path_factory, *CTC)))


@pytest.fixture(name="graph", scope="module")
def _graph(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    return Translator.load(Path(_train(tmp_path_factory, *GRAPH)))


def _train(factory: pytest.TempPathFactory, *overrides: str) -> Path:
    run = factory.mktemp("translator") / "run"
    train_tiny(run, overrides)
    return run


@pytest.fixture(name="pieces", scope="module")
def _pieces(ctc: Translator, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("pieces") / "run"
    return train_language(run, f"tokenizer={ctc.bundle.directory}")


def test_a_taken_tokenizer_gives_the_same_numbers(ctc: Translator, pieces: Path) -> None:
    own, target = LanguageModel.load(pieces).tokenizer, ctc.tokenizers.target
    assert have_same_pieces(own, target)
    assert own.encode_batch(TEXTS) == target.encode_batch(TEXTS)


def test_of_a_translator_it_is_that_of_the_target(tmp_path: Path) -> None:
    apart = SIZE.replace("size: 500", "size: 300, shared: false")
    train_tiny(tmp_path / "run", [apart, "model.embedding.tied=output", "training.steps=2"])
    target = Translator.load(tmp_path / "run").tokenizers.target
    recipe = load_recipe("ptb-ngram", [DATA, apart, f"tokenizer={tmp_path / 'run'}"])
    assert isinstance(recipe, LanguageRecipe)
    found = find_tokenizer(recipe)
    assert found is not None
    assert have_same_pieces(found, target)


def test_rows_add_up_to_what_the_model_says_of_whole_sentences(
    ctc: Translator, pieces: Path, tmp_path: Path
) -> None:
    """An n-gram model, the same as an ARPA file, and a network."""
    target = ctc.tokenizers.target
    arpa = export_arpa(pieces, tmp_path / "pieces.arpa.gz")
    network = train_language(tmp_path / "network", f"tokenizer={ctc.bundle.directory}", *NETWORK)
    for path in (pieces, arpa, network):
        fused = load_fused(str(path), target)
        encoded = target.encode_batch(TEXTS)
        expected = LanguageModel.load(pieces if path == arpa else path).model.score(encoded)
        for sentence, scores in zip(encoded, expected, strict=True):
            whole = (*sentence, EOS)
            rows = fused.score_next([whole[:i] for i in range(len(whole))], whole)
            said = [row[place] for place, row in enumerate(rows)]
            np.testing.assert_allclose(said, scores, rtol=2e-4, atol=2e-4)


def test_an_arpa_file_may_list_the_tokens_in_another_order(
    ctc: Translator, pieces: Path, tmp_path: Path
) -> None:
    target = ctc.tokenizers.target
    plain = export_arpa(pieces, tmp_path / "plain.arpa")
    head, one, rest = plain.read_text("utf-8").partition("\\1-grams:\n")
    words, two, others = rest.partition("\n\n")
    backwards = "\n".join(reversed(words.split("\n")))
    shuffled = tmp_path / "shuffled.arpa"
    shuffled.write_text(head + one + backwards + two + others, "utf-8")
    ids = tuple(target.encode(TEXTS[0]))
    asked = [ids[:i] for i in range(len(ids))], range(4, target.size)
    expected = load_fused(str(plain), target).score_next(*asked)
    found = load_fused(str(shuffled), target)
    np.testing.assert_allclose(found.score_next(*asked), expected, rtol=1e-5)


@pytest.mark.parametrize("kind", ["ctc_beam", "graph_beam"])
@pytest.mark.parametrize("weight", [0.5, 3.0])
def test_a_search_orders_sentences_by_the_fused_score(
    kind: str, weight: float, ctc: Translator, graph: Translator, pieces: Path
) -> None:
    translator = ctc if kind == "ctc_beam" else graph
    given = [f"language_model={pieces}", f"language_weight={weight}", "token_bonus=7"]
    settings = translator.settings(
        [f"kind={kind}", "size=20", "num_best=9", "max_length=512", *given]
        + ["length_exponent=0.5"] * (kind == "graph_beam")
    )
    language = LanguageModel.load(pieces).model
    sources = [translator.encode(one.text("en")) for one in sentences("test", 3)]
    results = translator.generator(settings).generate(sources, settings)
    longest = 0
    for result in results:
        scores = [one.score for one in result.hypotheses]
        assert scores == sorted(scores, reverse=True)
        for one in result.hypotheses:
            total = weight * float(language.score([one.tokens])[0].sum()) + one.log_probability
            # A graph also counts the two marks around the text.
            length = len(one.tokens) + 2 * (kind == "graph_beam")
            divisor = 1 if kind == "ctc_beam" else length**0.5
            assert one.score == pytest.approx((total + 7 * length) / divisor, rel=1e-4, abs=1e-4)
            longest = max(longest, len(one.tokens))
    assert longest > 0
    (alone,) = translator.generator(settings).generate(sources[:1], settings)
    assert alone.best.tokens == results[0].best.tokens


def test_a_validation_does_without_it(ctc: Translator, pieces: Path) -> None:
    settings = ctc.settings(["kind=ctc_beam", "token_bonus=2", f"language_model={pieces}"])
    assert settings.unaided == ctc.settings(["kind=ctc_beam"])
    alone = ctc.settings(["kind=ctc_beam", "token_bonus=2"])
    assert alone.unaided == alone


def test_other_units_are_refused(ctc: Translator, pieces: Path, tmp_path: Path) -> None:
    target = ctc.tokenizers.target
    words = train_language(tmp_path / "words", "text={kind: words}")
    with pytest.raises(UsageError, match=r"another vocabulary than the target .* number 4 is"):
        load_fused(str(words), target)
    arpa = export_arpa(words, tmp_path / "words.arpa")
    with pytest.raises(UsageError, match=r"lacks \d+ of the translator's 500 tokens"):
        load_fused(str(arpa), target)
    letters = train_language(tmp_path / "letters", "text={kind: characters}")
    tokenizer = LanguageModel.load(letters).tokenizer
    characters = export_arpa(letters, tmp_path / "letters.arpa")
    load_fused(str(characters), TokenizerPair(tokenizer, tokenizer, shared=True).target)


def test_what_gives_no_probabilities_is_refused(ctc: Translator, tmp_path: Path) -> None:
    for kind in ("maximum_likelihood", "stupid_backoff"):
        run = train_language(
            tmp_path / kind,
            f"tokenizer={ctc.bundle.directory}",
            f"model={{kind: ngram, order: 2, smoothing: {{kind: {kind}}}}}",
        )
        with pytest.raises(UsageError, match="no probability that could be added"):
            load_fused(str(run), ctc.tokenizers.target)


def test_what_is_no_language_model_is_refused(ctc: Translator, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"as decoding\.language_model, but does not exist"):
        check_fused(str(tmp_path / "nothing"))
    with pytest.raises(CheckpointError, match=r"but is a translator, a language model is needed"):
        check_fused(str(ctc.bundle.directory))
    with pytest.raises(DataError, match=r"there is no nothing\.arpa"):
        check_fused(str(tmp_path / "nothing.arpa"))


def test_another_text_section_is_refused(ctc: Translator, tmp_path: Path) -> None:
    given = f"tokenizer={ctc.bundle.directory}"
    message = r"another text section \(.*text\.size=500 there, 400 here\)"
    with pytest.raises(CheckpointError, match=message):
        train_language(tmp_path / "run", SIZE.replace("500", "400"), given)
    with pytest.raises(CheckpointError, match="is given as tokenizer, but does not exist"):
        train_language(tmp_path / "run", f"tokenizer={tmp_path / 'nothing'}")
    assert not (tmp_path / "run" / "model").exists()


def test_a_recipe_with_another_vocabulary_is_refused_before_training(
    pieces: Path, tmp_path: Path
) -> None:
    fused = f"decoding={{kind: ctc_beam, language_model: {pieces}}}"
    other = SIZE.replace("500", "450")
    with pytest.raises(UsageError, match="has another vocabulary than the target"):
        train_tiny(tmp_path / "run", [*CTC, fused, other])
