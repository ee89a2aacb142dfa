"""The cost of a kernel before it is run: its matrix products, counted on tensors without data.

    plain kernels    4 · queries · keys · dim, for the scores and for the mean of the values
    others           the products they form, including those of incomplete blocks

The rows are those of the models, here with one sentence in each. Kernels are counted in the form
that works on every device (attention/sparse/gathered.py); the fused block-sparse form on CUDA
rounds to tiles of 128 instead. A multiplication and an addition are two operations. As in torch's
FlopCounterMode, only products of matrices count (and of a matrix with a vector): sorting, look-ups,
softmax and tanh do not.

Tested against: numbers worked by hand for every kernel, and torch's counter over real tensors.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call

from headwise.attention.masks import Mask, causal, segments
from headwise.attention.multi_head import MultiHeadAttention

Shape = Sequence[int]
LONG = 1 << 20
"""Longer than any window: a cache that still grows at this length has no limit."""


def count_products(
    layer: MultiHeadAttention, num_queries: int, num_keys: int | None = None, *, is_causal: bool
) -> int:
    """Operations of a layer for one sentence, projections included; `num_keys` is the length of
    another sequence, or None for self-attention."""
    dim = layer.output.in_features
    if layer.is_plain:
        num_read = num_queries if num_keys is None else num_keys
        projections = 2 * dim * (2 * dim * num_queries + 2 * dim * num_read)
        return projections + 4 * num_queries * num_read * dim
    # Imported here because it takes a second, and the plain layers above do not need it.
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.utils.flop_counter import FlopCounterMode

    unknown = {  # seen by torch's counter
        torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: _count_fused,
        torch.ops.aten.mv: _count_matrix_vector,
    }
    with torch.no_grad(), FakeTensorMode(), torch.device("cpu"):
        tensors = (*layer.named_parameters(), *layer.named_buffers())
        nothing = {name: torch.empty(tensor.shape, dtype=tensor.dtype) for name, tensor in tensors}
        x = torch.empty(1, num_queries, dim)
        memory = x if num_keys is None else torch.empty(1, num_keys, dim)
        mask = layer.kernel.prepare(
            _one_sentence(x, memory, is_causal=is_causal), *_lengths(x, memory), x.device
        )
        with FlopCounterMode(display=False, custom_mapping=unknown) as counter:
            functional_call(layer, nothing, (x, memory, mask))
    return counter.get_total_flops()


def count_cache(layer: MultiHeadAttention) -> tuple[int, int]:
    """Numbers that a decoder stores for one hypothesis in this layer: for each token written, and
    independent of the length."""
    like = torch.empty(0, device="meta")
    sizes = []
    for length in (LONG, 2 * LONG):
        cache = layer.make_cache(max_length=length, num_rows=1, like=like)
        sizes.append(sum(part.numel() for part in vars(cache).values() if isinstance(part, Tensor)))
    growth = (sizes[1] - sizes[0]) // LONG
    return growth, sizes[0] - growth * LONG


def _lengths(x: Tensor, memory: Tensor) -> tuple[int, int]:
    return x.shape[1], memory.shape[1]


def _one_sentence(x: Tensor, memory: Tensor, *, is_causal: bool) -> Mask:
    query = torch.ones(x.shape[:2], dtype=torch.long)
    key = query if memory is x else torch.ones(memory.shape[:2], dtype=torch.long)
    mask = segments(query, key).ignoring_blind()
    return causal() & mask if is_causal else mask


def _count_fused(
    q: Shape,
    k: Shape,
    v: Shape,
    *settings: float,
    attn_mask: Shape | None = None,
    scale: float | None = None,
    out_shape: Any = None,
) -> int:
    """Called like the operation of torch, with shapes in place of tensors; a mask saves nothing."""
    return 2 * prod(q[:3]) * k[-2] * (q[-1] + v[-1])


def _count_matrix_vector(matrix: Shape, vector: Shape, *, out_shape: Any = None) -> int:
    return 2 * prod(matrix)
