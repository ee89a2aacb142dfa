"""Imports a Marian translator: its directory becomes an ordinary bundle of task translation.

    marian_files.py      reads and checks the directory
    marian_network.py    shape and weights
    here                 vocabulary, search, recipe, bundle

The recipe says everything that the bundle does. Its `data.train` is empty, because the data of the
training are not known; training goes on with data of one's own (`headwise adapt`, or
`model.start_from` in a recipe). The search is that of the directory: number of beams, length
limit and normalisation of `generation_config.json` mean the same in our beam search
(decoding/search/beam.py).

Tested against: ids, beams and scores of transformers for the same directory.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwise.decoding.search.beam import BeamSettings
from headwise.errors import CheckpointError, UsageError
from headwise.importing.marian_files import (
    GENERATION,
    SOURCE_PIECES,
    TARGET_PIECES,
    MarianFiles,
    read_marian_files,
)
from headwise.importing.marian_network import network_settings, read_network, row_order
from headwise.language import say
from headwise.models.choices import EncoderDecoderSettings
from headwise.settings import check_settings
from headwise.storage import refuse_existing
from headwise.tasks.bundle import save_tokenizers, write_bundle
from headwise.tasks.model_card import model_card
from headwise.tasks.translation.bundle import card_details, card_title, card_use
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.text.imported_pieces import CODE_END, CODE_START, ImportedPieces
from headwise.text.sentencepiece_tokenizer import read_model
from headwise.text.tokenizer import NUM_SPECIAL
from headwise.text.tokenizer_pair import TokenizerPair
from headwise.text.vocabulary import Vocabulary

STOP_RULES = {False: "likely", True: "filled", "never": "proven"}
"""`early_stopping` of transformers, and our word for it."""


@dataclass(frozen=True)
class ImportedTranslator:
    """What was imported."""

    directory: Path
    source: str
    target: str
    num_weights: int
    vocabulary: int
    codes: tuple[str, ...]
    """Codes of target languages that a source may begin with."""
    prefix: str | None

    def as_dict(self) -> dict[str, Any]:
        return {
            "model": str(self.directory),
            "source": self.source,
            "target": self.target,
            "parameters": self.num_weights,
            "vocabulary": self.vocabulary,
            "prefix": self.prefix,
        }


def import_marian(
    directory: Path,
    output: Path,
    *,
    source: str | None = None,
    target: str | None = None,
    prefix: str | None = None,
) -> ImportedTranslator:
    """Write the bundle of a Marian model in the format of transformers.

    `source` and `target`: language codes, if the directory has none. `prefix`: the code of the
    target language, for a model that knows several.
    """
    refuse_existing(output)
    files = read_marian_files(directory)
    languages = _languages(files, source, target)
    codes = tuple(
        entry
        for entry in files.lists[0]
        if entry.startswith(CODE_START) and entry.endswith(CODE_END)
    )
    if prefix is not None and prefix not in codes:
        raise _explain_prefix(prefix, codes)
    settings = network_settings(files)
    tokenizers = _tokenizers(files, prefix)
    recipe = _recipe(files, settings, languages, prefix, tokenizers.target.size)
    weights = read_network(files, settings)
    num_weights = sum(tensor.numel() for tensor in weights.values())
    results = {"parameters": num_weights}
    write_bundle(
        output,
        form=recipe.bundle_form,
        recipe=recipe,
        weights=weights,
        results=results,
        card=model_card(
            card_title(recipe),
            details=f"Imported from a Marian model. {card_details(recipe)}",
            use=card_use(recipe),
            results=results,
            data={},
            recipe_type=type(recipe),
        ),
        write_parts=lambda folder: save_tokenizers(tokenizers, folder),
        replace=False,
    )
    size = tokenizers.target.size
    return ImportedTranslator(output, *languages, num_weights, size, codes, prefix)


def _recipe(
    files: MarianFiles,
    settings: EncoderDecoderSettings,
    languages: tuple[str, str],
    prefix: str | None,
    size: int,
) -> TranslationRecipe:
    data = {
        "data": {"source": languages[0], "target": languages[1], "train": []},
        "text": {
            "kind": "imported_pieces",
            "size": size,
            "shared": files.is_shared,
            "prefix": prefix,
        },
        "model": settings.model_dump(mode="json"),
        "decoding": _search(files).model_dump(mode="json"),
    }
    return check_settings(TranslationRecipe, data)


def _languages(files: MarianFiles, source: str | None, target: str | None) -> tuple[str, str]:
    found = (source or files.languages[0], target or files.languages[1])
    if found[0] is None or found[1] is None:
        missing = "--source" if found[0] is None else "--target"
        raise UsageError(
            f"{files.directory} does not say its languages; give their codes, e.g. --source zh "
            f"--target en ({missing} is missing)",
            f"{files.directory} 没有说明语言；请给出代码，例如 --source zh --target en（缺少 "
            f"{missing}）",
        )
    return found[0], found[1]


def _explain_prefix(prefix: str, codes: tuple[str, ...]) -> UsageError:
    if not codes:
        return UsageError(
            f"--prefix is {prefix!r:.60}, but the model translates into one language and has no "
            "codes; leave --prefix out",
            f"--prefix 为 {prefix!r:.60}，但该模型只译成一种语言，没有语言代码；请去掉 --prefix",
        )
    listed = ", ".join(codes[:20]) + (" …" if len(codes) > 20 else "")
    return UsageError(
        f"--prefix is {prefix!r:.60}; choose one of the model's codes: {listed}",
        f"--prefix 为 {prefix!r:.60}；请从模型的代码中选择：{listed}",
    )


def _tokenizers(files: MarianFiles, prefix: str | None) -> TokenizerPair:
    """Each side with its sentencepiece model and its list; only sources have a prefix."""
    lists = [
        Vocabulary([pieces[number] for number in row_order(files, pieces)[NUM_SPECIAL:]])
        for pieces in files.lists
    ]
    models = [read_model(files.directory / name) for name in (SOURCE_PIECES, TARGET_PIECES)]
    source = ImportedPieces(models[0], lists[0], prefix=prefix)
    return TokenizerPair(source, ImportedPieces(models[1], lists[1]), shared=False)


def _search(files: MarianFiles) -> BeamSettings:
    """The search of generation_config.json; its `max_length` counts the start of the output."""
    given = files.generation
    banned = given.get("bad_words_ids") or []
    if banned not in ([], [[files.number("pad_token_id")]]):
        raise CheckpointError(
            "bad_words_ids forbids other tokens than padding, which cannot be imported; remove "
            "it, and give their words to decoding.forbidden",
            "bad_words_ids 禁止了填充以外的词元，无法导入；请将其删除，并用 decoding.forbidden "
            "给出这些词",
            file=files.directory / GENERATION,
        )
    if given.get("renormalize_logits") and given.get("no_repeat_ngram_size"):
        raise CheckpointError(
            "renormalize_logits and no_repeat_ngram_size cannot be imported together, because our "
            "search does not renormalise what a rule leaves; remove one of them",
            "不能同时导入 renormalize_logits 与 no_repeat_ngram_size，因为我们的搜索不会在规则之后"
            "重新归一化；请去掉其中之一",
            file=files.directory / GENERATION,
        )
    early = given.get("early_stopping") or False
    data = {
        "size": given.get("num_beams") or 1,
        "max_length": (given.get("max_length") or 512) - 1,
        "length_penalty": {"kind": "average", "alpha": given.get("length_penalty", 1.0)},
        "stop": STOP_RULES.get(early, early),
        "at_limit": "cut" if given.get("forced_eos_token_id") is None else "end",
        "no_repeat_ngrams": given.get("no_repeat_ngram_size") or 0,
    }
    return check_settings(BeamSettings, data, file=files.directory / GENERATION)


def describe_import(found: ImportedTranslator) -> str:
    """What a reader of a terminal wants to know."""
    text = say(
        f"{found.directory}: translator {found.source} → {found.target}, {found.num_weights:,} "
        f"parameters, vocabulary {found.vocabulary:,}",
        f"{found.directory}：翻译模型 {found.source} → {found.target}，参数 "
        f"{found.num_weights:,}，词表 {found.vocabulary:,}",
    )
    if found.codes and found.prefix is None:
        some = ", ".join(found.codes[:8]) + (" …" if len(found.codes) > 8 else "")
        text += say(
            f"\nIt translates into several languages: begin each source with a code ({some}), or "
            "import it with --prefix CODE",
            f"\n它能译成多种语言：请在每句源文前写上代码（{some}），或用 --prefix CODE 重新导入",
        )
    return text
