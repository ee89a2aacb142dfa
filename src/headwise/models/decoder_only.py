"""A decoder-only language model (GPT): one stack of blocks predicts the next token.

    hidden = blocks(embedding(tokens))        each token attends to itself and the tokens before it
    P(next token) = softmax(norm(hidden) · output_weightᵀ)

Radford et al. 2018. The blocks are those of the encoder (there is no source to attend to), with a
causal mask. Rows may hold several texts, numbered by segment; segment 0 is padding. `forward`
returns the hidden states, as that of EncoderDecoder does. `step` reads one more token with caches
and gives the same numbers. A model with a memory looks back `reach` tokens in every layer; it reads
a text in segments with `read_on`, after the states that it remembers (segment_memory.py). One of
its layers may look up what lies beyond (attention/nearest_attention.py).

Tested: later tokens and other texts have no effect; step by step = whole sequence = segments; a
GPT-2 with copied weights gives the same numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from headwise.attention.cache import Cache, RollingCache
from headwise.attention.masks import Mask, causal, padding, segments, window
from headwise.attention.multi_head import MultiHeadAttention
from headwise.attention.nearest_attention import NearestAttention, Recall
from headwise.blocks.embeddings import TokenEmbedding
from headwise.blocks.encoder_block import EncoderBlock
from headwise.blocks.normalization import TokenNorm, apply_norm
from headwise.errors import UsageError
from headwise.initialization import InitialWeights, initial_linear, normal_by_width
from headwise.models.segment_memory import Past, Read
from headwise.settings.part_names import PartNames


@dataclass
class ReadingState:
    """The caches of the tokens read so far."""

    caches: list[Cache]
    time: int = 0


class DecoderOnly(nn.Module):
    """Parts are handed in by `build_decoder_only` (models/choices.py)."""

    part_names: ClassVar[PartNames] = {
        "norm": ("normalisation", "归一化"),
        "output": ("output", "输出层"),
    }

    blocks: Sequence[EncoderBlock]

    def __init__(
        self,
        *,
        embedding: TokenEmbedding,
        blocks: list[EncoderBlock],
        norm: nn.Module,
        output: nn.Linear,
        reach: int | None = None,
    ) -> None:
        """`reach`: tokens before each that a layer attends to; None: all."""
        super().__init__()
        self.reach = reach
        self.embedding = embedding
        self.blocks = nn.ModuleList(blocks)  # type: ignore[assignment]
        self.norm = norm
        self.output = output
        self.looks_over_tokens = any(isinstance(module, TokenNorm) for module in self.modules())

    def initial_weights(self) -> InitialWeights:
        return initial_linear(self.output, normal_by_width)

    def forward(
        self,
        tokens: Int[Tensor, "row time"],
        *,
        segment: Int[Tensor, "row time"] | None = None,
        position: Int[Tensor, "row time"] | None = None,
    ) -> Float[Tensor, "row time dim"]:
        """Hidden states that predict the token after each.

        Without segments, a row is one text without padding.
        """
        length = tokens.shape[1]
        if position is None:
            position = torch.arange(length, device=tokens.device).expand(tokens.shape)
        mask, real = self._causal(length), None
        if segment is not None:
            self._refuse_segments()
            mask = (mask & segments(segment, segment)).ignoring_blind()
            real = segment != 0 if self.looks_over_tokens else None
        x = self.embedding(tokens, position, length=length)
        if len(self.blocks) > 0:
            mask = self.blocks[0].self_attention.kernel.prepare(mask, length, length, x.device)
        for block in self.blocks:
            x = block(x, mask, position=position, real=real)
        return apply_norm(self.norm, x, real)

    def _refuse_segments(self) -> None:
        """A layer that looks up would find tokens of other texts."""
        if any(_num_stored(block) for block in self.blocks):
            raise UsageError(
                "a model with model.memory.kind=nearest reads one text in a row; give each text a "
                "row of its own",
                "带 model.memory.kind=nearest 的模型每行只读一段文本；请让每段文本独占一行",
            )

    def _causal(self, num_keys: int, offset: int = 0) -> Mask:
        mask = causal(offset)
        if self.reach is None or num_keys <= self.reach + 1:
            return mask
        return mask & window(self.reach, 0, offset=offset)

    def read_on(
        self, tokens: Int[Tensor, "row time"], past: Past
    ) -> tuple[Float[Tensor, "row time dim"], Read]:
        """Hidden states of tokens that follow the past, and what is to be remembered of them.

        In training a token attends to all of the past; afterwards it looks back `reach` tokens.
        """
        length, num_past = tokens.shape[1], past.real.shape[1]
        num_keys = num_past + length
        mask = causal(num_past) if self.training else self._causal(num_keys, num_past)
        seen = torch.cat([past.real, past.real.new_ones(tokens.shape)], dim=1)
        mask = mask & padding(seen)
        position = torch.arange(length, device=tokens.device).expand(tokens.shape)
        x = self.embedding(tokens, position, length=length)
        if len(self.blocks) > 0:
            kernel = self.blocks[0].self_attention.kernel
            mask = kernel.prepare(mask, length, num_keys, x.device)
        read, recall = [], Recall(past.stored, num_past if self.training else None)
        for block, states in zip(self.blocks, past.states, strict=True):
            read.append(x)
            looks_up = isinstance(block.self_attention, NearestAttention)
            x = block(x, mask, past=states, recall=recall if looks_up else None)
        stored = max((_num_stored(block) for block in self.blocks), default=0)
        return apply_norm(self.norm, x, None), Read(read, recall.read, stored)

    def logits(self, hidden: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch vocab"]:
        return self.output(hidden)

    def start(self, *, num_rows: int, max_length: int) -> ReadingState:
        """An empty cache for at most `max_length` tokens per row."""
        like = self.output.weight.detach()
        if self.reach is not None:
            layers = [block.self_attention for block in self.blocks]
            return ReadingState([_rolling(layer, num_rows, like=like) for layer in layers])
        return ReadingState(
            [
                block.self_attention.make_cache(max_length=max_length, num_rows=num_rows, like=like)
                for block in self.blocks
            ]
        )

    def step(self, tokens: Int[Tensor, " row"], state: ReadingState) -> Float[Tensor, "row dim"]:
        """Read one more token of every row; hidden states that predict the next. No gradients."""
        position = torch.full((tokens.shape[0], 1), state.time, device=tokens.device)
        x = self.embedding(tokens[:, None], position, length=state.time + 1)
        state.time += 1
        for block, cache in zip(self.blocks, state.caches, strict=True):
            horizon = None if self.reach is None else self.reach + _num_stored(block)
            if horizon is not None and cache.length > horizon:
                assert isinstance(cache, RollingCache)
                cache.keep_last(horizon)
            x = block.step(x, cache)
        return self.norm(x)[:, 0]

    def attention_layers(self) -> dict[str, MultiHeadAttention]:
        """Every attention of the model by name."""
        return {
            f"decoder.{number}.self": block.self_attention
            for number, block in enumerate(self.blocks)
        }


def _num_stored(block: EncoderBlock) -> int:
    """How many tokens beyond its window a layer may look up."""
    attention = block.self_attention
    return attention.size if isinstance(attention, NearestAttention) else 0


def _rolling(attention: MultiHeadAttention, num_rows: int, *, like: Tensor) -> RollingCache:
    """A cache of any length, whose oldest positions can be dropped."""
    shape = like.new_empty(0, attention.num_heads, attention.head_dim)
    return RollingCache.beginning(num_rows, like=shape)
