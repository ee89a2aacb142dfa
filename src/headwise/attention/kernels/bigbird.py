"""BigBird: a token attends to neighbouring blocks, a few random blocks, and global blocks.

    a sentence is cut into blocks; query block b attends to key block c if one of these holds:
        |b − c| ≤ num_window_blocks // 2                 window
        c or b is one of the first or last blocks        global: half of num_global_blocks
                                                         at each end
        c ∈ random(b)                                    num_random_blocks of the others

Zaheer et al. 2020, the internal construction (ITC). Global blocks attend to all blocks, and all
blocks attend to them. Window, global and random links together form a sparse graph in which any two
tokens are a few steps apart; with global tokens the model can still approximate any function of
sequences. Random blocks are not stored: they are computed from the index of a block and the number
of blocks in its sentence, so they are the same in every layer, run and machine and after loading.
The blocks that window and global links leave are divided into num_random_blocks equal ranges, and
one block is drawn from each, so none is drawn twice. A sentence with fewer blocks than the pattern
links is attended to in full.

Cost for n tokens: n · block · (num_window_blocks + 2 · num_global_blocks + num_random_blocks)
pairs; in packed rows about twice as many are computed, because sentences do not begin at block
boundaries. Encoder only: random and last blocks depend on a length that a decoder does not know
yet.

Tested against: transformers' BigBirdBlockSparseAttention given its random blocks;
attention/kernels/full.py under the same pattern.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch
from jaxtyping import Bool, Int
from pydantic import Field
from torch import Tensor

from headwise.attention.capabilities import (
    EVERY_MASK,
    LOOKS_AHEAD,
    ONE_SEQUENCE,
    AttentionKind,
    KernelSize,
    MaskPart,
    Role,
)
from headwise.attention.kernels.longformer import first_tokens
from headwise.attention.masks import Mask, number_zero
from headwise.attention.multi_head import Kernel
from headwise.attention.packed_segments import Sentences, find_sentences
from headwise.attention.refusals import only_self_attention, refuse_causal
from headwise.attention.size_checks import BoundedSize, check_sizes
from headwise.attention.sparse.gathered import Layout, in_eights
from headwise.attention.sparse.sparse_attention import (
    Form,
    SparseAttention,
    SparsePlan,
    dense_by_pairs,
)
from headwise.attention.sparse.wide_rows import WideRows
from headwise.settings.kind import Words


@dataclass(frozen=True, eq=False)
class RowPattern:
    """A row that is one sentence of `length` tokens: everything is computed, no table is read."""

    kernel: "BigBirdAttention"
    length: int | Int[Tensor, ""]
    """A plain number is a constant of the kernel it is compiled into."""

    @property
    def sizes(self) -> tuple[int, int]:
        return 1, 1

    @property
    def num_alike(self) -> int:
        return self.kernel.block

    def at_any_length(self, device: torch.device) -> "RowPattern":
        assert isinstance(self.length, int)
        return replace(self, length=torch.full((), self.length, device=device))

    def at(self, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        kernel = self.kernel
        count = -(-self.length // kernel.block)
        own, other = query // kernel.block, key // kernel.block
        seen = (other - own >= -kernel.reach) & (other - own <= kernel.reach)
        for block in (own, other):
            seen = seen | (block < kernel.num_first) | (block >= count - kernel.num_last)
        for number in range(kernel.num_random_blocks):
            seen = seen | (other == kernel.random_block(own, own * 0 + count, number))
        return seen

    def dense(
        self, num_queries: int, num_keys: int, device: torch.device
    ) -> Bool[Tensor, "#batch 1 query key"]:
        return dense_by_pairs(self, num_queries, num_keys, device)


@dataclass(frozen=True, eq=False)
class BigBirdPattern:
    """Blocks are counted from the beginning of each sentence."""

    block: Int[Tensor, "#batch time"]
    is_global: Bool[Tensor, "#batch time"]
    random: tuple[Int[Tensor, "#batch time"], ...]
    """The random blocks of each token's block; −1 for none."""
    reach: int

    @property
    def sizes(self) -> tuple[int, int]:
        return self.block.shape[0], 1

    def at(self, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        row = batch if self.block.shape[0] > 1 else number_zero(batch)
        own, other = self.block[row, query], self.block[row, key]
        distance = other - own
        seen = (distance >= -self.reach) & (distance <= self.reach)
        seen = seen | self.is_global[row, query] | self.is_global[row, key]
        for chosen in self.random:
            seen = seen | (other == chosen[row, query])
        return seen

    def dense(
        self, num_queries: int, num_keys: int, device: torch.device
    ) -> Bool[Tensor, "#batch 1 query key"]:
        return dense_by_pairs(self, num_queries, num_keys, device)


@dataclass(frozen=True)
class BigBirdAttention(SparseAttention):
    kind: ClassVar[str] = "bigbird"
    block: int = 64
    num_window_blocks: int = 3
    num_global_blocks: int = 2
    num_random_blocks: int = 3
    dropout_rate: float = 0.0
    form: Form = "auto"

    def __post_init__(self) -> None:
        check_sizes(
            "BigBirdAttention",
            BoundedSize("block", self.block),
            BoundedSize("num_window_blocks", self.num_window_blocks),
            BoundedSize("num_global_blocks", self.num_global_blocks, least=0),
            BoundedSize("num_random_blocks", self.num_random_blocks, least=0),
        )

    @property
    def reach(self) -> int:
        return self.num_window_blocks // 2

    @property
    def num_first(self) -> int:
        return (self.num_global_blocks + 1) // 2

    @property
    def num_last(self) -> int:
        return self.num_global_blocks // 2

    def plan(self, mask: Mask, num_queries: int, num_keys: int, device: torch.device) -> SparsePlan:
        refuse_causal(self.kind, mask)
        only_self_attention(self.kind, num_queries, num_keys)
        fitting = self._fit(num_keys)
        # Compared by numbers: in a compiled step the lengths are symbols, and objects that hold
        # symbols cannot be compared.
        fits = fitting.block == self.block and fitting.num_global_blocks == self.num_global_blocks
        if not fits or fitting.num_random_blocks != self.num_random_blocks:
            return fitting.plan(mask, num_queries, num_keys, device)
        sentences = find_sentences(mask, num_keys, device, kind=self.kind)
        block = (torch.arange(num_keys, device=device) - sentences.start) // self.block
        count = _num_blocks(sentences.end - sentences.start, self.block)
        # Padding belongs to no block of the sentence: it is no global token and has no random
        # blocks.
        inside = sentences.is_inside
        is_global = inside & ((block < self.num_first) | (block >= count - self.num_last))
        random = torch.where(inside[..., None], self.random_blocks(block, count), -1)
        pattern = BigBirdPattern(block, is_global, random.unbind(-1), self.reach)
        # Where a sentence may begin anywhere, its blocks and the blocks of queries are shifted
        # against each other by up to a block.
        wider = 0 if sentences.rows == "whole" else self.block - 1
        near = self.reach * self.block + wider
        first, last = (
            (wider > 0) * self.num_first * self.block,
            (wider > 0) * self.num_last * self.block,
        )
        layout = Layout(
            num_queries, num_keys, self.block, max(near, last), max(near, first), device
        )
        layout = layout.with_extra(self._far_keys(sentences, pattern, layout))
        if self.num_global_blocks == 0:
            return SparsePlan(pattern, layout)
        if sentences.rows == "packed":
            return SparsePlan(
                pattern, layout, WideRows(self.block, self._targets(sentences), is_global)
            )
        rows = WideRows(num_keys, self._global_tokens(sentences), is_global, is_shared=True)
        return SparsePlan(
            RowPattern(self, num_keys) if sentences.rows == "whole" else pattern, layout, rows
        )

    def _fit(self, length: int) -> "BigBirdAttention":
        """The same pattern for rows of this length, without blocks that do not exist, which would
        be computed and then masked."""
        block = min(self.block, max(1, length))
        count = -(-length // block)
        num_global, num_random = (
            min(self.num_global_blocks, 2 * count),
            min(self.num_random_blocks, count),
        )
        return replace(
            self, block=block, num_global_blocks=num_global, num_random_blocks=num_random
        )

    def random_blocks(
        self, block: Int[Tensor, "*place"], count: Int[Tensor, "*place"]
    ) -> Int[Tensor, "*place random"]:
        """For a block of a sentence of `count` blocks, its random blocks; −1 where too few are
        left."""
        numbers = range(self.num_random_blocks)
        chosen = [self.random_block(block, count, number) for number in numbers]
        return torch.stack(chosen, -1) if chosen else block[..., None][..., :0]

    def random_block(
        self, block: Int[Tensor, "*place"], count: Int[Tensor, "*place"], number: int
    ) -> Int[Tensor, "*place"]:
        low = (block - self.reach).clamp(min=self.num_first)
        high = torch.minimum(block + self.reach, count - self.num_last - 1)
        num_near = (high - low + 1).clamp(min=0)
        left = ((count - self.num_first - self.num_last).clamp(min=0) - num_near).clamp(min=0)
        begin = left * number // self.num_random_blocks
        size = left * (number + 1) // self.num_random_blocks - begin
        chosen = self.num_first + begin + _draw(block + 977 * number, size)
        chosen = torch.where((num_near > 0) & (chosen >= low), chosen + num_near, chosen)
        return torch.where(size > 0, chosen, -1)

    def _global_tokens(self, sentences: Sentences) -> Int[Tensor, "#batch 1 target"]:
        """The first and last blocks of a row that is one sentence."""
        anywhere = torch.zeros(1, dtype=torch.long, device=sentences.start.device)
        first = first_tokens(sentences, anywhere, self.num_first * self.block)
        return torch.cat([first, self._last_tokens(sentences, anywhere)], dim=-1)

    def _far_keys(
        self, sentences: Sentences, pattern: BigBirdPattern, layout: Layout
    ) -> Int[Tensor, "#batch block extra"]:
        """For a block of queries, the global keys of the sentences at its two ends, and the random
        keys; sentences between these two lie inside the block."""
        first = layout.query[:, 0]
        last = layout.query[:, -1].clamp(max=sentences.length - 1)
        # A block of queries overlaps at most two blocks of the sentence it begins in, and one of
        # the sentence it ends in.
        token, is_new = first[None], torch.ones_like(first, dtype=torch.bool)[None]
        chosen = [self._random_tokens(sentences, pattern, token, is_new)]
        if sentences.rows != "whole":
            ending = torch.minimum(sentences.end[:, first] - 1, last)
            touched = [(ending, first.expand_as(ending))]
            if sentences.rows == "packed":
                touched.append((last.expand_as(ending), ending))
            for token, before in touched:
                is_new = _of(pattern.block, token) != _of(pattern.block, before)
                is_new = is_new | (_of(sentences.start, token) != _of(sentences.start, before))
                chosen.append(self._random_tokens(sentences, pattern, token, is_new))
            chosen[1] = _without(chosen[1], chosen[0])
        return torch.cat(
            [
                first_tokens(sentences, first, self.num_first * self.block),
                self._last_tokens(sentences, last),
                *chosen,
            ],
            dim=-1,
        )

    def _random_tokens(
        self, sentences: Sentences, pattern: BigBirdPattern, token: Tensor, is_new: Tensor
    ) -> Tensor:
        start, end = _of(sentences.start, token)[..., None], _of(sentences.end, token)[..., None]
        row = torch.arange(pattern.block.shape[0], device=token.device)[:, None]
        chosen = [column[row, token] for column in pattern.random]
        block = torch.stack(chosen, -1) if chosen else token[..., None][..., :0]
        place = block[..., None] * self.block + torch.arange(self.block, device=token.device)
        place = start + place.flatten(-2)
        exists = (
            (block >= 0).repeat_interleave(self.block, dim=-1) & (place < end) & is_new[..., None]
        )
        return torch.where(exists, place, -1)

    def _last_tokens(
        self, sentences: Sentences, place: Int[Tensor, " place"]
    ) -> Int[Tensor, "#batch place count"]:
        """Positions of the last blocks of the sentence at each position; −1 where they are first
        blocks too."""
        start, end = sentences.start[:, place], sentences.end[:, place]
        begin = (_num_blocks(end - start, self.block) - self.num_last).clamp(min=self.num_first)
        token = (start + begin * self.block)[..., None] + torch.arange(
            self.num_last * self.block, device=place.device
        )
        return torch.where(token < end[..., None], token, -1)

    def _targets(self, sentences: Sentences) -> Int[Tensor, "#batch key_block target"]:
        """For a block of keys, the global queries of the sentences that reach into it, and all
        global queries in it or near it."""
        first = torch.arange(0, sentences.length, self.block, device=sentences.start.device)
        last = (first + self.block - 1).clamp(max=sentences.length - 1)
        num_first, num_last = self.num_first * self.block, self.num_last * self.block
        around = [first_tokens(sentences, first, num_first), self._last_tokens(sentences, last)]
        begin, end = first[:, None] - num_last, first[:, None] + self.block + num_first
        inside = begin + torch.arange(num_last + self.block + num_first, device=first.device)
        inside = torch.where((inside >= 0) & (inside < sentences.length), inside, -1)
        outside = [torch.where((one < begin) | (one >= end), one, -1) for one in around]
        return in_eights(torch.cat([*outside, inside.expand(outside[0].shape[0], -1, -1)], dim=-1))


def _num_blocks(length: Tensor, block: int) -> Tensor:
    return (length + block - 1) // block


def _of(table: Int[Tensor, "#batch time"], token: Int[Tensor, "#batch place"]) -> Tensor:
    row = torch.arange(table.shape[0], device=table.device)[:, None]
    return table[row, token]


def _without(
    tokens: Int[Tensor, "#batch block one"], others: Int[Tensor, "#batch block other"]
) -> Tensor:
    """Replace tokens that are among the others by −1."""
    return torch.where((tokens[..., None] == others[..., None, :]).any(-1), -1, tokens)


def _draw(number: Tensor, size: Tensor) -> Tensor:
    """Pseudo-random numbers below `size` that are the same on every machine (middle of a square). A
    kernel computes them for every tile, so they take three products and no division; none exceeds
    31 bits, because kernels of a GPU count in 32-bit integers."""
    mixed = ((number & 0xFFFF) * 25173 + 13849) & 0x7FFF
    mixed = (mixed * mixed >> 8) & 0x7FFF
    return (mixed * size.clamp(max=0xFFFF)) >> 15


class BigBird(AttentionKind):
    """Neighbouring blocks, random blocks, and global blocks at both ends of a sentence. Encoder
    only."""

    kind: Literal["bigbird"] = "bigbird"
    block: int = Field(64, ge=1, le=1 << 30)
    num_window_blocks: Literal[1, 3, 5, 7, 9] = 3
    num_global_blocks: int = Field(2, ge=0, le=1 << 30)
    """Half of them at the beginning of a sentence, half at its end."""
    num_random_blocks: int = Field(3, ge=0, le=1 << 30)

    title: ClassVar[Words] = ("BigBird", "BigBird")
    summary: ClassVar[Words] = (
        "Blocks attend to neighbouring blocks, random blocks, and global blocks at both ends.",
        "块关注相邻块、随机块，以及两端的全局块。",
    )
    paper: ClassVar[str] = "Zaheer et al. 2020, Big Bird: Transformers for Longer Sequences"
    cost: ClassVar[str] = (
        "4 · n · h · block · (num_window_blocks + 2 · num_global_blocks + 3 · "
        "num_random_blocks + 5) · d"
    )
    memory: ClassVar[str] = (
        "2 · n · h · (block + d) · (num_window_blocks + 2 · num_global_blocks + 3 · "
        "num_random_blocks + 5)"
    )
    masks: ClassVar[frozenset[MaskPart]] = EVERY_MASK - {"causal", "causal_offset"}
    one_sequence_only: ClassVar[bool] = True
    whole_segments: ClassVar[bool] = True
    knows_order: ClassVar[bool] = True

    @classmethod
    def example(cls) -> "BigBird":
        return cls(block=4, num_window_blocks=3, num_global_blocks=2, num_random_blocks=1)

    @property
    def size(self) -> KernelSize:
        return KernelSize(("tokens in a block", "每块的词元数"), self.block)

    def resize(self, size: int) -> "BigBird":
        return self.model_copy(update={"block": size})

    def refuse_role(self, role: Role) -> Words | None:
        return {"encoder": None, "decoder": LOOKS_AHEAD, "cross": ONE_SEQUENCE}[role]

    def build_kernel(self, *, head_dim: int, dropout_rate: float) -> Kernel:
        return BigBirdAttention(
            self.block,
            self.num_window_blocks,
            self.num_global_blocks,
            self.num_random_blocks,
            dropout_rate,
        )
