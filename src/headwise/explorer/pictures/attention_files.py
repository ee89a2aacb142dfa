"""Writes the attention maps of translations to a file: an HTML page, a picture, or numbers.

    .html   every layer, head and kind of all sentences, for a browser without a network
            (html_page.py)
    .png    every layer and head of one sentence, one grid for each kind (heat_maps.py)
    .json   pieces and weights [head][query][key] as numbers

Every kernel can be shown. Kernels that form no weights (linear, hashed) are shown with the weights
that they imply, and maps with negative weights are drawn with a two-coloured scale around zero.

Tested against: the weights read back from each kind of file.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from headwise.errors import UsageError
from headwise.explorer.data.attention_maps import Trace
from headwise.explorer.pictures.heat_maps import draw_all
from headwise.explorer.pictures.html_page import write_page
from headwise.storage import write_text

ENDINGS = (".html", ".png", ".json")
MAX_NUMBERS = 16_000_000
"""The most weights in a file: about what a browser opens without delay."""
DIGITS = 6


def check_ending(path: Path) -> None:
    """Refuse a file name without a known ending before anything is computed."""
    if path.suffix.lower() not in ENDINGS:
        raise UsageError(
            f"{path.name!r} does not end in {', '.join(ENDINGS)}, and the ending chooses the "
            "format of the attention file; name it for example attention.html",
            f"{path.name!r} 不以 {'、'.join(ENDINGS)} 结尾，无法确定注意力文件的形式；"
            "请命名为例如 attention.html",
        )


def check_size(traces: Sequence[Trace], path: Path) -> None:
    """Refuse more than one file can show."""
    if path.suffix.lower() == ".png" and len(traces) > 1:
        raise UsageError(
            "a picture shows one sentence, and several were given; give one, or a name that ends "
            "in .html",
            "一幅图只展示一个句子，却给出了多个；请只给一个，或使用以 .html 结尾的文件名",
        )
    numbers = sum(attention.weights.size for trace in traces for attention in trace.maps)
    if numbers > MAX_NUMBERS:
        raise UsageError(
            f"the attention of the first {len(traces):,} sentences has {numbers:,} numbers, and a "
            f"file holds at most {MAX_NUMBERS:,}; give fewer or shorter sentences",
            f"前 {len(traces):,} 个句子的注意力共有 {numbers:,} 个数，而一个文件最多 "
            f"{MAX_NUMBERS:,} 个；请减少句子或缩短",
        )


def write_attention(traces: Sequence[Trace], path: Path, *, title: str) -> None:
    """Write all maps of these translations into one file; its ending chooses the format."""
    check_ending(path)
    check_size(traces, path)
    if not traces:
        raise UsageError(
            "there is no sentence whose attention could be shown; give at least one that is not "
            "empty",
            "没有可展示注意力的句子；请至少给出一个非空的句子",
        )
    match path.suffix.lower():
        case ".html":
            write_page(traces, path, title=title)
        case ".png":
            draw_all(traces[0], path)
        case _:
            content = {"traces": [as_numbers(trace) for trace in traces]}
            write_text(path, json.dumps(content, ensure_ascii=False, allow_nan=False) + "\n")


def as_numbers(trace: Trace) -> dict[str, Any]:
    """A trace as plain JSON values."""
    return {
        "source": trace.source_text,
        "text": trace.target_text,
        "source_pieces": list(trace.source_pieces),
        "target_pieces": list(trace.target_pieces),
        "target_input_pieces": list(trace.target_input_pieces),
        "maps": [
            {
                "name": attention.name,
                "kind": attention.kind,
                "layer": attention.layer,
                "weights": np.round(attention.weights.astype(np.float64), DIGITS).tolist(),
            }
            for attention in trace.maps
        ],
    }
