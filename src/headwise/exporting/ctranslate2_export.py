"""Exports a translator to a directory that CTranslate2 and sentencepiece can use without Headwise.

    model.bin  config.json  *_vocabulary.json      read by CTranslate2
    pieces.model (or source.model, target.model)   read by sentencepiece
    README.md  MANIFEST.json                       Python code that translates; checksums

The directory is written under a temporary name, compared with Headwise on probe sentences
(ctranslate2_check.py) and published by one rename, or not at all.
"""

import importlib.util
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import headwise
from headwise.errors import UsageError
from headwise.exporting.ctranslate2_check import Agreement, ProbeComparison
from headwise.exporting.ctranslate2_network import build_network, require_expressible
from headwise.exporting.ctranslate2_search import ForeignSearch, translate_search
from headwise.models.encoder_decoder import EncoderDecoder
from headwise.pocket import LANGUAGES, sentences
from headwise.storage import publish_directory
from headwise.tasks.bundle_form import CTRANSLATE2
from headwise.tasks.text_input import read_sentences
from headwise.tasks.translation.bundle import TranslatorBundle
from headwise.tasks.translation.length_limits import (
    MAX_SOURCE_TOKENS,
    longest_source,
    within_positions,
)
from headwise.text.imported_pieces import ImportedPieces
from headwise.text.reversed_tokenizer import ReversedTokenizer
from headwise.text.sentencepiece_tokenizer import PieceTokenizer
from headwise.text.tokenizer_pair import PROBE_SENTENCES

QUANTIZATIONS = (
    "none",
    "int8",
    "int8_float32",
    "int8_float16",
    "int8_bfloat16",
    "int16",
    "float16",
    "bfloat16",
)
MAX_PROBES = 100
NUM_POCKET_PROBES = 5


@dataclass(frozen=True)
class ExportedTranslator:
    """What was written, and how well it agrees with Headwise."""

    directory: Path
    quantization: str
    num_bytes: int
    exact: Agreement
    """The agreement in float32."""
    rounded: Agreement | None
    left_out: tuple[str, ...]
    """Parts of the recipe's search that CTranslate2 cannot express."""

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "directory": str(self.directory)}


def export_translator(
    bundle: TranslatorBundle,
    output: Path,
    *,
    quantization: str = "none",
    probes: Path | None = None,
) -> ExportedTranslator:
    """Write a translator for CTranslate2; `probes` is a file of sentences to compare with, one a
    line.
    """
    _require_package()
    if quantization not in QUANTIZATIONS:
        raise UsageError(
            f"quantization is {quantization!r:.40}; choose one of {', '.join(QUANTIZATIONS)}",
            f"quantization 是 {quantization!r:.40}；请选择 {'、'.join(QUANTIZATIONS)} 之一",
        )
    _require_written_order(bundle)
    settings = require_expressible(bundle.recipe.model, tokenizer=bundle.recipe.text.kind)
    model, source, target = bundle.model, bundle.tokenizers.source, bundle.tokenizers.target
    assert isinstance(model, EncoderDecoder)
    assert isinstance(source, PieceTokenizer | ImportedPieces)
    assert isinstance(target, PieceTokenizer | ImportedPieces)
    search = translate_search(within_positions(bundle.recipe.decoding, bundle.recipe.model))

    def build() -> Any:
        return build_network(
            model,
            settings,
            vocabularies=(source.pieces(range(source.size)), target.pieces(range(target.size))),
            longest=max(MAX_SOURCE_TOKENS, search.longest_output + 1),
        )

    with publish_directory(output, kind=CTRANSLATE2) as directory:
        comparison = ProbeComparison(bundle, _choose_probes(bundle, probes))
        _save(build(), directory, quantization=None)
        exact, rounded = comparison.prove(directory), None
        if quantization != "none":
            _save(build(), directory, quantization=quantization)
            rounded = comparison.measure(directory, quantization)
        names = (
            ("pieces.model", "pieces.model")
            if bundle.tokenizers.shared
            else ("source.model", "target.model")
        )
        for name, tokenizer in zip(names, (source, target), strict=True):
            (directory / name).write_bytes(tokenizer.model)
        num_bytes = (directory / "model.bin").stat().st_size
        exported = ExportedTranslator(
            output, quantization, num_bytes, exact, rounded, search.left_out
        )
        (directory / "README.md").write_text(
            write_readme(bundle, exported, search, names), encoding="utf-8"
        )
    return exported


def _require_written_order(bundle: TranslatorBundle) -> None:
    if isinstance(bundle.tokenizers.target, ReversedTokenizer):
        raise UsageError(
            "the model writes from right to left (data.target_order=reversed), and CTranslate2 "
            "would write its sentences reversed; export a model with data.target_order=written",
            "该模型从右到左翻译（data.target_order=reversed），而 CTranslate2 会写出颠倒的句子；"
            "请导出 data.target_order=written 的模型",
        )


def _require_package() -> None:
    if importlib.util.find_spec("ctranslate2") is None:
        raise UsageError(
            "writing for CTranslate2 needs the package ctranslate2, which is not installed; run: "
            "pip install 'headwise[fast]'",
            "写成 CTranslate2 模型需要 ctranslate2 包，尚未安装；请运行：pip install "
            "'headwise[fast]'",
        )


def _save(network: Any, directory: Path, *, quantization: str | None) -> None:
    network.optimize(quantization=quantization)
    network.save(str(directory))


def _choose_probes(bundle: TranslatorBundle, path: Path | None) -> Sequence[str]:
    """Sentences that the model can read: those given, or ordinary sentences of several languages,
    its own among them.
    """
    language = bundle.recipe.data.source
    if path is not None:
        probes = list(islice(read_sentences(path), MAX_PROBES))
    else:
        own = sentences("test", NUM_POCKET_PROBES) if language in LANGUAGES else ()
        probes = [*(sentence.text(language) for sentence in own), *PROBE_SENTENCES]
    most = longest_source(bundle.recipe.model).tokens
    readable = [probe for probe in probes if 0 < len(bundle.tokenizers.source.encode(probe)) < most]
    if not readable:
        raise UsageError(
            f"none of the {len(probes)} probes has fewer than {most} tokens, so nothing can be "
            "compared; give shorter sentences: --probes FILE",
            f"{len(probes)} 个探测句都不少于 {most} 个词元，无法比较；请给出更短的句子：--probes "
            "FILE",
        )
    return readable


def write_code(search: ForeignSearch, names: tuple[str, str], *, prefix: str | None = None) -> str:
    """A program that translates without Headwise; `names` are the files of the tokenizers, `prefix`
    a piece that stands before every source.
    """
    options = ", ".join(f"{name}={value!r}" for name, value in search.options.items())
    shared = names[0] == names[1]
    second = (
        "source"
        if shared
        else f'sentencepiece.SentencePieceProcessor(model_file=f"{{directory}}/{names[1]}")'
    )
    before = "" if prefix is None else f"[{prefix!r}] + "
    return f"""import ctranslate2
import sentencepiece

directory = "."  # of this file
source = sentencepiece.SentencePieceProcessor(model_file=f"{{directory}}/{names[0]}")
target = {second}
translator = ctranslate2.Translator(directory, device="auto")
search = dict({options})


def longest(pieces):  # how many tokens the translation may have, its end included
    return {search.write_limit("len(pieces)")}


def translate(lines):
    groups = {{}}  # CTranslate2 takes one limit a call, so lines with the same limit go together
    for number, line in enumerate(lines):
        if line.strip():
            pieces = {before}source.encode(line, out_type=str)
            groups.setdefault(longest(pieces), []).append((number, pieces))
    texts = [""] * len(lines)
    for limit, group in groups.items():
        batch = [pieces for _, pieces in group]
        results = translator.translate_batch(batch, max_decoding_length=limit, **search)
        for (number, _), result in zip(group, results):
            texts[number] = target.decode(result.hypotheses[0])
    return texts
"""


def _prefix_of(bundle: TranslatorBundle) -> str | None:
    source = bundle.tokenizers.source
    return source.prefix if isinstance(source, ImportedPieces) else None


def _beyond(bundle: TranslatorBundle) -> str:
    """What Headwise does to texts that the code of the README does not."""
    if isinstance(bundle.tokenizers.source, ImportedPieces):
        return (
            "Two things Headwise does beyond that: a source may begin with the code of a target\n"
            "language, and a control character in a translation becomes a space."
        )
    return (
        'Two things Headwise does beyond that: it writes a "▁" of the text itself as U+F8FE 1,\n'
        "and a control character in a translation as a space."
    )


def write_readme(
    bundle: TranslatorBundle,
    exported: ExportedTranslator,
    search: ForeignSearch,
    names: tuple[str, str],
) -> str:
    """The README of the directory: what it is, the code that translates, and how it was tested."""
    source, target = bundle.recipe.data.source, bundle.recipe.data.target
    exact, rounded = exported.exact, exported.rounded
    proof = (
        f"In float32 the log-probabilities of all tokens of {exact.num_probes} probe sentences "
        f"were within {exact.difference:.1e} of Headwise's; greedy and beam search gave the same "
        "tokens."
    )
    if rounded is not None:
        proof += (
            f" Rounded to {exported.quantization} they are {rounded.difference:.1e} off on average."
        )
    last = exact if rounded is None else rounded
    proof += (
        f" The search above gave {last.num_same} of {last.num_probes} the same translation as the "
        "recipe's."
    )
    left_out = (
        f"\nNot in it, because CTranslate2 has no words for it: {', '.join(search.left_out)}.\n"
        if search.left_out
        else ""
    )
    weights = "float32" if exported.quantization == "none" else exported.quantization
    return f"""# Translator {source} → {target} for CTranslate2

Written by headwise {headwise.__version__}; weights: {weights}. Needs
`pip install "ctranslate2>=4.8.4" sentencepiece` and nothing else.

```python
{write_code(search, names, prefix=_prefix_of(bundle))}```

One sentence a line; a blank line stays blank. `search` and `longest` are the recipe's decoding.
{_beyond(bundle)}
{left_out}
## Checked

{proof} `MANIFEST.json` has the SHA-256 of every file.
"""
