"""A Transformer encoder that predicts one class: read the sequence, pool it, one linear layer.

    x = encoder(embedding(tokens))            any attention kernel, any positions
    pooled = x[first token]                   "first": as BERT's [CLS]
           = mean of x over real tokens       "mean"
    logits = pooled · Wᵀ + b

Devlin et al. 2019 for the first token; Tay et al. 2021 (Long Range Arena) compare kernels this way.
Padding is token 0. `bench_listops.py` compares kernels with it.

Tested: padding changes nothing under any kernel and norm, every kernel learns to find a token, the
pooled mean is that of the real tokens.
"""

from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field
from torch import Tensor, nn

from headwise.attention.choices import DEFAULT_ATTENTION, AttentionSettings, build_attention
from headwise.attention.masks import padding
from headwise.blocks.choices import (
    DEFAULT_FEED_FORWARD,
    DEFAULT_NORM,
    FeedForwardSettings,
    NormSettings,
    Rate,
    build_feed_forward,
    build_norm,
)
from headwise.blocks.embeddings import TokenEmbedding
from headwise.blocks.encoder_block import EncoderBlock
from headwise.blocks.normalization import TokenNorm, apply_norm
from headwise.blocks.residual import Residual
from headwise.initialization import InitialWeights, initial_linear, initialize, normal_by_width
from headwise.positions.choices import (
    DEFAULT_POSITION,
    PositionSettings,
    build_positions,
    build_relations,
    check_relation,
)
from headwise.settings import Settings


class ClassifierSettings(Settings):
    """An encoder with a linear layer on top."""

    dim: int = Field(default=128, ge=2, le=65536, multiple_of=2)
    """Width of every layer."""
    layers: int = Field(default=4, ge=0, le=256)
    """How many blocks stand on each other."""
    heads: int = Field(default=2, ge=1, le=256)
    """Attention heads in each block; must divide dim."""
    attention: AttentionSettings = DEFAULT_ATTENTION
    """How a head attends."""
    position: PositionSettings = DEFAULT_POSITION
    norm: NormSettings = DEFAULT_NORM
    feed_forward: FeedForwardSettings = DEFAULT_FEED_FORWARD
    pooling: Literal["first", "mean"] = "first"
    """Which vector stands for the sequence: that of its first token, or the mean over real
    tokens."""
    dropout: Rate = 0.1
    """Of embeddings and of each sub-layer's output."""


class Classifier(nn.Module):
    """Parts are handed in by `build_classifier`."""

    encoder: Sequence[EncoderBlock]

    def __init__(
        self,
        *,
        embedding: TokenEmbedding,
        encoder: list[EncoderBlock],
        encoder_norm: nn.Module,
        output: nn.Linear,
        pooling: Literal["first", "mean"],
    ) -> None:
        super().__init__()
        self.embedding = embedding
        # torch's list is a sequence of blocks to its users but not to the type checker.
        self.encoder = nn.ModuleList(encoder)  # type: ignore[assignment]
        self.encoder_norm = encoder_norm
        self.output = output
        self.pooling = pooling
        self.looks_over_tokens = any(isinstance(module, TokenNorm) for module in self.modules())

    def initial_weights(self) -> InitialWeights:
        return initial_linear(self.output, normal_by_width)

    def forward(self, tokens: Int[Tensor, "batch time"]) -> Float[Tensor, "batch class"]:
        """Logits; tokens are padded with 0 at the end."""
        length = tokens.shape[1]
        real = tokens != 0
        position = torch.arange(length, device=tokens.device).expand(tokens.shape)
        x = self.embedding(tokens, position, length=length)
        mask = padding(real).ignoring_blind()
        if len(self.encoder) > 0:
            kernel = self.encoder[0].self_attention.kernel
            mask = kernel.prepare(mask, length, length, x.device)
        counted = real if self.looks_over_tokens else None
        for block in self.encoder:
            x = block(x, mask, position=position, real=counted)
        return self.output(self.pool(apply_norm(self.encoder_norm, x, counted), real))

    def pool(
        self, x: Float[Tensor, "batch time dim"], real: Bool[Tensor, "batch time"]
    ) -> Float[Tensor, "batch dim"]:
        if self.pooling == "first":
            return x[:, 0]
        weights = real.to(x.dtype)
        # Filling may hold anything finite; it is multiplied away and never counted.
        return (x * weights[..., None]).sum(1) / weights.sum(1, keepdim=True).clamp(min=1)


def build_classifier(
    settings: ClassifierSettings,
    *,
    vocabulary_size: int,
    num_classes: int,
    generator: torch.Generator,
) -> Classifier:
    """A freshly initialised classifier."""
    relations = build_relations(
        settings.position,
        num_layers=settings.layers,
        dim=settings.dim,
        num_heads=settings.heads,
        is_causal=False,
    )
    blocks = []
    for relation in relations:
        check_relation(settings.attention, relation)
        attention = build_attention(
            settings.attention,
            dim=settings.dim,
            num_heads=settings.heads,
            dropout_rate=0.0,
            role="encoder",
            relation=relation,
        )
        feed_forward = build_feed_forward(settings.feed_forward, dim=settings.dim, dropout_rate=0.0)
        first, second = (_residual(settings) for _ in range(2))
        blocks.append(
            EncoderBlock(
                attention, feed_forward, attention_residual=first, feed_forward_residual=second
            )
        )
    table = nn.Embedding(vocabulary_size, settings.dim)
    positions = build_positions(settings.position, dim=settings.dim)
    model = Classifier(
        embedding=TokenEmbedding(table, positions, scaled=True, dropout_rate=settings.dropout),
        encoder=blocks,
        encoder_norm=build_norm(settings.norm, dim=settings.dim)
        if settings.norm.place == "before"
        else nn.Identity(),
        output=nn.Linear(settings.dim, num_classes),
        pooling=settings.pooling,
    )
    initialize(model, generator)
    return model


def _residual(settings: ClassifierSettings) -> Residual:
    return Residual(
        build_norm(settings.norm, dim=settings.dim),
        place=settings.norm.place,
        dropout_rate=settings.dropout,
    )
