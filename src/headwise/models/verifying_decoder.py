"""A decoder that verifies drafts: it scores several tokens of every row in one pass.

A row is one sentence. `score` feeds each row a block of tokens behind those it has kept and returns
the log-probabilities of what follows each of them. `accept` says how many tokens of its block each
row keeps; the others are cut from the cache, whose rows each have their own length
(attention/ragged_cache.py):

    fed        y_n   d_1   d_2   d_3      the last verified token and three drafts
    scored     p_0   p_1   p_2   p_3      p_j: log-probabilities of the token after it
    kept       y_n   d_1                  d_1 was right, d_2 was not: accept(2)

A pass over a block costs little more than a step of one token as long as reading the weights (on a
CPU) or starting the operations (on a GPU) takes the time. Columns past the end of a row's block,
where other rows have longer ones, are computed and never read.

Tested against: the same tokens fed one by one to `TransformerStepper`, with blocks of every length.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headwise.attention.kernels.full import FullAttention
from headwise.attention.kernels.fused import FusedAttention
from headwise.attention.masks import Mask, explicit, padding
from headwise.attention.ragged_cache import BlockPlace, RaggedCache
from headwise.models.encoder_decoder import EncoderDecoder
from headwise.text.tokenizer import BOS, PAD


class VerifyingDecoder:
    """Rows of one batch, each with its own length and its own accepted drafts."""

    @staticmethod
    def supports(model: EncoderDecoder) -> bool:
        """Whether all keys are kept, a mask may hide some, and a row's positions may be told."""
        attentions = [
            one for block in model.decoder for one in (block.self_attention, block.cross_attention)
        ]
        return all(
            type(one.kernel) in (FullAttention, FusedAttention)
            and (one.relation is None or one.relation.needs in ("rotations", "distances"))
            for one in attentions
        )

    def __init__(
        self,
        model: EncoderDecoder,
        memory: Float[Tensor, "row source dim"],
        real: Tensor | None,
        *,
        max_length: int,
        block: int,
    ) -> None:
        """`real` marks the tokens of the sources; None: all. A block has at most `block` tokens."""
        self.model = model
        self._last = max_length - 1
        self._memory, self._real = memory, real
        self._lengths = torch.zeros(len(memory), dtype=torch.long, device=memory.device)
        self._longest = 0
        self._sources = [block.cross_attention.keys_values(memory) for block in model.decoder]
        self._caches = [
            RaggedCache.empty(
                num_rows=len(memory),
                room=max_length + block,
                num_heads=layer.self_attention.num_heads,
                head_dim=layer.self_attention.head_dim,
                like=memory,
            )
            for layer in model.decoder
        ]
        self._columns = torch.arange(max_length + block, device=memory.device)
        self._first_index = self._index_rows(len(memory))
        self._cross_mask = _cross_mask(real)
        self._hidden = memory.new_zeros((len(memory), 1, memory.shape[-1]))
        self._state = self._hidden[:, 0]

    @property
    def device(self) -> torch.device:
        return self._lengths.device

    def _index_rows(self, num_rows: int) -> Int[Tensor, "row 1"]:
        """Where each row begins in a cache whose rows and columns are joined to one axis."""
        rows = torch.arange(num_rows, device=self.device)[:, None]
        return rows * len(self._columns)

    @torch.no_grad()
    def score(self, tokens: Int[Tensor, "row step"]) -> Float[Tensor, "row step vocab"]:
        """Feed a block to every row; log-probabilities after each token, to be overwritten."""
        place = self._place(tokens.shape[1])
        # Columns past the last position hold no token that can be accepted.
        position = place.position.clamp(max=self._last)
        x = self.model.target_embedding(
            tokens, position, length=min(place.num_keys, self._last + 1)
        )
        for block, cache, source in zip(
            self.model.decoder, self._caches, self._sources, strict=True
        ):
            x = block.extend(x, cache, place, source=source, cross_mask=self._cross_mask)
        self._hidden = self.model.decoder_norm(x)
        return self.model.logits(self._hidden).float().log_softmax(-1)

    def _place(self, num_steps: int) -> BlockPlace:
        position = self._lengths[:, None] + self._columns[:num_steps]
        num_keys = self._longest + num_steps
        index = (self._first_index + position).flatten()
        mask = Mask()
        if num_steps > 1 or len(position) > 1:
            seen = self._columns[:num_keys] <= position[:, :, None]
            kernel = self.model.decoder[0].self_attention.kernel
            mask = kernel.prepare(
                explicit(seen[:, None]).ignoring_blind(), num_steps, num_keys, self.device
            )
        return BlockPlace(position, index, num_keys, mask)

    def accept(self, counts: Sequence[int]) -> None:
        """Row i keeps the first counts[i] tokens of its block; the others are cut."""
        kept = torch.tensor(counts, device=self.device)
        self._lengths = self._lengths + kept
        self._longest = int(self._lengths.max())
        rows = torch.arange(len(kept), device=self.device)
        self._state = self._hidden[rows, (kept - 1).clamp(min=0)]

    def keep(self, rows: Sequence[int]) -> None:
        """Drop all rows but these; they stay in this order."""
        index = torch.tensor(rows, device=self.device)
        self._lengths, self._state = self._lengths[index], self._state[index]
        self._longest = int(self._lengths.max())
        self._sources = [(k[index], v[index]) for k, v in self._sources]
        self._memory = self._memory[index]
        self._real = None if self._real is None else self._real[index]
        self._cross_mask = _cross_mask(self._real)
        self._first_index = self._index_rows(len(rows))
        for cache in self._caches:
            cache.keep(index)

    @property
    def num_heads(self) -> int:
        """Draft heads of the model."""
        return 0 if self.model.draft_heads is None else self.model.draft_heads.count

    @torch.no_grad()
    def look_ahead(self, tokens: Int[Tensor, " row"], count: int) -> Int[Tensor, "row ahead"]:
        """What the first `count` heads expect after these tokens, the last ones of each row."""
        heads, embedding = self.model.draft_heads, self.model.target_embedding
        assert heads is not None, "num_heads"
        ahead = heads(self._state, embedding.table(tokens) * embedding.scale, count=count)
        return self.model.logits(ahead).argmax(-1).t()

    @torch.no_grad()
    def guess_block(self, written: Sequence[Sequence[int]], count: int) -> Int[Tensor, "row ahead"]:
        """What the draft decoder expects after the tokens written in each row, `count` at once."""
        drafter = self.model.draft_decoder
        assert drafter is not None, "draft_block"
        width = max(map(len, written)) + count
        tokens = torch.tensor(
            [[BOS, *row, *[PAD] * (width - 1 - len(row))] for row in written], device=self.device
        )
        lengths = torch.tensor([len(row) for row in written], device=self.device)[:, None]
        column = torch.arange(width, device=self.device).expand_as(tokens)
        source = self._real if self._real is not None else self._memory.new_ones(1, 1)
        hidden = drafter(
            tokens,
            column <= lengths,
            self._memory,
            embedding=self.model.target_embedding,
            target_segment=(column < lengths + count).long(),
            source_segment=source.long().expand(self._memory.shape[:2]),
            target_position=column.clamp(max=self._last),
        )
        ahead = lengths + torch.arange(count, device=self.device)
        states = hidden[torch.arange(len(tokens), device=self.device)[:, None], ahead]
        return self.model.logits(states).argmax(-1)


def _cross_mask(real: Tensor | None) -> Mask:
    return Mask() if real is None else padding(real)
