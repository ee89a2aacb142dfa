"""Prepares the units and segmentations of a corpus once, saves them beside it, and opens them
again.

    runs/mine/data/   train/   valid/   tokenizers/   segmentation/
                          source.units  source.offsets  source.first  source.lengths  source.tokens
                          (target alike)  segmentation.json

They are a function of the training pairs, the tokenizers and the setting, not of a run's seed. All
arrays are memory-mapped, so that the processes of one machine share them. On disk, a unit takes 4
bytes for each occurrence and a pair 8 bytes a side; a segmentation takes 2 bytes and its tokens.

`growth` is how much longer the sentences are than with the best segmentation. It is measured on
up to 20,000 of them when the data are prepared.

Tested against: what was drawn in memory, other settings, a damaged file.
"""

import hashlib
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headwise.data.pairs.segmentation.alternatives import Alternatives, draw_alternatives
from headwise.data.pairs.segmentation.choices import BpeDropout, Segmentation, UnigramSampling
from headwise.data.pairs.segmentation.segmented_pairs import SegmentedPairs, SegmentedSide
from headwise.data.pairs.segmentation.units import (
    CutBlock,
    UnitBorders,
    Units,
    collect_units,
    cut_store,
)
from headwise.data.shards import SIDES, Side, TokenStore
from headwise.errors import CheckpointError
from headwise.language import say
from headwise.storage import (
    manifest_digest,
    publish_directory,
    read_json,
    verify_directory,
    write_json,
)
from headwise.text.piece_table import PieceTable
from headwise.text.reversed_tokenizer import ReversedTokenizer, as_written
from headwise.text.sentencepiece_tokenizer import PieceTokenizer
from headwise.text.tokenizer_pair import TokenizerPair

logger = logging.getLogger(__name__)

KIND = "segmentation"
FOLDER, DESCRIPTION = "segmentation", "segmentation.json"
MEASURED = 20_000
_ARRAYS = {"units": "<i4", "offsets": "<i8", "first": "<i8", "lengths": "<u2", "tokens": "<u4"}


@dataclass(frozen=True)
class PreparedSegmentation:
    """What sentences can be cut into, and how that changes their lengths."""

    sides: Mapping[Side, SegmentedSide]
    growth: Mapping[Side, float]
    """Tokens for each token of the best segmentation, ends of sentences included."""
    long: Mapping[Side, float]
    """The share of sentences that become longer than a row and keep their best segmentation."""
    fingerprint: str

    def of(self, store: TokenStore, *, source: int, target: int) -> SegmentedPairs:
        """The pairs of the store, with room for so many tokens, ends included."""
        return SegmentedPairs(store, self.sides, {"source": source - 1, "target": target - 1})

    def describe(self) -> str:
        """In a sentence, for the notes of a run."""
        names = {"source": say("source", "源"), "target": say("target", "目标")}
        grown = say(", ", "，").join(
            f"{names[side]} +{100 * (self.growth[side] - 1):.0f} %" for side in self.sides
        )
        long = max(self.long.values())
        return say(
            f"words are cut into other pieces each time: more tokens ({grown})",
            f"词每次切成不同的词元，词元随之增多（{grown}）",
        ) + (
            ""
            if long == 0
            else say(
                f"; {100 * long:.2g} % of the sentences no longer fit a row then, and are cut "
                "in the best way",
                f"；有 {100 * long:.2g} % 的句子因此超出行长，仍用最佳切分",
            )
        )


def prepare_segmentation(
    directory: Path,
    store: TokenStore,
    tokenizers: TokenizerPair,
    settings: Segmentation,
    *,
    rows: tuple[int, int],
    progress: Callable[[int], None] | None = None,
) -> PreparedSegmentation:
    """The segmentations of the pairs in `directory`; they are drawn if they are not there. `rows`
    are the lengths of source and target rows; `progress` is told the pairs of each block."""
    place, inputs = directory / FOLDER, _describe_inputs(store, settings, rows)
    if place.exists():
        try:
            if read_json(place / DESCRIPTION).get("inputs") == inputs:
                return open_segmentation(directory)
        except (CheckpointError, AttributeError) as error:
            logger.warning("%s", say(f"{error}; it is made again", f"{error}；将重新生成"))
    with publish_directory(place, kind=KIND, replace=True) as temporary:
        for side in SIDES:
            if settings.sides in (side, "both"):
                _write_side(temporary, store, side, tokenizers, settings, progress)
        sides = [side for side in SIDES if settings.sides in (side, "both")]
        backwards = isinstance(tokenizers.target, ReversedTokenizer)
        found = {
            side: _open_side(temporary, side, backwards=backwards and side == "target")
            for side in sides
        }
        numbers = _measure(store, found, dict(zip(SIDES, rows, strict=True)))
        write_json(
            temporary / DESCRIPTION,
            {"inputs": inputs, "sides": sides, "backwards": backwards, **numbers},
        )
    return open_segmentation(directory)


def open_segmentation(directory: Path) -> PreparedSegmentation:
    """What `prepare_segmentation` made; every checksum is verified."""
    place = directory / FOLDER
    verify_directory(place, kind=KIND)
    try:
        found = read_json(place / DESCRIPTION)
        turned = found["backwards"]
        sides: dict[Side, SegmentedSide] = {
            side: _open_side(place, side, backwards=turned and side == "target")
            for side in SIDES
            if side in found["sides"]
        }
        growth, long = (
            {side: float(found[name].get(side, default)) for side in SIDES}
            for name, default in (("growth", 1.0), ("long", 0.0))
        )
    except (KeyError, TypeError, ValueError, AttributeError, OSError) as error:
        raise CheckpointError(
            "is damaged (a required entry is missing); remove the directory, and the "
            "segmentations are drawn again",
            "已损坏（缺少必需的条目）；请删除该目录，将重新抽取切分",
            file=place / DESCRIPTION,
        ) from error
    return PreparedSegmentation(sides, growth, long, manifest_digest(place))


def _describe_inputs(store: TokenStore, settings: Segmentation, rows: tuple[int, int]) -> str:
    """A hash of everything that the segmentations depend on; the store was written with the
    tokenizers beside it."""
    inputs = [store.fingerprint, settings.model_dump(mode="json"), rows]
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()


def _write_side(
    directory: Path,
    store: TokenStore,
    side: Side,
    tokenizers: TokenizerPair,
    settings: BpeDropout | UnigramSampling,
    progress: Callable[[int], None] | None,
) -> None:
    tokenizer: Any = tokenizers.source if side == "source" else tokenizers.target
    backwards, plain = isinstance(tokenizer, ReversedTokenizer), as_written(tokenizer)
    assert isinstance(plain, PieceTokenizer), "checked with the recipe"
    table = PieceTable.of(plain.model)
    borders = UnitBorders.of(table)

    def read() -> Iterator[CutBlock]:
        for block in cut_store(store, side, borders, backwards=backwards):
            yield block
            if progress is not None:
                progress(len(block.per_sentence))

    units = collect_units(read())
    _write_units(directory, side, units, read())
    drawn: Alternatives = draw_alternatives(units, table, settings)
    for name in ("first", "lengths", "tokens"):
        array: np.ndarray = getattr(drawn, name)
        array.astype(_ARRAYS[name]).tofile(directory / f"{side}.{name}")


def _write_units(directory: Path, side: Side, units: Units, blocks: Iterator[CutBlock]) -> None:
    """The unit numbers of all sentences, block by block."""
    end = 0
    with (
        (directory / f"{side}.units").open("wb") as numbers,
        (directory / f"{side}.offsets").open("wb") as offsets,
    ):
        offsets.write(np.zeros(1, _ARRAYS["offsets"]).tobytes())
        for block in blocks:
            numbers.write(units.find(block.hashes).astype(_ARRAYS["units"]).tobytes())
            ends = end + np.cumsum(block.per_sentence)
            offsets.write(ends.astype(_ARRAYS["offsets"]).tobytes())
            end = int(ends[-1])


def _open_side(directory: Path, side: Side, *, backwards: bool) -> SegmentedSide:
    arrays = {
        name: np.memmap(directory / f"{side}.{name}", dtype=kind, mode="r")
        for name, kind in _ARRAYS.items()
    }
    lengths = arrays["lengths"]
    starts = np.cumsum(lengths, dtype=np.int64) - lengths
    return SegmentedSide(starts=starts, backwards=backwards, **arrays)


def _measure(
    store: TokenStore, sides: Mapping[Side, SegmentedSide], rows: Mapping[Side, int]
) -> dict[str, dict[Side, float]]:
    """How much longer sentences become, and how many no longer fit a row."""
    pairs = np.unique(np.linspace(0, len(store) - 1, MEASURED).astype(np.int64))
    growth: dict[Side, float] = {}
    long: dict[Side, float] = {}
    for side, cut in sides.items():
        key, room = ("growth", side), rows[side] - 1
        best = len(store.gather_side(side, pairs).tokens)
        growth[side] = (len(cut.gather(pairs, key, room).tokens) + len(pairs)) / (best + len(pairs))
        long[side] = cut.long_sentences(pairs, key, room) / len(pairs)
    return {"growth": growth, "long": long}
