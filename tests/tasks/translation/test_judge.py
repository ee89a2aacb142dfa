"""A judge against a search that reads the same targets; other vocabularies; what is refused."""

from pathlib import Path

import pytest
import torch

from headwise.errors import CheckpointError, DataError, UsageError
from headwise.pocket import sentences
from headwise.tasks.bundle import save_tokenizers, write_bundle
from headwise.tasks.run import train
from headwise.tasks.translation.bundle import load_translator_bundle
from headwise.tasks.translation.judge import TranslatorJudge, check_judge, load_judge
from headwise.tasks.translation.translator import Translator
from headwise.text.choices import WordSettings, learn_tokenizers
from headwise.weights import weights_of
from tests.tasks.tiny import tiny_recipe

PAIRS = [(one.text("en"), one.text("de")) for one in sentences("test", 7)]
CPU = torch.device("cpu")


@pytest.fixture(name="judge", scope="module")
def _judge(tiny_run: Path) -> TranslatorJudge:
    bundle = load_translator_bundle(tiny_run)
    return load_judge(str(tiny_run), bundle.recipe, bundle.tokenizers, device=CPU)


def read_one_by_one(translator: Translator, source: list[int], target: list[int]) -> float:
    """The sum of what a search says of each token and of the end."""
    rows = translator.generator(translator.recipe.decoding).read([source], target)
    return sum(float(row[0, token]) for row, token in zip(rows, [*target, 2], strict=True))


def test_a_judge_says_what_a_search_reads(judge: TranslatorJudge, translator: Translator) -> None:
    sources = [translator.tokenizers.source.encode(source) for source, _ in PAIRS]
    targets = [translator.tokenizers.target.encode(target) for _, target in PAIRS]
    targets[3] = []
    found = judge.log_probabilities(sources, targets)
    for value, source, target in zip(found, sources, targets, strict=True):
        expected = read_one_by_one(translator, source, target)
        assert value == pytest.approx(expected, rel=1e-4)
    assert judge.log_probabilities(sources[2:3], targets[2:3]) == pytest.approx(found[2:3])


def test_tokens_of_another_vocabulary_are_encoded_again(
    judge: TranslatorJudge, translator: Translator
) -> None:
    words = learn_tokenizers(
        WordSettings(), (source for source, _ in PAIRS), (target for _, target in PAIRS)
    )
    other = TranslatorJudge(judge.model, judge.recipe, judge.own, words)
    assert judge.shares_source
    assert not other.shares_target
    found = other.log_probabilities(
        [words.source.encode(source) for source, _ in PAIRS],
        [words.target.encode(target) for _, target in PAIRS],
    )
    own = translator.tokenizers
    expected = judge.log_probabilities(
        [own.source.encode(words.source.decode(words.source.encode(one))) for one, _ in PAIRS],
        [own.target.encode(words.target.decode(words.target.encode(one))) for _, one in PAIRS],
    )
    assert found == pytest.approx(expected)


def test_no_judge_is_at_the_path(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"is given as decoding\.judge, but does not exist"):
        check_judge(str(tmp_path / "nothing"), tiny_recipe())


def test_a_model_of_another_task_cannot_judge(tmp_path: Path) -> None:
    recipe = "ptb-ngram"
    overrides = ["data={language: en, train: {kind: pocket, count: 40}}"]
    train(recipe, run=tmp_path / "run", overrides=[*overrides, "data.valid=null", "data.test=null"])
    with pytest.raises(CheckpointError, match=r"decoding\.judge, but is .* a translator is needed"):
        check_judge(str(tmp_path / "run"), tiny_recipe())


def test_a_judge_of_other_languages_is_refused(tiny_run: Path) -> None:
    with pytest.raises(UsageError, match=r"translates en → de, but zh → en is to be judged"):
        check_judge(str(tiny_run), tiny_recipe("data.source=zh", "data.target=en"))


def test_a_parallel_model_is_refused(tiny_run: Path, tmp_path: Path) -> None:
    bundle = load_translator_bundle(tiny_run)
    recipe = tiny_recipe("model.kind=parallel", "decoding={kind: one_pass}")
    write_bundle(
        tmp_path / "model",
        form=recipe.bundle_form,
        recipe=recipe,
        weights=weights_of(bundle.model),
        results={},
        card="",
        write_parts=lambda folder: save_tokenizers(bundle.tokenizers, folder),
    )
    with pytest.raises(UsageError, match="is a parallel model, which cannot judge"):
        check_judge(str(tmp_path / "model"), recipe)


def test_a_sentence_too_long_for_the_judge_is_refused(judge: TranslatorJudge) -> None:
    with pytest.raises(DataError, match=r"of 3,000 tokens is to be judged, .* reads at most 2,048"):
        judge.log_probabilities([[5] * 2999], [[5]])
