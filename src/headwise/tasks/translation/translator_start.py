"""Starts a translator from a finished one (`model.start_from`): its tokenizers and its weights.

    headwise train my.yaml --run runs/with-heads model.start_from=runs/mine \\
        model.draft_heads.count=4 "training.freeze=['not draft_heads.*']"
    headwise train my.yaml --run runs/tuned model.start_from=runs/ctc training.objective.kind=ngrams

`tasks/model_start.py` says what must agree and what may differ. The tokenizers are those of the
bundle, so the data may be other text of the same languages: `adaptation.py` makes a recipe for
that.

Tested: weights and translations are equal after starting; another vocabulary, another width,
another language and another kind of model are refused; more and fewer layers are listed.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from headwise.data.pairs.preparation import GivenTokenizers
from headwise.models.transformer_settings import TransformerSettings
from headwise.tasks.bundle import TOKENIZER, WEIGHTS, open_bundle
from headwise.tasks.bundle_directory import find_bundle
from headwise.tasks.model_start import (
    check_agreement,
    compare_weights,
    digest_of,
    put_start,
    require_start,
)
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.text.choices import load_fitting_tokenizers

FREE = (
    "draft_heads.*",
    "draft_decoder.*",
    "reward_baseline",
    "encoder.layers",
    "decoder.layers",
    "output_bias",
)
"""Settings that may differ (tasks/model_start.py)."""


@dataclass(frozen=True)
class TranslatorStart:
    """A finished translator, as far as another training takes it over."""

    file: Path
    tokenizers: GivenTokenizers

    def put_into(self, model: nn.Module) -> None:
        put_start(model, self.file)

    def describe(self, model: nn.Module) -> str:
        """Which weights were taken over."""
        return compare_weights(model, self.file).describe(self.file)


def find_translator_start(recipe: TranslationRecipe) -> TranslatorStart | None:
    """The bundle that `model.start_from` names, checked against the recipe; None: none."""
    model = recipe.model
    if not isinstance(model, TransformerSettings) or model.start_from is None:
        return None
    require_start(model.start_from, noun=("translator", "翻译模型"))
    path = find_bundle(model.start_from, recipe="pocket")
    theirs = open_bundle(path, TranslationRecipe).recipe
    check_agreement(_sections(theirs), _sections(recipe), path, free=FREE)
    folder = path / TOKENIZER
    pair = load_fitting_tokenizers(folder, recipe.text)
    return TranslatorStart(path / WEIGHTS, GivenTokenizers(pair, digest_of(folder)))


def _sections(recipe: TranslationRecipe) -> dict[str, Any]:
    """What must agree."""
    return {
        "data": {
            "source": recipe.data.source,
            "target": recipe.data.target,
            "directions": list(recipe.data.directions),
        },
        "text": recipe.text.model_dump(mode="json"),
        "model": recipe.model.model_dump(mode="json"),
    }
