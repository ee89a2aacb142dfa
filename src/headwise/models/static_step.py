"""One decoding step of a Transformer on tensors of fixed shape, for recording as a CUDA graph.

It computes the same as `DecoderBlock.step`, but for a GPU, on which launching an operation costs
more than a small operation itself. So there are fewer operations: one product makes the queries,
keys and values of a layer, and norms and residual sums are fused into products with few rows
(blocks/inference/fused_residual.py). Keys and values are written once and never moved. A beam
search reorders its hypotheses by a table that says which row of the cache holds each position
(attention/cache_slot_attention.py). Every number that changes from step to step is in a tensor, so
that the recorded step can be replayed (gpu/graph_replay.py).

Tested against: models/transformer_stepper.py and, through it, the whole target at once.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from headwise.attention.cache_slot_attention import attend_through_table, attend_to_source
from headwise.blocks.decoder_block import DecoderBlock
from headwise.blocks.feed_forward import FeedForward, GatedFeedForward
from headwise.blocks.inference.fused_residual import FusedResidual, norm_before
from headwise.blocks.normalization import LayerNorm, RMSNorm
from headwise.blocks.residual import Residual
from headwise.models.encoder_decoder import EncoderDecoder


@dataclass(frozen=True)
class LayerCache:
    """The keys and values of one layer: its own, and those of the source."""

    keys: Float[Tensor, "time slot dim"]
    values: Float[Tensor, "time slot dim"]
    source: Float[Tensor, "sentence source both"]


@dataclass(frozen=True)
class Tables:
    """Which slots of the caches belong to which row."""

    time: Int[Tensor, "1"]
    """Number of positions written before this step."""
    slots: Int[Tensor, "time row"]
    """The slot in which each row finds its key and value of each position."""
    sentence: Int[Tensor, "sentence"]
    """Which source the rows of each sentence attend to."""
    source_length: Int[Tensor, "sentence"]


class StaticStep:
    """The decoder of a model, ready to step. Weights are the model's; joined ones are copies."""

    def __init__(self, model: EncoderDecoder) -> None:
        self.model = model
        self.layers = [_StaticLayer(block) for block in model.decoder]

    def read_weights(self) -> None:
        """The weights have changed in place: the copies do so, too, and stay where they are."""
        for layer in self.layers:
            layer.read_weights()

    @staticmethod
    def supports(model: EncoderDecoder) -> bool:
        """Whether every part of the model is one that this step computes.

        The step reads the weights of the decoder's linear layers itself, so these must be plain
        ones, and not layers made for inference.
        """
        blocks = list(model.decoder)
        known = all(
            isinstance(block.feed_forward, FeedForward | GatedFeedForward)
            and block.self_attention.is_plain
            and block.cross_attention.is_plain
            for block in blocks
        )
        norms = {type(module.norm) for module in model.modules() if isinstance(module, Residual)}
        return (
            known
            and norms <= {LayerNorm, RMSNorm}
            and model.target_embedding.positions is not None
            and all(type(layer) is nn.Linear for block in blocks for layer in _layers_of(block))
            and type(model.output) is nn.Linear
        )

    def step(
        self,
        tokens: Int[Tensor, "row"],
        position: Float[Tensor, "1 dim"],
        caches: list[LayerCache],
        tables: Tables,
    ) -> Float[Tensor, "row vocab"]:
        """Feed one token to every row; the logits of the next."""
        embedding = self.model.target_embedding
        stream = FusedResidual(
            torch.add(position, F.embedding(tokens, embedding.table.weight), alpha=embedding.scale)
        )
        for layer, cache in zip(self.layers, caches, strict=True):
            layer.step(stream, cache, tables)
        output, norm = self.model.output, self.model.decoder_norm
        return stream.read(
            output.weight, output.bias, norm=None if isinstance(norm, nn.Identity) else norm
        )


def _layers_of(block: DecoderBlock) -> list[nn.Module]:
    """The linear layers whose weights the step reads."""
    part = block.feed_forward
    layers: list[nn.Module] = [
        getattr(attention, name)
        for attention in (block.self_attention, block.cross_attention)
        for name in ("query", "key_value", "output")
    ]
    if isinstance(part, FeedForward):
        layers += [part.widen, part.narrow]
    if isinstance(part, GatedFeedForward):
        layers += [part.gate_widen, part.narrow]
    return layers


class _StaticLayer:
    def __init__(self, block: DecoderBlock) -> None:
        self.block = block
        own = block.self_attention
        self.weight = torch.cat([own.query.weight, own.key_value.weight]).detach()
        self.bias = (
            None
            if own.query.bias is None
            else torch.cat([own.query.bias, own.key_value.bias]).detach()
        )

    def read_weights(self) -> None:
        own = self.block.self_attention
        torch.cat([own.query.weight, own.key_value.weight], out=self.weight)
        if self.bias is not None:
            torch.cat([own.query.bias, own.key_value.bias], out=self.bias)

    def step(self, stream: FusedResidual, cache: LayerCache, tables: Tables) -> None:
        block = self.block
        own, cross = block.self_attention, block.cross_attention
        q, k, v = stream.read(
            self.weight, self.bias, norm=norm_before(block.attention_residual)
        ).chunk(3, dim=-1)
        heads = attend_through_table(
            q,
            (k, v),
            cache.keys,
            cache.values,
            table=tables.slots,
            time=tables.time,
            num_heads=own.num_heads,
        )
        stream.add(heads, own.output.weight, own.output.bias, residual=block.attention_residual)
        q = stream.read(
            cross.query.weight, cross.query.bias, norm=norm_before(block.cross_residual)
        )
        keys, values = cache.source.chunk(2, dim=-1)
        heads = attend_to_source(
            q,
            keys,
            values,
            sentence=tables.sentence,
            length=tables.source_length,
            num_heads=cross.num_heads,
        )
        stream.add(heads, cross.output.weight, cross.output.bias, residual=block.cross_residual)
        self._feed_forward(stream)

    def _feed_forward(self, stream: FusedResidual) -> None:
        part, residual = self.block.feed_forward, self.block.feed_forward_residual
        norm = norm_before(residual)
        if isinstance(part, FeedForward):
            hidden = stream.read(
                part.widen.weight, part.widen.bias, norm=norm, activation=part.activation
            )
        else:
            assert isinstance(part, GatedFeedForward)
            gate, wide = stream.read(part.gate_widen.weight, None, norm=norm).chunk(2, dim=-1)
            hidden = F.silu(gate) * wide
        stream.add(hidden, part.narrow.weight, part.narrow.bias, residual=residual)
