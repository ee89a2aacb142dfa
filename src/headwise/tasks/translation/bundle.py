"""The bundle of a translator: the files of every bundle (tasks/bundle.py) and the tokenizers."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from headwise.data.pairs.choices import DataSettings
from headwise.data.pairs.directions import in_arrows, languages_of, target_tag
from headwise.errors import UsageError
from headwise.models.choices import build_model
from headwise.models.recurrent.choices import RecurrentTranslatorSettings
from headwise.models.transformer_settings import TransformerSettings
from headwise.models.translation_model import TranslationModel
from headwise.tasks.arguments import require_path
from headwise.tasks.bundle import open_bundle
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.text.choices import TokenizerPair, load_fitting_tokenizers
from headwise.text.tagged_tokenizer import TaggedTokenizer


@dataclass(frozen=True)
class TranslatorBundle:
    """A trained translator's parts."""

    directory: Path
    recipe: TranslationRecipe
    tokenizers: TokenizerPair
    model: TranslationModel
    results: Mapping[str, Any]
    sources: tuple[str, ...] = ()
    """The languages that are read, if they were not told apart (`toward`)."""

    def toward(self, target: str | None, source: str | None = None) -> "TranslatorBundle":
        """The bundle as one of a single direction; without a source, the first into the target."""
        data = self.recipe.data
        known = list(map(languages_of, data.all_directions)) or [(data.source, data.target)]
        found = [one for one in known if source in (None, one[0]) and target in (None, one[1])]
        if not found or (target is None and data.directions):
            raise _explain_direction(self, source, target)
        if not data.directions:
            return self
        recipe = self.recipe.model_copy(update={"data": data.one_way("-".join(found[0]))})
        tagged = TaggedTokenizer(self.tokenizers.source, target_tag(found[0][1]))
        return replace(
            self,
            recipe=recipe,
            tokenizers=replace(self.tokenizers, source=tagged),
            sources=tuple(one for one, _ in found),
        )


def require_one_direction(data: DataSettings, path: Path | str) -> None:
    """Refuse a translator of several directions, for uses that cannot choose one."""
    if data.directions:
        raise UsageError(
            f"{path} translates in several directions ({data.in_arrows}), and this needs a "
            "translator of one; use headwise translate or evaluate with --to "
            f"{data.target}, or train one of a single direction",
            f"{path} 有多个翻译方向（{data.in_arrows}），而此处需要单一方向的翻译模型；请用 "
            f"headwise translate 或 evaluate 加 --to {data.target}，或训练单一方向的模型",
        )


def _explain_direction(
    bundle: TranslatorBundle, source: str | None, target: str | None
) -> UsageError:
    data = bundle.recipe.data
    if target is None and data.directions:
        targets = data.targets
        return UsageError(
            f"{bundle.directory} translates into {', '.join(targets)}, and no target language was "
            f'given; add --to {targets[0]} (in Python to="{targets[0]}")',
            f"{bundle.directory} 可译成 {'、'.join(targets)}，而没有给出目标语言；请加上 --to "
            f'{targets[0]}（Python 中为 to="{targets[0]}"）',
        )
    asked = f"{source or '…'} → {target or '…'}"
    directions = in_arrows(data.all_directions) or data.in_arrows
    return UsageError(
        f"{bundle.directory} does not translate {asked}; its directions are: {directions}",
        f"{bundle.directory} 不支持 {asked}；它的翻译方向有：{directions}",
    )


def load_translator_bundle(
    directory: Path | str, *, several_directions: bool = False
) -> TranslatorBundle:
    """A verified bundle, on the CPU and ready to translate; one of several directions is refused
    unless the caller can choose one."""
    path = require_path(directory, "directory", "runs/demo/model")
    opened = open_bundle(path, TranslationRecipe)
    recipe = opened.recipe
    if not several_directions:
        require_one_direction(recipe.data, path)
    tokenizers = load_fitting_tokenizers(opened.directory / "tokenizer", recipe.text)
    model = opened.load_weights(lambda: new_translation_model(recipe, tokenizers))
    return TranslatorBundle(opened.directory, recipe, tokenizers, model, opened.results)


def new_translation_model(recipe: TranslationRecipe, tokenizers: TokenizerPair) -> TranslationModel:
    """The model of a recipe for these vocabularies, its weights not yet drawn."""
    return build_model(
        recipe.model,
        source_size=tokenizers.source.size,
        target_size=tokenizers.target.size,
        generator=None,
    )


def card_title(recipe: TranslationRecipe) -> str:
    return f"Translator {recipe.data.in_arrows}"


def card_details(recipe: TranslationRecipe) -> str:
    match recipe.model:
        case TransformerSettings(encoder=encoder, decoder=decoder):
            layers = f"{encoder.layers} encoder and {decoder.layers} decoder layers"
        case RecurrentTranslatorSettings(layers=count, cell=cell, attention=attention):
            layers = (
                f"{count} {cell} encoder and {count} decoder layers, attention: {attention.kind}"
            )
    model = f"Model: {recipe.model.kind}, width {recipe.model.dim}, {layers}."
    cut = recipe.training.segmentation
    return model if cut is None else f"{model} Segmentation in training: {cut.in_words}."


def card_use(recipe: TranslationRecipe) -> str:
    """How the translator is called; one of several directions is told which language to write."""
    targets = recipe.data.targets
    to = f', to="{targets[0]}"' if targets else ""
    return _CARD_USE.replace('["…"]', f'["…"]{to}')


_CARD_USE = """```python
import headwise
translator = headwise.Translator.load("DIR OF THIS FILE")
print(translator(["…"])[0].text)
```"""
