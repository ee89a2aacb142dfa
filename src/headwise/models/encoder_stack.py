"""Builds a stack of encoder blocks from settings, for every model that has one.

    block 1:  self-attention, feed-forward network, a norm and a residual connection for each
    block 2:  …
    a norm at the end, if the norms are placed before the sub-layers

Translators, language models (the same blocks under a causal mask), sentence encoders and BERT
differ in their settings, but each has the fields of `BlockSettings` and of `LayerSettings`. The
blocks are built here and not filled with weights; `initialize` does that (initialization.py).

Tested through the models: transformers' encoders with copied weights, and the initial weights of
every part by its name (tests/test_initialization.py).
"""

from typing import Protocol, runtime_checkable

from torch import nn

from headwise.attention.capabilities import Role
from headwise.attention.choices import AttentionSettings, build_attention, share_between_layers
from headwise.attention.multi_head import MultiHeadAttention, Relation
from headwise.blocks.choices import (
    DropoutSettings,
    FeedForwardSettings,
    NormSettings,
    build_feed_forward,
    build_norm,
)
from headwise.blocks.encoder_block import EncoderBlock
from headwise.blocks.residual import Residual
from headwise.positions.choices import PositionSettings, build_relations, check_relation


@runtime_checkable
class BlockSettings(Protocol):
    """What the blocks of a model have in common."""

    @property
    def dim(self) -> int: ...
    @property
    def position(self) -> PositionSettings: ...
    @property
    def norm(self) -> NormSettings: ...
    @property
    def feed_forward(self) -> FeedForwardSettings: ...
    @property
    def dropout(self) -> DropoutSettings: ...


@runtime_checkable
class LayerSettings(Protocol):
    """How many blocks there are, and how they attend."""

    @property
    def layers(self) -> int: ...
    @property
    def heads(self) -> int: ...
    @property
    def attention(self) -> AttentionSettings: ...


def build_encoder_blocks(
    settings: BlockSettings, stack: LayerSettings, *, role: Role = "encoder"
) -> list[EncoderBlock]:
    """The blocks of an encoder; as `decoder`, those of a causal language model."""
    relations = build_relations(
        settings.position,
        num_layers=stack.layers,
        dim=settings.dim,
        num_heads=stack.heads,
        is_causal=role == "decoder",
    )
    blocks = [
        EncoderBlock(
            build_self_attention(settings, stack, role=role, relation=relation),
            build_feed_forward(
                settings.feed_forward, dim=settings.dim, dropout_rate=settings.dropout.hidden
            ),
            attention_residual=build_residual(settings),
            feed_forward_residual=build_residual(settings),
        )
        for relation in relations
    ]
    share_between_layers([block.self_attention for block in blocks])
    return blocks


def build_self_attention(
    settings: BlockSettings, stack: LayerSettings, *, role: Role, relation: Relation | None
) -> MultiHeadAttention:
    """The self-attention of one block with its relative positions, if it has any."""
    check_relation(stack.attention, relation)
    return build_attention(
        stack.attention,
        dim=settings.dim,
        num_heads=stack.heads,
        dropout_rate=settings.dropout.attention,
        role=role,
        relation=relation,
    )


def build_residual(settings: BlockSettings) -> Residual:
    """The residual connection around a sub-layer, with its norm."""
    norm = build_norm(settings.norm, dim=settings.dim)
    return Residual(norm, place=settings.norm.place, dropout_rate=settings.dropout.residual)


def build_final_norm(settings: BlockSettings) -> nn.Module:
    """A norm at the end of the stack, needed if the sub-layers are normalised before, not after."""
    return (
        build_norm(settings.norm, dim=settings.dim)
        if settings.norm.place == "before"
        else nn.Identity()
    )
