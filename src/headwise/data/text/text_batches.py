"""Makes batches for language models from text of one language.

    sentences   each line from <s> to </s>; packed into rows (packing.py), or padded for models
                that do not know where a sentence of a row begins
    stream      all lines as one text with </s> between them, cut into windows of `length` words.
                `carried`: `rows` readers start at equal distances and read window after window,
                keeping their hidden state. Otherwise the windows are shuffled

Each is an endless stream of batches and a pure function of (seed, epoch, position), so that a run
resumes exactly. In every epoch the windows of a stream start at another offset, so that no word is
always the first of its window.

Tested against: every line once an epoch; consecutive windows give the text back; resumed =
uninterrupted.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from headwise.data.batching import ALL_ROWS, Cursor, Share, batches
from headwise.data.order import permute
from headwise.data.packing import PackedBatch
from headwise.data.shards import CorpusRange, Ragged, concatenated_ranges
from headwise.randomness import numpy_generator
from headwise.text.tokenizer import BOS, EOS, PAD

Places = Mapping[str, int]


@dataclass(frozen=True)
class TextBatch:
    """Rows of a text; a target that is padding does not count."""

    tokens: Int[Tensor, "row time"]
    targets: Int[Tensor, "row time"]
    fresh: Bool[Tensor, " row"]
    """Rows that do not continue the same row of the batch before."""


@dataclass(frozen=True)
class LineStore:
    """The lines of a text in memory, in the form of a pair store without sources."""

    lines: Ragged

    @property
    def corpora(self) -> Sequence[CorpusRange]:
        return (CorpusRange("text", len(self)),)

    def __len__(self) -> int:
        return len(self.lines.lengths)

    def gather(self, pairs: np.ndarray, key: Sequence[int | str] = ()) -> tuple[Ragged, Ragged]:
        lengths = self.lines.lengths[pairs]
        starts = (np.cumsum(self.lines.lengths) - self.lines.lengths)[pairs]
        chosen = Ragged(self.lines.tokens[concatenated_ranges(starts, lengths)], lengths)
        return Ragged(self.lines.tokens[:0], np.zeros_like(lengths)), chosen


def cut_lines(lines: Ragged, longest: int) -> Ragged:
    """Lines of at most `longest` tokens; longer ones are cut into pieces."""
    pieces = np.maximum(1, -(-lines.lengths // longest))
    lengths = np.full(int(pieces.sum()), longest, dtype=np.int64)
    lengths[np.cumsum(pieces) - 1] = lines.lengths - (pieces - 1) * longest
    return Ragged(lines.tokens, lengths)


def join_lines(lines: Ragged) -> np.ndarray:
    """One text: </s> at the start and after each line."""
    text = np.full(len(lines.tokens) + len(lines.lengths) + 1, EOS, dtype=np.int64)
    ends = np.cumsum(lines.lengths + 1)
    inside = np.ones(len(text), dtype=bool)
    inside[0], inside[ends] = False, False
    text[inside] = lines.tokens
    return text


def fingerprint(lines: Ragged, form: str) -> str:
    """Of the text and of how it is read; a resumed run compares it."""
    digest = hashlib.sha256(form.encode())
    for array in (lines.tokens, lines.lengths):
        digest.update(np.ascontiguousarray(array, dtype="<i8").tobytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class PackedLines:
    """Whole lines in rows of fixed length."""

    store: LineStore
    rows: int
    row_tokens: int
    seed: int
    fingerprint: str
    share: Share = ALL_ROWS

    def stream(self, cursor: Places | None) -> Iterator[tuple[PackedBatch, Places]]:
        place = None if cursor is None else Cursor.from_json(cursor)
        width = self.row_tokens
        for batch, after in batches(
            self.store,
            seed=self.seed,
            rows=self.rows,
            source_row=width,
            target_row=width,
            cursor=place,
            share=self.share,
        ):
            yield batch, after.to_json()


@dataclass(frozen=True)
class PaddedLines:
    """Lines of similar length, one a row; batches of at most `batch_tokens`, padding included."""

    lines: Ragged
    batch_tokens: int
    seed: int
    fingerprint: str

    def stream(self, cursor: Places | None) -> Iterator[tuple[TextBatch, Places]]:
        epoch, first = (0, 0) if cursor is None else (cursor["epoch"], cursor["batch"])
        starts = np.cumsum(self.lines.lengths) - self.lines.lengths
        while True:
            groups = self._groups(epoch)
            for number in range(first, len(groups)):
                rows = [
                    self.lines.tokens[starts[i] : starts[i] + self.lines.lengths[i]]
                    for i in groups[number]
                ]
                yield pad_lines(rows, first=BOS), {"epoch": epoch, "batch": number + 1}
            epoch, first = epoch + 1, 0

    def _groups(self, epoch: int) -> list[np.ndarray]:
        """Shuffle the lines, sort by length within 100 batches, cut into batches, shuffle the
        batches.
        """
        size = len(self.lines.lengths)
        order = permute(np.arange(size), size, key=(self.seed, "epoch", epoch))
        mean = float(self.lines.lengths.mean()) + 1
        block = max(1, round(100 * self.batch_tokens / mean))
        groups: list[np.ndarray] = []
        for begin in range(0, size, block):
            part = order[begin : begin + block]
            part = part[np.argsort(self.lines.lengths[part], kind="stable")]
            first = 0
            for place in range(len(part)):
                width = int(self.lines.lengths[part[place]]) + 1
                if place > first and width * (place - first + 1) > self.batch_tokens:
                    groups.append(part[first:place])
                    first = place
            groups.append(part[first:])
        shuffled = numpy_generator(self.seed, "batches", epoch).permutation(len(groups))
        return [groups[number] for number in shuffled]


def pad_lines(lines: Sequence[np.ndarray | Sequence[int]], *, first: int) -> TextBatch:
    """One line a row: input `first` and its tokens; targets its tokens and </s>."""
    width = max(map(len, lines)) + 1
    tokens = np.full((len(lines), width), PAD, dtype=np.int64)
    targets = np.full((len(lines), width), PAD, dtype=np.int64)
    for row, line in enumerate(lines):
        tokens[row, 0], tokens[row, 1 : len(line) + 1] = first, line
        targets[row, : len(line)], targets[row, len(line)] = line, EOS
    return TextBatch(
        torch.from_numpy(tokens),
        torch.from_numpy(targets),
        torch.ones(len(lines), dtype=torch.bool),
    )


@dataclass(frozen=True)
class StreamWindows:
    """Windows of one text, carried over from batch to batch or shuffled."""

    text: np.ndarray
    rows: int
    length: int
    carried: bool
    seed: int
    fingerprint: str

    @staticmethod
    def of(
        text: np.ndarray,
        *,
        batch_tokens: int,
        length: int,
        carried: bool,
        seed: int,
        fingerprint: str,
    ) -> "StreamWindows":
        """As many rows as fill a batch, fewer if the text is short."""
        length = min(length, len(text) - 1)
        rows = max(1, min(round(batch_tokens / length), (len(text) - 1) // length))
        return StreamWindows(text, rows, length, carried, seed, fingerprint)

    def stream(self, cursor: Places | None) -> Iterator[tuple[TextBatch, Places]]:
        epoch, first = (0, 0) if cursor is None else (cursor["epoch"], cursor["batch"])
        while True:
            begins = self._begins(epoch)
            for number in range(first, len(begins)):
                places = begins[number][:, None] + np.arange(self.length)
                fresh = torch.full((self.rows,), number == 0 or not self.carried)
                tokens, targets = (torch.from_numpy(self.text[places + ahead]) for ahead in (0, 1))
                yield TextBatch(tokens, targets, fresh), {"epoch": epoch, "batch": number + 1}
            epoch, first = epoch + 1, 0

    def _begins(self, epoch: int) -> np.ndarray:
        """Where the windows of each batch of an epoch begin, [batch, row]."""
        num_tokens = len(self.text) - 1
        needed = self.rows * self.length
        # Every epoch starts at another offset, as far as the text is long enough.
        shift = int(
            numpy_generator(self.seed, "shift", epoch).integers(
                min(self.length, num_tokens - needed + 1)
            )
        )
        if self.carried:
            columns = (num_tokens - shift) // self.rows // self.length
            starts = shift + np.arange(self.rows) * columns * self.length
            return starts[None] + np.arange(columns)[:, None] * self.length
        windows = (num_tokens - shift) // self.length
        order = permute(np.arange(windows), windows, key=(self.seed, "epoch", epoch))
        whole = windows - windows % self.rows
        return (shift + order[:whole] * self.length).reshape(-1, self.rows)
