"""Exports trained models to other programs: translators to CTranslate2, n-grams to ARPA files.

The name of the output decides which.
"""

from pathlib import Path

from headwise.errors import UsageError
from headwise.exporting.ctranslate2_export import ExportedTranslator, export_translator
from headwise.exporting.exported_models import exported_models
from headwise.models.ngram import NgramModel
from headwise.models.ngram.arpa import is_arpa, require_arpa
from headwise.models.ngram.arpa_writing import save_arpa
from headwise.tasks.arguments import require_path
from headwise.tasks.language.bundle import load_language_bundle
from headwise.tasks.translation.bundle import load_translator_bundle
from headwise.text.character_tokenizer import CharacterTokenizer
from headwise.text.tokenizer import NUM_SPECIAL, WORD_START
from headwise.text.word_tokenizer import WordTokenizer


def export_model(
    model: Path | str,
    output: Path | str,
    *,
    quantization: str = "none",
    probes: Path | str | None = None,
) -> ExportedTranslator | Path:
    """Write a model for another program: n-grams to a file named .arpa, a translator to a new
    directory for CTranslate2.
    """
    path = require_path(output, "output", "translator-ct2")
    if is_arpa(path):
        if quantization != "none" or probes is not None:
            raise UsageError(
                f"{path} will be an ARPA file, which has no --quantization and needs no --probes; "
                "leave them out",
                f"{path} 将是 ARPA 文件，没有 --quantization，也不需要 --probes；请去掉",
            )
        return export_arpa(model, path)
    found = exported_models(path).find(require_path(model, "model", "runs/demo/model"))
    given = None if probes is None else require_path(probes, "probes", "sentences.txt")
    return export_translator(
        load_translator_bundle(found), path, quantization=quantization, probes=given
    )


def export_arpa(model: Path | str, output: Path | str) -> Path:
    """Write the n-grams of a bundle as an ARPA file, packed if its name ends in .gz or .xz."""
    path = require_path(output, "output", "model.arpa")
    require_arpa(path)
    bundle = load_language_bundle(require_path(model, "model", "runs/ptb/model"))
    if not isinstance(bundle.model, NgramModel):
        raise UsageError(
            f"{model} is a model of kind {bundle.recipe.model.kind}; only n-grams can be written "
            "as ARPA: train one, e.g. ptb-ngram",
            f"{model} 是 {bundle.recipe.model.kind} 模型；只有 n 元语法可写成 ARPA：请训练一个，"
            "例如 ptb-ngram",
        )
    if isinstance(bundle.tokenizer, CharacterTokenizer):
        save_arpa(
            path, bundle.model.tables, bundle.tokenizer.vocabulary.entries, units="characters"
        )
        return path
    names = bundle.tokenizer.pieces(range(NUM_SPECIAL, bundle.tokenizer.size))
    if isinstance(bundle.tokenizer, WordTokenizer):
        names = [
            name.removeprefix(WORD_START) for name in names
        ]  # words are separated by spaces anyway
    save_arpa(path, bundle.model.tables, names)
    return path
