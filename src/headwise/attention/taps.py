"""Taps: collect the attention maps of chosen layers while a model runs.

Fast kernels never store the [query, key] table, so a tap computes it again from the inputs of its
layer. Layers without a tap run exactly as before.

    with tap_attention({"decoder.2.cross": model.decoder[2].cross_attention}) as maps:
        model(...)
    maps["decoder.2.cross"]     # [batch, head, query, key]

Tested against: weights @ values = output of the same layer.
"""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from headwise.attention.multi_head import MultiHeadAttention


@contextlib.contextmanager
def tap_attention(layers: Mapping[str, MultiHeadAttention]) -> Iterator[dict[str, Tensor]]:
    """While open, every forward pass of the given layers leaves its weights under the given
    name."""
    maps: dict[str, Tensor] = {}
    handles = [
        layer.register_forward_pre_hook(_collector(name, maps), with_kwargs=True)
        for name, layer in layers.items()
    ]
    try:
        yield maps
    finally:
        for handle in handles:
            handle.remove()


def _collector(name: str, maps: dict[str, Tensor]) -> Any:
    def collect(layer: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
        assert isinstance(layer, MultiHeadAttention)
        with torch.no_grad():
            maps[name] = layer.weights(*inputs, **named)

    return collect
