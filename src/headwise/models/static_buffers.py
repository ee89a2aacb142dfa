"""Room for a batch: caches, tables and recorded steps that are made once and serve every batch of about that size.

Sizes are rounded up (sentences to 1, 2, 3, 4, 6, 8, 12, …; lengths to powers of two), so a file of thousands of sentences needs
a handful of rooms, and each room records its step once. When half of the sentences are done, the others go on in a narrower
room: a view of the same caches with shorter tables, so nothing but integers moves.

Bytes of a room: layers · dim · 2 · (rows · time + sentences · source) · size of a number, plus 4 · rows · time for the table.

Tested against: models/transformer_stepper.py, row by row, through reorders, narrower rooms and a second batch in the same room.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headwise.gpu.graph_replay import Recording
from headwise.models.packed_sources import PackedSources, pack_sources
from headwise.models.static_step import FixedDecoder, LayerCache, Tables

SHORTEST = 32

Thing = TypeVar("Thing")


def round_sentences(count: int) -> int:
    """The next of 1, 2, 3, 4, 6, 8, 12, 16, 24, …: at most a third is filling."""
    power = 1 << (count - 1).bit_length()
    return power // 4 * 3 if power >= 4 and count <= power // 4 * 3 else power


def round_finely(count: int) -> int:
    """The next multiple of an eighth of the next power of two: less than a fifth is filling."""
    step = max(1, (1 << (count - 1).bit_length()) // 8)
    return -(-count // step) * step


def round_length(length: int, *, limit: int | None) -> int:
    """The next power of two from 32 on, but no more than the positions a model has."""
    rounded = max(SHORTEST, 1 << (length - 1).bit_length())
    return rounded if limit is None else max(length, min(rounded, limit))


class Room:
    """Fixed tensors for `num_sentences` sentences of `width` rows; the first call of a recorded step runs it plainly."""

    def __init__(
        self,
        decoder: FixedDecoder,
        *,
        num_sentences: int,
        width: int,
        max_length: int,
        source_length: int,
    ) -> None:
        self.decoder, self.num_sentences, self.width, self.max_length = (
            decoder,
            num_sentences,
            width,
            max_length,
        )
        model, num_rows = decoder.model, num_sentences * width
        like = model.output.weight.detach()
        self.device, self.vocab, self.source_limit = like.device, like.shape[0], source_length
        shape = (max_length, num_rows, like.shape[1])
        self.caches = [
            LayerCache(
                like.new_zeros(shape),
                like.new_zeros(shape),
                # One sentence more than there are: what fills up the encoder's rows goes there.
                like.new_zeros((num_sentences + 1, source_length, 2 * like.shape[1])),
            )
            for _ in model.decoder
        ]
        every = torch.arange(max_length, device=self.device)[None]
        assert model.target_embedding.positions is not None, "FixedDecoder.suits"
        self.positions = model.target_embedding.positions(every, length=max_length)[0].to(
            like.dtype
        )
        self._share(torch.zeros(1, dtype=torch.long, device=self.device))

    def _share(self, time: Tensor) -> None:
        """Tables of one's own; the time is that of all rooms over the same caches."""
        num_rows = self.num_sentences * self.width
        self.time = time
        self.rows = torch.arange(num_rows, dtype=torch.int32, device=self.device)
        self.slots = self.rows.repeat(self.max_length, 1)
        self.sentence = torch.arange(self.num_sentences, device=self.device)
        self.source_length = torch.ones_like(self.sentence)
        self._kept: dict[Hashable, object] = {}

    @property
    def num_bytes(self) -> int:
        """What the caches hold; the rest is small."""
        return sum(
            table.numel() * table.element_size()
            for cache in self.caches
            for table in (cache.keys, cache.values, cache.source)
        )

    def close(self) -> None:
        """Let the memory go now: what was recorded refers to itself, and would wait for the collector of garbage."""
        self._kept.clear()
        self.caches.clear()

    def recall(self, key: Hashable, make: Callable[[], Thing]) -> Thing:
        """What was made under this key when it was first asked for."""
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]  # type: ignore[return-value]

    def record(self, function: Callable[[], None]) -> Callable[[], None]:
        """On a GPU, from its second call on, one recorded graph."""
        return Recording(function, self.device)

    def enter(self, sources: Sequence[Sequence[int]]) -> None:
        """Encode these sources and begin; places that are left over hold an empty sentence."""
        self.time.zero_()
        self.slots.copy_(self.rows.expand_as(self.slots))
        packed = pack_sources(sources, limit=self.source_limit)
        shape = (round_finely(packed.num_rows), packed.row_length)
        self.recall(("encoding", shape), lambda: _Encoding(self, *shape))(packed)

    def step(self, tokens: Int[Tensor, " row"]) -> Float[Tensor, "row vocab"]:
        """Feed one token per row; logits of the next. What the rows remember stays at the same place."""
        tables = Tables(self.time, self.slots, self.sentence, self.source_length)
        position = self.positions.index_select(0, self.time)
        logits = self.decoder.step(tokens, position, self.caches, tables)
        self.time.add_(1)
        return logits

    def follow(self, index: Int[Tensor, " row"]) -> None:
        """Row i continues what row index[i] remembers, its last token included."""
        moved = self.slots.index_select(1, index)
        moved.index_copy_(
            0, self.time - 1, index.to(moved.dtype)[None]
        )  # the last token lies in the row's own slot
        self.slots.copy_(moved)

    def narrow(self, num_sentences: int, index: Int[Tensor, " new_row"]) -> "Room":
        """A smaller room over the same caches, in which row i continues row index[i] of this one."""
        room = self.recall(("narrower", num_sentences), lambda: self._narrower(num_sentences))
        kept = index[:: self.width] // self.width
        written = torch.arange(self.max_length, device=self.device)[:, None] < self.time
        room.slots.copy_(torch.where(written, self.slots.index_select(1, index), room.rows))
        room.sentence.copy_(self.sentence[kept])
        room.source_length.copy_(self.source_length[kept])
        return room

    def _narrower(self, num_sentences: int) -> "Room":
        room = Room.__new__(Room)
        room.decoder, room.num_sentences, room.width, room.max_length = (
            self.decoder, num_sentences, self.width, self.max_length,
        )  # fmt: skip
        room.device, room.vocab, room.source_limit = self.device, self.vocab, self.source_limit
        room.caches, room.positions = self.caches, self.positions
        room._share(self.time)
        return room


class _Encoding:
    """The encoder at one size of packed rows: sources in, keys and values of every layer out, recorded."""

    def __init__(self, room: Room, num_rows: int, row_length: int) -> None:
        self.room, self.model = room, room.decoder.model
        self.tables = torch.zeros((4, num_rows, row_length), dtype=torch.long, device=room.device)
        self.lengths = torch.ones(room.num_sentences, dtype=torch.long, device=room.device)
        self.play = room.record(self._encode)

    def __call__(self, packed: PackedSources) -> None:
        nowhere = self.room.num_sentences * self.room.source_limit
        tables, lengths = packed.lay_out(
            self.tables.shape[1],
            num_sentences=self.room.num_sentences,
            stride=self.room.source_limit,
            nowhere=nowhere,
        )
        self.tables.copy_(torch.from_numpy(tables))
        self.lengths.copy_(torch.from_numpy(lengths))
        self.play()

    def _encode(self) -> None:
        tokens, segment, position, place = self.tables
        memory = self.model.encode(tokens, segment=segment, position=position)
        for block, cache in zip(self.model.decoder, self.room.caches, strict=True):
            made = block.cross_attention.key_value(memory)
            cache.source.flatten(0, 1).index_copy_(0, place.flatten(), made.flatten(0, 1))
        self.room.source_length.copy_(self.lengths)


def fingerprint(weights: Sequence[Tensor]) -> tuple[tuple[int, int], ...]:
    """Where the weights lie and how often they were changed: recorded steps hold for these only."""
    return tuple((weight.data_ptr(), weight._version) for weight in weights)
