"""Starts a language model from a finished one (`model.start_from`): its tokenizer and its weights.

    headwise train ptb-gpt --run runs/mine model.start_from=runs/general data.train=my/train.txt

`tasks/model_start.py` says what must agree and what may differ. n-grams are counted, not trained,
and start from nothing. Tested: the loss of the first step is that of the finished model; another
vocabulary, width, language and kind of model are refused.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from headwise.models.choices import DecoderOnlySettings
from headwise.models.ngram import NgramSettings
from headwise.tasks.bundle import TOKENIZER, WEIGHTS, open_bundle
from headwise.tasks.bundle_directory import find_bundle
from headwise.tasks.language.recipe import LanguageRecipe
from headwise.tasks.model_start import check_agreement, compare_weights, put_start, require_start
from headwise.text.choices import load_fitting_tokenizers
from headwise.text.tokenizer import Tokenizer

FREE = ("penalty.*",)
FREE_OF_TRANSFORMER = ("layers", "output_bias", "memory.*")
"""Settings that may differ (tasks/model_start.py)."""


@dataclass(frozen=True)
class LanguageStart:
    """A finished language model, as far as another training takes it over."""

    file: Path
    tokenizer: Tokenizer

    def put_into(self, model: nn.Module) -> None:
        put_start(model, self.file)

    def describe(self, model: nn.Module) -> str:
        """Which weights were taken over."""
        return compare_weights(model, self.file).describe(self.file)


def find_language_start(recipe: LanguageRecipe) -> LanguageStart | None:
    """The bundle that `model.start_from` names, checked against the recipe; None: none."""
    model = recipe.model
    if isinstance(model, NgramSettings) or model.start_from is None:
        return None
    require_start(model.start_from, noun=("language model", "语言模型"))
    path = find_bundle(model.start_from, recipe=LanguageRecipe.bundle_form.example)
    theirs = open_bundle(path, LanguageRecipe).recipe
    free = FREE_OF_TRANSFORMER if isinstance(model, DecoderOnlySettings) else FREE
    check_agreement(_sections(theirs), _sections(recipe), path, free=free)
    tokenizer = load_fitting_tokenizers(path / TOKENIZER, recipe.text).source
    return LanguageStart(path / WEIGHTS, tokenizer)


def _sections(recipe: LanguageRecipe) -> dict[str, Any]:
    """What must agree."""
    return {
        "data": {"language": recipe.data.language},
        "text": recipe.text.model_dump(mode="json"),
        "model": recipe.model.model_dump(mode="json"),
    }
