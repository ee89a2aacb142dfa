"""CTranslate2 as a competitor: the weights of a translator in another program, from text to text.

`headwise compare parallel` times it beside Headwise. The model is exported to a temporary
directory, which compares it with Headwise on probe sentences (ctranslate2_check.py), and loaded
from there. Tokenising, greedy search and writing the text are all inside one call, as they are for
the rows of Headwise. CTranslate2 sorts and cuts the batches itself.

Tested: the translations are those of Headwise; what cannot be expressed or measured is refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from headwise.decoding.choices import DecodingSettings
from headwise.decoding.rules.length_limit import limit_for
from headwise.decoding.search.greedy import GreedySettings
from headwise.errors import UsageError
from headwise.exporting.ctranslate2_check import load_foreign
from headwise.exporting.ctranslate2_export import export_translator
from headwise.exporting.ctranslate2_search import translate_search
from headwise.models.inference import Precision
from headwise.tasks.translation.bundle import TranslatorBundle
from headwise.tasks.translation.length_limits import within_positions
from headwise.text.phrase_matching import on_one_line
from headwise.text.tokenizer_pair import TokenizerPair

COMPUTE_TYPES: dict[Precision, str] = {"auto": "float32", "fp32": "float32", "int8": "int8"}


@dataclass(frozen=True)
class CTranslate2Peer:
    """A translator that CTranslate2 runs."""

    translator: Any
    tokenizers: TokenizerPair
    settings: DecodingSettings
    numbers: dict[str, int]
    """The id of each target piece."""
    name: str = "CTranslate2 greedy"

    def translate(self, texts: Sequence[str], size: int) -> list[str]:
        """The translations in order, in batches of this many sentences; blank texts stay empty."""
        sources = [self.tokenizers.source.encode(text) if text.strip() else [] for text in texts]
        filled = [number for number, source in enumerate(sources) if source]
        found = [""] * len(texts)
        if not filled:
            return found
        limits = [limit_for(self.settings.max_length, len(sources[number])) for number in filled]
        results = self.translator.translate_batch(
            [self.tokenizers.source.pieces(sources[number]) for number in filled],
            max_batch_size=size,
            max_decoding_length=max(limits),
            **translate_search(self.settings).options,
        )
        for number, limit, result in zip(filled, limits, results, strict=True):
            # The end of the sentence counts as a token; decoding leaves it out.
            ids = [self.numbers[piece] for piece in result.hypotheses[0][:limit]]
            found[number] = on_one_line(self.tokenizers.target.decode(ids))
        return found


def make_peer(
    bundle: TranslatorBundle, *, precision: Precision, device: torch.device
) -> CTranslate2Peer:
    """The same weights in CTranslate2; an error says why that cannot be."""
    if device.type != "cpu" or precision not in COMPUTE_TYPES:
        raise UsageError(
            f"CTranslate2 is measured on a CPU in fp32 or int8, and here on {device.type} in "
            f"{precision}; give --device cpu --precision fp32",
            f"CTranslate2 只在 CPU 上以 fp32 或 int8 测量，而此处是 {device.type} 与 {precision}；"
            "请给出 --device cpu --precision fp32",
        )
    quantization = "int8" if precision == "int8" else "none"
    with TemporaryDirectory() as folder:
        directory = Path(folder) / "exported"
        export_translator(bundle, directory, quantization=quantization)
        translator = load_foreign(directory, compute_type=COMPUTE_TYPES[precision])
    target = bundle.tokenizers.target
    settings = GreedySettings(max_length=bundle.recipe.decoding.max_length)
    pieces = target.pieces(range(target.size))
    return CTranslate2Peer(
        translator,
        bundle.tokenizers,
        within_positions(settings, bundle.recipe.model),
        {piece: number for number, piece in enumerate(pieces)},
    )
