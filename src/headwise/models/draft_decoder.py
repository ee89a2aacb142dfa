"""A draft decoder: one small decoder on the translator's encoder that guesses several tokens at
once.

It reads what is written so far and a row of unknown tokens, and computes all positions together, as
a parallel translator does (models/parallel/). Its first guess stands at the last token written:

    reads     <s>  y_1  …  y_n   ?    ?    ?         ?: embedding of padding + a learned vector
    guesses                y_n+1 n+2  n+3  n+4

Every position attends to all others and to the encoder's memory. Embedding, encoder and output
layer are the translator's; the layers and the vector are its own. A draft is one pass over one
layer, however many tokens it has. The translator verifies it (decoding/drafting/), and itself
translates as without a draft decoder.

Xia et al. 2023 (SpecDec, a parallel drafter); Stern et al. 2018. Tested against: packed rows =
sentences one by one; what follows the guessed tokens is not seen; guesses of a learnt sequence.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field
from torch import Tensor, nn

from headwise.attention.masks import segments
from headwise.blocks.decoder_block import DecoderBlock
from headwise.blocks.embeddings import TokenEmbedding
from headwise.blocks.normalization import TokenNorm, apply_norm
from headwise.initialization import InitialWeights, zeros
from headwise.settings import Settings
from headwise.text.tokenizer import PAD


class DraftDecoderSettings(Settings):
    """A small decoder that guesses the next tokens, for `decoding.drafter.kind=parallel`."""

    layers: int = Field(default=0, ge=0, le=16)
    """Number of its layers; 0: none. They are like those of the decoder, but not causal."""
    block: int = Field(default=4, ge=1, le=64)
    """Tokens that it learns to guess at once."""
    weight: float = Field(default=0.2, gt=0, le=100)
    """What its mean loss counts in training, beside the model's own loss."""


class DraftDecoder(nn.Module):
    """Parts are handed in by `build_model` (models/choices.py)."""

    layers: Sequence[DecoderBlock]

    def __init__(
        self,
        settings: DraftDecoderSettings,
        layers: list[DecoderBlock],
        norm: nn.Module,
        *,
        dim: int,
    ) -> None:
        super().__init__()
        self.block, self.weight = settings.block, settings.weight
        # torch's list is a sequence of blocks to its users but not to the type checker.
        self.layers = nn.ModuleList(layers)  # type: ignore[assignment]
        self.norm = norm
        self.unknown = nn.Parameter(torch.empty(dim))
        self.looks_over_tokens = any(isinstance(module, TokenNorm) for module in self.modules())

    def initial_weights(self) -> InitialWeights:
        return [(self.unknown, zeros)]

    def forward(
        self,
        tokens: Int[Tensor, "row target"],
        is_known: Bool[Tensor, "row target"],
        memory: Float[Tensor, "row source dim"],
        *,
        embedding: TokenEmbedding,
        target_segment: Int[Tensor, "row target"],
        source_segment: Int[Tensor, "row source"],
        target_position: Int[Tensor, "row target"],
    ) -> Float[Tensor, "row target dim"]:
        """Hidden states that predict the next token at every position. Only tokens that are known
        are read; positions whose segment is 0 are not seen by others."""
        length = tokens.shape[1]
        known = torch.where(is_known, tokens, PAD)
        x = embedding(known, target_position, length=length)
        x = x + torch.where(is_known[..., None], 0.0, self.unknown)
        first = self.layers[0]
        mask = first.self_attention.kernel.prepare(
            segments(target_segment, target_segment).ignoring_blind(), length, length, x.device
        )
        cross_mask = first.cross_attention.kernel.prepare(
            segments(target_segment, source_segment).ignoring_blind(),
            length,
            memory.shape[1],
            x.device,
        )
        real = target_segment != 0 if self.looks_over_tokens else None
        for layer in self.layers:
            x = layer(
                x, memory, mask=mask, cross_mask=cross_mask, position=target_position, real=real
            )
        return apply_norm(self.norm, x, real)
