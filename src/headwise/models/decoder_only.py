"""A decoder-only language model (GPT): one stack of blocks predicts the next token.

    hidden = blocks(embedding(tokens))        each token attends to itself and the tokens before it
    P(next token) = softmax(norm(hidden) · output_weightᵀ)

Radford et al. 2018. The blocks are those of the encoder (there is no source to attend to), with a
causal mask. Rows may hold several texts, numbered by segment; segment 0 is padding. `forward`
returns the hidden states, as that of EncoderDecoder does. `step` reads one more token with caches
and gives the same numbers.

Tested: later tokens and other texts have no effect; step by step = whole sequence; a GPT-2 with
copied weights gives the same numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from headwise.attention.cache import Cache
from headwise.attention.masks import causal, segments
from headwise.attention.multi_head import MultiHeadAttention
from headwise.blocks.embeddings import TokenEmbedding
from headwise.blocks.encoder_block import EncoderBlock
from headwise.blocks.normalization import TokenNorm, apply_norm
from headwise.initialization import InitialWeights, initial_linear, normal_by_width
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
    ) -> None:
        super().__init__()
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
        mask, real = causal(), None
        if segment is not None:
            mask = (mask & segments(segment, segment)).ignoring_blind()
            real = segment != 0 if self.looks_over_tokens else None
        x = self.embedding(tokens, position, length=length)
        if len(self.blocks) > 0:
            mask = self.blocks[0].self_attention.kernel.prepare(mask, length, length, x.device)
        for block in self.blocks:
            x = block(x, mask, position=position, real=real)
        return apply_norm(self.norm, x, real)

    def logits(self, hidden: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch vocab"]:
        return self.output(hidden)

    def start(self, *, num_rows: int, max_length: int) -> ReadingState:
        """An empty cache for at most `max_length` tokens per row."""
        like = self.output.weight.detach()
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
            x = block.step(x, cache)
        return self.norm(x)[:, 0]

    def attention_layers(self) -> dict[str, MultiHeadAttention]:
        """Every attention of the model by name."""
        return {
            f"decoder.{number}.self": block.self_attention
            for number, block in enumerate(self.blocks)
        }
