"""Trained models in the forms of others."""

from pathlib import Path

from headwise.errors import UsageError
from headwise.models.ngram import NgramModel
from headwise.models.ngram.arpa import is_arpa
from headwise.models.ngram.arpa_writing import save_arpa
from headwise.tasks.arguments import require_path
from headwise.tasks.language_bundle import load_language_bundle
from headwise.text.characters import CharacterTokenizer
from headwise.text.tokenizer import NUM_SPECIAL, WORD_START
from headwise.text.words import WordTokenizer


def export_arpa(model: Path | str, output: Path | str) -> Path:
    """Write the n-grams of a bundle as an ARPA file, packed if its name ends in .gz or .xz."""
    path = require_path(output, "output", "model.arpa")
    if not is_arpa(path):
        raise UsageError(
            f"{path} is not the name of an ARPA file; let it end in .arpa, .arpa.gz or .arpa.xz",
            f"{path} 不是 ARPA 文件名；请以 .arpa、.arpa.gz 或 .arpa.xz 结尾",
        )
    bundle = load_language_bundle(require_path(model, "model", "runs/ptb/model"))
    if not isinstance(bundle.model, NgramModel):
        raise UsageError(
            f"{model} is a model of kind {bundle.recipe.model.kind}; only n-grams can be written as ARPA: train one, e.g. ptb-ngram",
            f"{model} 是 {bundle.recipe.model.kind} 模型；只有 n 元语法可写成 ARPA：请训练一个，例如 ptb-ngram",
        )
    if isinstance(bundle.tokenizer, CharacterTokenizer):
        save_arpa(path, bundle.model.tables, bundle.tokenizer.vocabulary.entries, units="characters")
        return path
    names = bundle.tokenizer.pieces(range(NUM_SPECIAL, bundle.tokenizer.size))
    if isinstance(bundle.tokenizer, WordTokenizer):
        names = [name.removeprefix(WORD_START) for name in names]  # words are apart anyway
    save_arpa(path, bundle.model.tables, names)
    return path
