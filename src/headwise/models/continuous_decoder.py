"""A decoder for continuous batching: new sentences enter a running batch at any step.

All rows write their keys and values at the same column of the cache; its index is called the clock.
A row whose sentence began at clock b is at position clock − b. It attends to the columns from b on,
so it never sees what an earlier sentence wrote in the same row:

    clock                    0  1  2  3  4  5
    row with one sentence    a  b  c  d  e  f       began at 0, now at position 5
    row with two sentences   p  q  r  x  y  z       p q r is done; x y z began at 3, now at 2

A step writes one slice, as in an ordinary batch, and replacing a finished sentence costs only the
encoding of the new source. New sources are encoded in packed rows, because they are few and differ
in length, and padding would cost as much as words. Columns written before all present rows began
are dropped. This decoder runs on a CPU, for models that keep all keys and values; on a GPU, static
buffers are used instead (static_buffers.py).

Tested against: each sentence decoded alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from headwise.attention.cache import RollingCache
from headwise.attention.kernels.full import FullAttention
from headwise.attention.kernels.fused import FusedAttention
from headwise.attention.masks import Mask, padding
from headwise.attention.multi_head import KeysValues
from headwise.models.encoder_decoder import EncoderDecoder
from headwise.models.packed_sources import pack_sources

MAX_ROW = 4_096
"""Positions in a row of the encoder, if the model sets no limit."""


@dataclass(frozen=True)
class _View:
    begin: Int[Tensor, " row"]
    sources: list[KeysValues]
    cross_mask: Mask


class ContinuousDecoder:
    """Rows that begin and end independently, one hypothesis each
    (`decoding/engines/continuous.py`)."""

    @staticmethod
    def supports(model: EncoderDecoder) -> bool:
        """Whether all keys are kept, a mask may hide some, and positions are added to x."""
        attentions = [
            one for block in model.decoder for one in (block.self_attention, block.cross_attention)
        ]
        return bool(attentions) and all(
            one.relation is None and type(one.kernel) in (FullAttention, FusedAttention)
            for one in attentions
        )

    def __init__(self, model: EncoderDecoder, *, source_limit: int | None) -> None:
        """`source_limit`: the most positions a row of the encoder may have."""
        self.model = model
        self._source_limit = MAX_ROW if source_limit is None else source_limit
        self._caches: list[RollingCache] = []
        self._sources: list[tuple[Tensor, Tensor]] = []
        """Keys and values of each layer, [row, source, head, head_dim]."""
        self._lengths: list[int] = []
        self._begin: list[int] = []
        self._time = 0
        self._view: _View | None = None

    @torch.no_grad()
    def arrange(self, kept: Sequence[int], sources: Sequence[Sequence[int]]) -> None:
        """Keep the rows `kept`, in this order, and add one for each new source; drop the others."""
        num_rows = len(kept) + len(sources)
        # The rows of new sentences hold anything finite until they are written: a mask hides it.
        index = torch.tensor([*kept, *([kept[0]] * len(sources))] if kept else [], dtype=torch.long)
        self._lengths = [*(self._lengths[row] for row in kept), *([1] * len(sources))]
        self._begin = [*(self._begin[row] for row in kept), *([self._time] * len(sources))]
        for cache in self._caches:
            cache.reorder(index)
        self._sources = [(k[index], v[index]) for k, v in self._sources]
        self._view = None
        if not kept:
            self._caches, self._sources = [], []
        if sources:
            self.replace(range(len(kept), num_rows), sources)

    @torch.no_grad()
    def replace(self, places: Sequence[int], sources: Sequence[Sequence[int]]) -> None:
        """Put new sentences into the rows of finished ones."""
        longest = max(map(len, sources)) + 1
        packed = pack_sources(sources, limit=self._source_limit)
        num_rows = len(self._lengths)
        tables, _ = packed.lay_out(
            packed.num_rows, num_sentences=len(sources), stride=longest, nowhere=-1
        )
        tokens, segment, position, destination = torch.from_numpy(tables)
        memory = self.model.encode(tokens, segment=segment, position=position)
        token = torch.nonzero(destination.view(-1) >= 0)[:, 0]
        where = destination.view(-1)[token]
        index = torch.tensor(places)[where // longest], where % longest
        for number, block in enumerate(self.model.decoder):
            k, v = (
                one.transpose(1, 2).flatten(0, 1)[token]
                for one in block.cross_attention.keys_values(memory)
            )
            if number == len(self._sources):
                empty = k.new_zeros((num_rows, longest, *k.shape[1:]))
                self._sources.append((empty, empty.clone()))
                like = k[:, : block.self_attention.num_heads]  # cross-attention may have more
                self._caches.append(RollingCache.beginning(num_rows, like=like))
            old_k, old_v = self._sources[number]
            self._sources[number] = (
                _widen(old_k, longest).index_put_(index, k),
                _widen(old_v, longest).index_put_(index, v),
            )
        for place, source in zip(places, sources, strict=True):
            self._lengths[place], self._begin[place] = len(source) + 1, self._time
        self._view = None

    def forget(self, row: int) -> None:
        """This sentence is done. Its row is padding until it is replaced or dropped."""
        self._lengths[row], self._begin[row] = 1, self._time
        self._view = None

    @torch.no_grad()
    def step(self, tokens: Int[Tensor, "row"]) -> Float[Tensor, "row vocab"]:
        """Feed one token to every row; log-probabilities of the next, to be overwritten at will."""
        view = self._view = self._view or self._look()
        first = min(self._begin)
        position = (self._time - view.begin)[:, None]
        x = self.model.target_embedding(tokens[:, None], position, length=self._time - first + 1)
        clock = torch.arange(first, self._time + 1)
        kernel = self.model.decoder[0].self_attention.kernel
        own = kernel.prepare(
            padding(clock >= view.begin[:, None]).ignoring_blind(), 1, len(clock), tokens.device
        )
        self._time += 1
        for block, cache, source in zip(
            self.model.decoder, self._caches, view.sources, strict=True
        ):
            cache.keep_last(len(clock) - 1)
            x = block.step(x, cache, source=source, cross_mask=view.cross_mask, mask=own)
        return self.model.logits(self.model.decoder_norm(x)[:, 0]).float().log_softmax(-1)

    def _look(self) -> "_View":
        """What stays the same until a sentence comes or goes."""
        longest, lengths = max(self._lengths), torch.tensor(self._lengths)
        mask = padding(torch.arange(longest) < lengths[:, None]).ignoring_blind()
        kernel = self.model.decoder[0].cross_attention.kernel
        sources = [
            (k[:, :longest].transpose(1, 2), v[:, :longest].transpose(1, 2))
            for k, v in self._sources
        ]
        return _View(
            torch.tensor(self._begin), sources, kernel.prepare(mask, 1, longest, lengths.device)
        )


def _widen(table: Float[Tensor, "row source head head_dim"], length: int) -> Tensor:
    """Make columns for sources of this length; a mask hides those beyond the end of a source."""
    return (
        table
        if table.shape[1] >= length
        else F.pad(table, (0, 0, 0, 0, 0, length - table.shape[1]))
    )
