"""Starts a translator from a finished one (`model.start_from`): its tokenizers and its weights.

    headwise train my.yaml --run runs/with-heads model.start_from=runs/mine \\
        model.draft_heads.count=4 "training.freeze=['not draft_heads.*']"
    headwise train my.yaml --run runs/tuned model.start_from=runs/ctc training.objective.kind=ngrams

Every weight is taken over; only draft heads or a draft decoder may be new. Weights are useless with
another vocabulary or another shape, so both recipes must have the same text section and the same
model settings, except dropout and the drafters; an error names each difference. The tokenizers are
those of the
bundle, so the data may be other text of the same languages.

Tested: weights and translations are equal after starting; another vocabulary, another width,
another language and another kind of model are refused.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from headwise.data.pairs.preparation import GivenTokenizers
from headwise.errors import CheckpointError
from headwise.models.transformer_settings import TransformerSettings
from headwise.tasks.bundle import open_bundle
from headwise.tasks.bundle_directory import find_bundle
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.text.choices import load_fitting_tokenizers
from headwise.weights import put_weights, read_tensors, weights_of

DRAFTERS = ("draft_heads.", "draft_decoder.")
FREE = ("dropout", "draft_heads", "draft_decoder", "start_from")
"""Settings of a model that may differ: they shape no weight that is taken over."""


@dataclass(frozen=True)
class TranslatorStart:
    """A finished translator, as far as another training takes it over."""

    file: Path
    tokenizers: GivenTokenizers

    def put_into(self, model: nn.Module) -> None:
        """Copy all weights; those of drafters only if the two have the same ones."""
        target, source = weights_of(model), dict(read_tensors(self.file))
        for name in [name for name in target.keys() | source.keys() if name.startswith(DRAFTERS)]:
            if not _is_alike(target.get(name), source.get(name)):
                target.pop(name, None)
                source.pop(name, None)
        put_weights(target, source, file=self.file)


def _is_alike(first: Any, second: Any) -> bool:
    return first is not None and second is not None and first.shape == second.shape


def find_translator_start(recipe: TranslationRecipe) -> TranslatorStart | None:
    """The bundle that `model.start_from` names, checked against the recipe; None: none."""
    model = recipe.model
    if not isinstance(model, TransformerSettings) or model.start_from is None:
        return None
    if not model.start_from.exists():
        raise CheckpointError(
            "model.start_from: nothing is there; train the translator first, e.g. `headwise train "
            f"RECIPE --run {model.start_from}`, or start from nothing with model.start_from=null",
            "model.start_from：该处什么也没有；请先训练翻译模型，例如 `headwise train "
            f"RECIPE --run {model.start_from}`，或用 model.start_from=null 从零开始",
            file=model.start_from,
        )
    path = find_bundle(model.start_from, recipe="pocket")
    theirs = open_bundle(path, TranslationRecipe).recipe
    _compare(theirs, recipe, path)
    folder = path / "tokenizer"
    pair = load_fitting_tokenizers(folder, recipe.text)
    given = GivenTokenizers(pair, _digest(folder))
    return TranslatorStart(path / "weights.safetensors", given)


def _digest(folder: Path) -> str:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in files]
    return hashlib.sha256("".join(digests).encode()).hexdigest()


def _compare(theirs: TranslationRecipe, ours: TranslationRecipe, path: Path) -> None:
    there, here = _sections(theirs), _sections(ours)
    differing = sorted(key for key in there.keys() | here.keys() if there.get(key) != here.get(key))
    if differing:
        listed = ", ".join(
            f"{key}={there.get(key)} there, {here.get(key)} here" for key in differing
        )
        raise CheckpointError(
            f"cannot be started from: another vocabulary or another model ({listed}); give the "
            "recipe the same settings, or start from another bundle",
            f"不能由此开始：词表或模型不同（{listed}）；请使配方的这些设置相同，或换一个模型",
            file=path,
        )


def _sections(recipe: TranslationRecipe) -> dict[str, Any]:
    """What must agree, by its key in a recipe."""
    languages = {"data.source": recipe.data.source, "data.target": recipe.data.target}
    text, model = (part.model_dump(mode="json") for part in (recipe.text, recipe.model))
    return languages | {
        f"{section}.{key}": value
        for section, settings in (("text", text), ("model", model))
        for key, value in settings.items()
        if section == "text" or key not in FREE
    }
