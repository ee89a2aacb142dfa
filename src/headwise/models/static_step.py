"""One decoding step whose shapes never change: the decoder over caches that stay put and a table that says whose they are.

The same mathematics as `DecoderBlock.step`, arranged for a device on which starting an operation is what costs: queries, keys
and values of a layer come from one product, norms and residuals join the products of few rows (blocks/inference/fused_residual.py), keys and
values are written once and never moved (attention/slot_attention.py), and every number that changes from step to step lies in a tensor,
so that a step can be recorded and replayed (gpu/graph_replay.py).

Tested against: models/transformer_stepper.py and, through it, the whole target at once.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from headwise.attention.slot_attention import attend_through_table, attend_to_source
from headwise.blocks.decoder_block import DecoderBlock
from headwise.blocks.feed_forward import FeedForward, GatedFeedForward
from headwise.blocks.inference.fused_residual import Stream, norm_before
from headwise.blocks.normalization import LayerNorm, RMSNorm
from headwise.blocks.residual import Residual
from headwise.models.encoder_decoder import EncoderDecoder


@dataclass(frozen=True)
class LayerCache:
    """What one layer remembers: its own keys and values, [time, slot, dim], and those of the source, [sentence, source, 2 dim]."""

    keys: Float[Tensor, "time slot dim"]
    values: Float[Tensor, "time slot dim"]
    source: Float[Tensor, "sentence source both"]


@dataclass(frozen=True)
class Tables:
    """Where the rows find what they remember."""

    time: Int[Tensor, "1"]
    """Number of positions written before this step."""
    slots: Int[Tensor, "time row"]
    sentence: Int[Tensor, "sentence"]
    """Whose source the rows of each sentence read."""
    source_length: Int[Tensor, "sentence"]


class FixedDecoder:
    """The decoder of a model, ready to step. The weights are the model's; only the joined ones are copies."""

    def __init__(self, model: EncoderDecoder) -> None:
        self.model = model
        self.layers = [_FixedLayer(block) for block in model.decoder]

    @staticmethod
    def suits(model: EncoderDecoder) -> bool:
        """Layers that were exchanged for others (quantised ones, say) and shapes unknown here keep to the plain step."""
        layers = [module for module in model.modules() if "Linear" in type(module).__name__]
        known = all(
            isinstance(block.feed_forward, FeedForward | GatedFeedForward)
            for block in model.decoder
        )
        plain = all(
            block.self_attention.is_plain and block.cross_attention.is_plain
            for block in model.decoder
        )
        norms = {type(module.norm) for module in model.modules() if isinstance(module, Residual)}
        known = known and plain and model.target_embedding.positions is not None
        return (
            known
            and norms <= {LayerNorm, RMSNorm}
            and all(type(layer) is nn.Linear for layer in layers)
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
        stream = Stream(
            torch.add(position, F.embedding(tokens, embedding.table.weight), alpha=embedding.scale)
        )
        for layer, cache in zip(self.layers, caches, strict=True):
            layer.step(stream, cache, tables)
        output, norm = self.model.output, self.model.decoder_norm
        return stream.read(
            output.weight, output.bias, norm=None if isinstance(norm, nn.Identity) else norm
        )


class _FixedLayer:
    def __init__(self, block: DecoderBlock) -> None:
        self.block = block
        own = block.self_attention
        self.weight = torch.cat([own.query.weight, own.key_value.weight]).detach()
        self.bias = (
            None
            if own.query.bias is None
            else torch.cat([own.query.bias, own.key_value.bias]).detach()
        )

    def step(self, stream: Stream, cache: LayerCache, tables: Tables) -> None:
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

    def _feed_forward(self, stream: Stream) -> None:
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
