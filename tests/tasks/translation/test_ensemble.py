"""Ensembles of translators: of one model, of a Transformer and a recurrent network; what is
refused."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from headwise.decoding.rules.length_limit import limit_for
from headwise.errors import UsageError
from headwise.models.choices import build_model
from headwise.pocket import sentences
from headwise.randomness import torch_generator
from headwise.tasks.translation.bundle import TranslatorBundle, load_translator_bundle
from headwise.tasks.translation.evaluation import measure
from headwise.tasks.translation.evaluation_request import Measurement
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.tasks.translation.translator import Translator
from headwise.text.choices import WordSettings, learn_tokenizers
from tests.tasks.tiny import tiny_recipe, train_tiny

TEXTS = [one.text("en") for one in sentences("test", 5)]
RECURRENT = "model={kind: recurrent, cell: lstm, dim: 16, layers: 1, attention: {kind: luong}}"


@pytest.fixture(name="bundle", scope="module")
def _bundle(tiny_run: Path) -> TranslatorBundle:
    return load_translator_bundle(tiny_run)


def untrained(like: TranslatorBundle, recipe: TranslationRecipe) -> TranslatorBundle:
    """A model with random weights and the vocabulary of another one."""
    size = like.tokenizers.source.size
    generator = torch_generator("member")
    model = build_model(recipe.model, source_size=size, target_size=size, generator=generator)
    return TranslatorBundle(Path("other"), recipe, like.tokenizers, model, {})


def test_an_ensemble_of_one_model_translates_as_the_model(tiny_run: Path) -> None:
    alone, twice = Translator.load(tiny_run), Translator.ensemble([tiny_run, tiny_run])
    for change in (["kind=greedy"], ["kind=beam", "size=3"], ["kind=sampling", "seed=5"]):
        settings = alone.settings(change)
        ours, theirs = twice(TEXTS, settings), alone(TEXTS, settings)
        assert [one.text for one in ours] == [one.text for one in theirs]
        assert [one.score for one in ours] == pytest.approx([one.score for one in theirs], rel=1e-5)
    assert Translator.ensemble([tiny_run])(TEXTS)[0].text == alone(TEXTS)[0].text


def test_a_transformer_and_a_recurrent_network_translate_together(bundle: TranslatorBundle) -> None:
    other = untrained(bundle, tiny_recipe(RECURRENT))
    both = Translator.join([bundle, other])
    source, target = both.encode(TEXTS[0]), both.tokenizers.target.encode("Der Hund ist alt.")
    settings = both.settings(["kind=beam", "size=3", "coverage_penalty=0.1"])
    rows = [list(one.generator(settings).read([source], target)) for one in both.members[1:]]
    rows.append(list(Translator(bundle).generator(settings).read([source], target)))
    mean = [torch.stack([row.exp() for row in place]).mean(0) for place in zip(*rows, strict=True)]
    found = list(both.generator(settings).read([source], target))
    assert torch.stack(found).exp().sub(torch.stack(mean)).abs().max() < 1e-6
    made = both(TEXTS, settings, alignment=True, attention=True)
    assert len(made) == len(TEXTS)
    assert made[0].attention is not None


def test_a_member_is_the_baseline_of_its_ensemble(tiny_run: Path, tmp_path: Path) -> None:
    """The ensemble is measured, and its first member alone is compared with it."""
    train_tiny(tmp_path / "other", ["training.seed=2"])
    both = Translator.ensemble([tiny_run, tmp_path / "other"])
    alone = Translator.load(tiny_run)
    files = {"source": TEXTS, "reference": [one.text for one in alone(TEXTS)]}
    for name, lines in files.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    found = measure(
        Measurement(
            tmp_path / "reference",
            source=tmp_path / "source",
            model=tiny_run,
            others=(tmp_path / "other",),
            against=tiny_run,
            output=tmp_path / "output",
        )
    )
    written = (tmp_path / "output").read_text(encoding="utf-8").splitlines()
    assert written == [one.text for one in both(TEXTS)] != files["reference"]
    assert found.comparisons[0].baseline == pytest.approx(100)
    assert found.comparisons[0].system == pytest.approx(found.scores.bleu.value) != 100


def test_a_sentence_is_as_long_as_every_member_allows(bundle: TranslatorBundle) -> None:
    short = untrained(bundle, tiny_recipe("model.position={kind: learned, max_length: 280}"))
    both = Translator.join([bundle, short])
    assert Translator(bundle).longest_source.tokens > 280
    assert both.longest_source.tokens == 280
    limits = [
        limit_for(one.within_positions(one.settings(["max_length=400"])).max_length, 7)
        for one in (Translator(bundle), both)
    ]
    assert limits[0] > limits[1] == 279


def test_what_cannot_be_a_member_is_refused(bundle: TranslatorBundle) -> None:
    turned = replace(bundle, recipe=tiny_recipe("data.source=zh", "data.target=en"))
    with pytest.raises(UsageError, match=r"translates zh → en, and .* en → de; an ensemble needs"):
        Translator.join([bundle, turned])
    parallel = untrained(bundle, tiny_recipe("model.kind=parallel", "decoding={kind: one_pass}"))
    with pytest.raises(UsageError, match="other is a parallel model, and an ensemble averages"):
        Translator.join([bundle, parallel])
    order = replace(bundle, recipe=tiny_recipe("data.target_order=reversed"))
    with pytest.raises(UsageError, match=r"data\.target_order=reversed, and .* with written"):
        Translator.join([bundle, order])
    words = learn_tokenizers(WordSettings(size=500, shared=True), TEXTS, TEXTS)
    foreign = replace(bundle, directory=Path("foreign"), tokenizers=words)
    with pytest.raises(UsageError, match=r"foreign has another vocabulary than .*; train its"):
        Translator.join([bundle, foreign])
    with pytest.raises(UsageError, match="an ensemble is made of several models, and no list"):
        Translator.ensemble("runs/a")
    drafted = Translator.join([bundle, bundle])
    with pytest.raises(UsageError, match=r"decoding\.kind=drafted needs a model that scores"):
        drafted(TEXTS, drafted.settings(["kind=drafted"]))
