"""Draft and verify through a translator: greedy's output, alone, in batches and with every rule."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from headwise.decoding.choices import make_generator
from headwise.decoding.drafting import generator as module
from headwise.decoding.rules.constraints import SentenceRules
from headwise.errors import CheckpointError, SettingsError, UsageError
from headwise.models.choices import build_model
from headwise.models.encoder_decoder import EncoderDecoder
from headwise.pocket import sentences
from headwise.randomness import torch_generator
from headwise.serving.api.decoding_options import choose_settings
from headwise.settings import apply_overrides
from headwise.tasks.run import train
from headwise.tasks.translation.draft_heads_loss import later_targets
from headwise.tasks.translation.drafting_speed import DraftingSpeed
from headwise.tasks.translation.translator import Translator
from headwise.tasks.translation.translator_start import find_translator_start
from headwise.weights import read_tensors, weights_of
from tests.decoding.drafting.fakes import KnowingDrafter, RandomDrafter
from tests.tasks.tiny import tiny_recipe, train_tiny

HEADS = ("model.draft_heads={count: 3, hidden: 5}", "training.freeze=['not draft_heads.*']")
DECODER = ("model.draft_decoder={layers: 1, block: 3}", "training.freeze=['not draft_decoder.*']")
DRAFTERS = ("jacobi", "ngram", "heads", "parallel", "random", "knowing")
OWN = ("jacobi", "ngram", "heads", "parallel")
EOS = 2


@pytest.fixture(scope="module", name="with_heads")
def _with_heads(tiny_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny translator with heads and a draft decoder, added one after the other and trained
    for six steps each."""
    folder = tmp_path_factory.mktemp("drafting")
    train_tiny(folder / "heads", [f"model.start_from={tiny_run}", *HEADS])
    both = [f"model.start_from={folder / 'heads'}", HEADS[0], *DECODER]
    train_tiny(folder / "both", both)
    return folder / "both"


@pytest.fixture(scope="module", name="drafting")
def _drafting(with_heads: Path) -> Translator:
    return Translator.load(with_heads)


def sources_of(translator: Translator, count: int) -> list[list[int]]:
    return [translator.encode(one.text("en")) for one in sentences("train", count)]


def check_equal(
    translator: Translator,
    count: int,
    drafter: str,
    monkeypatch: pytest.MonkeyPatch,
    changes: Sequence[str] = ("max_length=23",),
) -> None:
    """Greedy search and drafts, token for token, in batches of 32."""
    sources = sources_of(translator, count)
    greedy = translator.settings(["kind=greedy", *changes])
    kind = drafter if drafter in OWN else "jacobi"
    drafted = translator.settings(["kind=drafted", f"drafter.kind={kind}", "block=3", *changes])
    for begin in range(0, count, 32):
        batch = sources[begin : begin + 32]
        rules = SentenceRules()
        expected = make_generator(greedy, translator.offer).generate(batch, greedy, rules)
        outputs = [[*one.best.tokens, *[EOS] * one.best.finished] for one in expected]
        made: Any = {
            "random": RandomDrafter(translator.tokenizers.target.size),
            "knowing": KnowingDrafter(outputs),
        }
        if drafter in made:
            monkeypatch.setattr(module, "make_drafter", partial(lambda one, *_: one, made[drafter]))
        found = make_generator(drafted, translator.offer).generate(batch, drafted, rules)
        for one, other, output in zip(found, expected, outputs, strict=True):
            assert one.best.tokens == other.best.tokens
            assert one.best.finished == other.best.finished
            assert one.best.log_probability == pytest.approx(other.best.log_probability, abs=1e-4)
            if drafter == "knowing":
                assert one.num_steps == -(-len(output) // 4)


@pytest.mark.parametrize("drafter", DRAFTERS)
def test_a_hundred_sentences_equal_greedy_search(
    drafter: str, drafting: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_equal(drafting, 100, drafter, monkeypatch)


@pytest.mark.prove
@pytest.mark.parametrize("drafter", DRAFTERS)
def test_a_thousand_sentences_equal_greedy_search(
    drafter: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = tmp_path_factory.getbasetemp() / "proved"
    if not base.exists():
        longer = ["training.steps=150", "model.dim=32", "data.train.count=3000"]
        train_tiny(base, [*longer, "model.draft_heads.count=3", DECODER[0]])
    check_equal(Translator.load(base), 1000, drafter, monkeypatch, ("max_length=40",))


@pytest.mark.parametrize(
    "changes",
    [
        ("forbidden=['der', 'n']", "max_length=11"),
        ("prefix=Der", "min_length=5", "max_length=13"),
        ("no_repeat_ngrams=2", "at_limit=end", "allow_unknown=false", "max_length=9"),
    ],
)
@pytest.mark.parametrize("drafter", ["heads", "parallel"])
def test_rules_are_those_of_greedy_search(
    changes: Sequence[str], drafter: str, drafting: Translator
) -> None:
    texts = [one.text("en") for one in sentences("train", 7)]
    greedy = drafting(texts, drafting.settings(["kind=greedy", *changes]))
    words = ["kind=drafted", f"drafter.kind={drafter}", "block=3"]
    drafted = drafting(texts, drafting.settings([*words, *changes]))
    assert [one.text for one in drafted] == [one.text for one in greedy]


def test_heads_are_added_and_the_model_writes_what_it_wrote(
    tiny_run: Path, with_heads: Path, translator: Translator, drafting: Translator
) -> None:
    before, after = (
        read_tensors(run / "model/weights.safetensors") for run in (tiny_run, with_heads)
    )
    assert {name for name in after if name not in before} == {
        name for name in after if name.startswith(("draft_heads.", "draft_decoder."))
    }
    assert all(torch.equal(after[name], before[name]) for name in before)
    assert after["draft_heads.narrowing"].ne(0).any()
    assert after["draft_decoder.unknown"].ne(0).any()
    text = ["The animal is tired."]
    assert drafting(text)[0].text == translator(text)[0].text


def test_a_translator_goes_on_from_another_one(with_heads: Path, tmp_path: Path) -> None:
    """All weights may learn; heads of the same form are taken over, others begin anew."""
    for count, is_kept in ((3, True), (2, False)):
        heads = f"model.draft_heads={{count: {count}, hidden: 5}}"
        recipe = tiny_recipe(f"model.start_from={with_heads}", heads, DECODER[0])
        start = find_translator_start(recipe)
        assert start is not None
        size = start.tokenizers.pair.source.size
        model = build_model(
            recipe.model, source_size=size, target_size=size, generator=torch_generator("new")
        )
        start.put_into(model)
        assert isinstance(model, EncoderDecoder)
        assert bool(weights_of(model)["draft_heads.narrowing"].ne(0).any()) == is_kept
        assert bool(weights_of(model)["draft_decoder.unknown"].ne(0).any())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("model.dim=24", r"another vocabulary or another model \(model.dim=16 there, 24 here\)"),
        ("text.size=400", r"text.size=500 there, 400 here"),
        ("data.target=zh", r"data.target=de there, zh here"),
    ],
)
def test_a_start_that_does_not_fit_is_refused(
    change: str, message: str, tiny_run: Path, tmp_path: Path
) -> None:
    with pytest.raises(CheckpointError, match=message):
        train(tiny_recipe(f"model.start_from={tiny_run}", change), run=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_start_that_is_not_there(tmp_path: Path) -> None:
    recipe = tiny_recipe(f"model.start_from={tmp_path / 'nothing'}")
    with pytest.raises(CheckpointError, match="nothing is there; train the translator first"):
        train(recipe, run=tmp_path / "run")


def test_heads_learn_what_comes_later() -> None:
    target = torch.tensor([[5, 6, 7, 2, 8, 2, 0, 0]])
    segment = torch.tensor([[1, 1, 1, 1, 2, 2, 0, 0]])
    assert later_targets(target, segment, 3)[:, 0].tolist() == [
        [6, 7, 2, 0, 2, 0, 0, 0],
        [7, 2, 0, 0, 0, 0, 0, 0],
        [2, 0, 0, 0, 0, 0, 0, 0],
    ]


def test_what_does_not_fit_is_said_before_anything_is_made() -> None:
    drafted = "decoding={kind: drafted, drafter: {kind: heads}, block: 4}"
    with pytest.raises(SettingsError, match=r"block is 4 .* but model.draft_heads.count is 3"):
        tiny_recipe(drafted, "model.draft_heads.count=3")
    parallel = drafted.replace("heads", "parallel")
    with pytest.raises(SettingsError, match=r"block is 4 .* model.draft_decoder guesses 0 tokens"):
        tiny_recipe(parallel)
    with pytest.raises(SettingsError, match=r"model.draft_decoder guesses 3 tokens at once"):
        tiny_recipe(parallel, DECODER[0])
    with pytest.raises(SettingsError, match="block"):
        tiny_recipe("decoding={kind: drafted, block: 0}")
    with pytest.raises(SettingsError, match=r"model.kind=recurrent reads them one by one"):
        tiny_recipe(
            "decoding={kind: drafted}",
            "model={kind: recurrent, dim: 16, layers: 1}",
        )


def test_a_model_that_cannot_verify_is_refused(translator: Translator) -> None:
    class Plain:
        def stepper(self, *, attending: bool) -> object:
            return object()

    settings = translator.settings(["kind=drafted"])
    generator = make_generator(settings, Plain())
    with pytest.raises(UsageError, match="scores several tokens in one pass, and this one cannot"):
        generator.generate([[4]], settings, SentenceRules())
    heads = translator.settings(["kind=drafted", "drafter.kind=heads"])
    with pytest.raises(UsageError, match="a model without draft heads"):
        translator(["The dog."], heads)
    parallel = translator.settings(["kind=drafted", "drafter.kind=parallel"])
    with pytest.raises(UsageError, match="a model without a draft decoder"):
        translator(["The dog."], parallel)


def test_a_block_longer_than_what_was_learnt_is_refused(drafting: Translator) -> None:
    longer = drafting.settings(["kind=drafted", "drafter.kind=parallel", "block=4"])
    with pytest.raises(UsageError, match="draft decoder has learnt to guess 3 tokens at once"):
        drafting(["The dog."], longer)


def test_other_searches_take_the_place_of_drafts() -> None:
    """A recipe that decodes by drafts still gives several candidates, by beam search."""
    recipe = tiny_recipe("decoding={kind: drafted, drafter: {kind: ngram}, block: 3}")
    changed = apply_overrides(recipe.decoding.model_dump(mode="json"), ["kind=beam", "num_best=3"])
    assert changed["kind"] == "beam"
    assert "block" not in changed
    assert recipe.decoding.with_num_results(2, may_widen=True) is None
    assert choose_settings(recipe.decoding, None, n_best=3).kind == "beam"


def test_tokens_per_step_are_counted(drafting: Translator, translator: Translator) -> None:
    drafted = drafting.settings(["kind=drafted", "max_length=9"])
    result = drafting(["The animal is tired.", "", "It rains."], drafted)
    speeds = [one.speed for one in result]
    assert speeds[1] is None
    total = DraftingSpeed.sum_of(speeds)
    assert total is not None
    assert total.num_tokens >= total.num_steps > 0
    assert result[0].as_dict()["tokens_per_step"] == pytest.approx(
        speeds[0].tokens_per_step, abs=1e-3
    )
    assert "tokens_per_step" not in translator(["It rains."])[0].as_dict()
    assert DraftingSpeed.sum_of([None]) is None
