"""Static buffers for decoding on a GPU: caches and tables of fixed shape, used for many batches.

A decoding step on tensors of fixed shape and address can be recorded once as a CUDA graph and then
replayed (static_step.py, decoding/engines/recorded.py). Sizes are rounded up (sentences to 1, 2, 3,
4, 6, 8, 12, …; lengths to powers of two), so a file of thousands of sentences needs a handful of
buffers, each with one recorded step. A recorded step reads the weights where they lie, so it stays
valid when they change in place (an update of a training); only what was computed from them is
computed again (`read_weights`). When half of the sentences are done, the others continue in
smaller buffers: shorter tables over the same caches, so only integers are moved.

    bytes = layers · dim · 2 · (rows · time + sentences · source) · size of a number
            + 4 · rows · time

The last term is the table that says which row of the cache holds each position of a hypothesis
(attention/cache_slot_attention.py).

Tested against: models/transformer_stepper.py, row by row, through reorders, smaller buffers and a
second batch in the same buffers or in others at the same place.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headwise.gpu.graph_replay import Recording
from headwise.models.packed_sources import PackedSources, pack_sources
from headwise.models.static_step import LayerCache, StaticStep, Tables

SHORTEST = 32
MAX_ENCODINGS = 64
"""Recorded encoders of different shapes kept with buffers; those not used for longest go first."""

Kept = TypeVar("Kept")


def round_sentences(count: int) -> int:
    """The next of 1, 2, 3, 4, 6, 8, 12, 16, 24, …: at most a third is padding."""
    power = 1 << (count - 1).bit_length()
    return power // 4 * 3 if power >= 4 and count <= power // 4 * 3 else power


def round_finely(count: int) -> int:
    """The next multiple of an eighth of the next power of two: less than a fifth is padding."""
    step = max(1, (1 << (count - 1).bit_length()) // 8)
    return -(-count // step) * step


def round_length(length: int, *, limit: int | None) -> int:
    """The next power of two from 32 on, but no more than the positions a model has."""
    rounded = max(SHORTEST, 1 << (length - 1).bit_length())
    return rounded if limit is None else max(length, min(rounded, limit))


class CacheMemory:
    """Memory that buffers of several sizes use in turn.

    What one batch has left there is overwritten by the next, or never read: nothing is read that
    the batch itself has not written. Recorded steps know addresses, so it grows only when no
    buffers lie in it.
    """

    def __init__(self) -> None:
        self._flat: Tensor | None = None

    def holds(self, count: int) -> bool:
        return self._flat is not None and count <= len(self._flat)

    def grow(self, count: int, *, like: Tensor) -> None:
        self._flat = None  # free before more is asked for
        self._flat = like.new_zeros(count)

    def take(self, *shapes: tuple[int, ...]) -> list[Tensor]:
        """Tensors of these shapes, one after the other from the beginning on."""
        assert self._flat is not None
        sizes = list(map(math.prod, shapes))
        parts = self._flat[: sum(sizes)].split(sizes)
        return [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]


class _Caches:
    """What buffers of all sizes over the same caches share."""

    def __init__(
        self,
        decoder: StaticStep,
        *,
        num_sentences: int,
        width: int,
        max_length: int,
        source_length: int,
        memory: CacheMemory | None,
    ) -> None:
        self.decoder, self.width, self.max_length = decoder, width, max_length
        model = decoder.model
        like = model.output.weight.detach()
        self.device, self.vocab, self.source_limit = like.device, like.shape[0], source_length
        own = (max_length, num_sentences * width, like.shape[1])
        # One sentence more than there are: the padding of the encoder's rows goes there.
        shapes = (own, own, (num_sentences + 1, source_length, 2 * like.shape[1]))
        every = shapes * len(model.decoder)
        tables = [like.new_zeros(one) for one in every] if memory is None else memory.take(*every)
        self.layers = [LayerCache(*tables[i : i + 3]) for i in range(0, len(tables), 3)]
        self.positions = self._read_positions()
        self.time = torch.zeros(1, dtype=torch.long, device=self.device)

    def _read_positions(self) -> Float[Tensor, "time dim"]:
        model, every = self.decoder.model, torch.arange(self.max_length, device=self.device)[None]
        assert model.target_embedding.positions is not None, "StaticStep.supports"
        found = model.target_embedding.positions(every, length=self.max_length)[0]
        return found.detach().to(model.output.weight.dtype)

    def read_weights(self) -> None:
        """Positions may be learned."""
        self.positions.copy_(self._read_positions())


class DecoderBuffers:
    """Tables for `num_sentences` sentences of `width` rows, over caches that may be shared."""

    def __init__(self, caches: _Caches, num_sentences: int) -> None:
        self._caches, self.num_sentences = caches, num_sentences
        self.decoder, self.width, self.max_length = caches.decoder, caches.width, caches.max_length
        self.device, self.vocab, self.source_limit = (
            caches.device,
            caches.vocab,
            caches.source_limit,
        )
        self.caches, self.positions, self.time = caches.layers, caches.positions, caches.time
        num_rows = num_sentences * self.width
        self.rows = torch.arange(num_rows, dtype=torch.int32, device=self.device)
        self.slots = self.rows.repeat(self.max_length, 1)
        self.sentence = torch.arange(num_sentences, device=self.device)
        self.source_length = torch.ones_like(self.sentence)
        self._kept: dict[Hashable, object] = {}
        self._encodings: dict[tuple[int, int], _Encoding] = {}

    @staticmethod
    def allocate(
        decoder: StaticStep,
        memory: CacheMemory | None = None,
        /,
        *,
        num_sentences: int,
        width: int,
        max_length: int,
        source_length: int,
    ) -> "DecoderBuffers":
        """Buffers with caches of their own, or in a memory that holds them."""
        caches = _Caches(
            decoder,
            num_sentences=num_sentences,
            width=width,
            max_length=max_length,
            source_length=source_length,
            memory=memory,
        )
        return DecoderBuffers(caches, num_sentences)

    @staticmethod
    def num_numbers(
        decoder: StaticStep, *, num_sentences: int, width: int, max_length: int, source_length: int
    ) -> int:
        """How many numbers the caches hold."""
        model = decoder.model
        positions = num_sentences * width * max_length + (num_sentences + 1) * source_length
        return 2 * len(model.decoder) * model.output.weight.shape[1] * positions

    @property
    def num_bytes(self) -> int:
        """What the caches hold; the rest is small."""
        return sum(
            table.numel() * table.element_size()
            for cache in self.caches
            for table in (cache.keys, cache.values, cache.source)
        )

    def read_weights(self) -> None:
        """The weights have changed in place: what was computed from them is computed again, where
        recorded steps read it."""
        self._caches.read_weights()

    def close(self) -> None:
        """Free the memory now: recorded steps refer to themselves, so the collector comes late."""
        self._kept.clear()
        self._encodings.clear()
        self.caches.clear()

    def recall(self, key: Hashable, make: Callable[[], Kept]) -> Kept:
        """What was made under this key at the first call."""
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]  # type: ignore[return-value]

    def record(self, function: Callable[[], None]) -> Callable[[], None]:
        """On a GPU, from its second call on, one recorded graph."""
        return Recording(function, self.device)

    def fill(self, sources: Sequence[Sequence[int]]) -> None:
        """Encode these sources and begin; places without a source hold an empty sentence."""
        self.time.zero_()
        self.slots.copy_(self.rows.expand_as(self.slots))
        packed = pack_sources(sources, limit=self.source_limit)
        shape = (round_finely(packed.num_rows), packed.row_length)
        encoding = self._encodings.pop(shape, None) or _Encoding(self, *shape)
        if len(self._encodings) >= MAX_ENCODINGS:
            self._encodings.pop(next(iter(self._encodings)))
        self._encodings[shape] = encoding  # the last ones are those used last
        encoding(packed)

    def step(self, tokens: Int[Tensor, " row"]) -> Float[Tensor, "row vocab"]:
        """Feed one token per row; logits of the next. Keys and values are not moved."""
        tables = Tables(self.time, self.slots, self.sentence, self.source_length)
        position = self.positions.index_select(0, self.time)
        logits = self.decoder.step(tokens, position, self.caches, tables)
        self.time.add_(1)
        return logits

    def follow(self, index: Int[Tensor, " row"]) -> None:
        """Row i continues row index[i], its last token included."""
        moved = self.slots.index_select(1, index)
        # The last token lies in the row's own slot.
        moved.index_copy_(0, self.time - 1, index.to(moved.dtype)[None])
        self.slots.copy_(moved)

    def narrow(self, num_sentences: int, index: Int[Tensor, " new_row"]) -> "DecoderBuffers":
        """Smaller buffers over the same caches, in which row i continues row index[i] of these."""
        smaller = self.recall(
            ("narrower", num_sentences), lambda: DecoderBuffers(self._caches, num_sentences)
        )
        kept = index[:: self.width] // self.width
        written = torch.arange(self.max_length, device=self.device)[:, None] < self.time
        smaller.slots.copy_(torch.where(written, self.slots.index_select(1, index), smaller.rows))
        smaller.sentence.copy_(self.sentence[kept])
        smaller.source_length.copy_(self.source_length[kept])
        return smaller


class _Encoding:
    """The encoder at one size of packed rows, recorded; it writes keys and values of all layers."""

    def __init__(self, buffers: DecoderBuffers, num_rows: int, row_length: int) -> None:
        self.buffers, self.model = buffers, buffers.decoder.model
        self.tables = torch.zeros(
            (4, num_rows, row_length), dtype=torch.long, device=buffers.device
        )
        self.lengths = torch.ones(buffers.num_sentences, dtype=torch.long, device=buffers.device)
        self.play = buffers.record(self._encode)

    def __call__(self, packed: PackedSources) -> None:
        nowhere = self.buffers.num_sentences * self.buffers.source_limit
        tables, lengths = packed.lay_out(
            self.tables.shape[1],
            num_sentences=self.buffers.num_sentences,
            stride=self.buffers.source_limit,
            nowhere=nowhere,
        )
        self.tables.copy_(torch.from_numpy(tables))
        self.lengths.copy_(torch.from_numpy(lengths))
        self.play()

    def _encode(self) -> None:
        tokens, segment, position, place = self.tables
        memory = self.model.encode(tokens, segment=segment, position=position)
        for block, cache in zip(self.model.decoder, self.buffers.caches, strict=True):
            made = block.cross_attention.key_value(memory)
            cache.source.flatten(0, 1).index_copy_(0, place.flatten(), made.flatten(0, 1))
        self.buffers.source_length.copy_(self.lengths)


def places_of(weights: Sequence[Tensor]) -> tuple[int, ...]:
    """Where the weights lie: a recorded step reads them there."""
    return tuple(weight.data_ptr() for weight in weights)


def versions_of(weights: Sequence[Tensor]) -> tuple[int, ...]:
    """How often the weights were changed where they lie."""
    return tuple(weight._version for weight in weights)
