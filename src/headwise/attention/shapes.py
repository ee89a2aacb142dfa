"""Checks the sizes of queries, keys and values against each other, and of tokens against a layer.

    queries [batch, head, query, d]    keys [batch, head, key, d]    values [batch, head, key, e]

Without these checks some kernels would fail with a message about matrices, and some would silently
read too few keys. If there is nothing to attend to, every kernel gives zeros.

Tested in tests/attention/test_shapes.py.
"""

import torch
from torch import Tensor

from headwise.attention.masks import Explicit, Mask, Padding, Segments
from headwise.errors import MaskError, UsageError


def check_shapes(q: Tensor, k: Tensor, v: Tensor, *, same_width: bool = True) -> None:
    """Refuse shapes that do not fit together; scores with learned weights may compare different
    widths."""
    if q.ndim == k.ndim == v.ndim == 4:
        alike = all(
            len({q.shape[axis], k.shape[axis], v.shape[axis]} - {1}) <= 1 for axis in (0, 1)
        )
        if alike and k.shape[2] == v.shape[2] and (not same_width or q.shape[3] == k.shape[3]):
            return
    raise _refusal(q, k, v, same_width=same_width)


def _refusal(q: Tensor, k: Tensor, v: Tensor, *, same_width: bool) -> UsageError:
    given = f"{list(q.shape)}, {list(k.shape)}, {list(v.shape)}"
    if not q.ndim == k.ndim == v.ndim == 4:
        en, zh = "all three need four axes", "三者都须有四个轴"
    elif k.shape[2] != v.shape[2]:
        en, zh = "every key needs one value", "每个键须有一个值"
    elif same_width and q.shape[3] != k.shape[3]:
        en, zh = "queries and keys need the same width", "查询与键的宽度须相同"
    else:
        en, zh = (
            "all three need the same batch and the same number of heads",
            "三者的批与头数须相同",
        )
    return UsageError(
        f"queries, keys and values of shapes {given} do not fit: {en}; give [batch, head, time, "
        "head_dim]",
        f"查询、键、值的形状为 {given}，不相配：{zh}；请给出 [batch, head, time, head_dim]",
    )


def is_empty(q: Tensor, k: Tensor) -> bool:
    """Whether there is no batch, no head, no query or no key. Kernels check this first, because
    maxima and chunks of empty tensors are undefined."""
    return 0 in (*q.shape[:3], *k.shape[:3])


def empty_output(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The output for `is_empty` tensors: empty, or zeros for queries without a key; its gradient is
    zero."""
    rows = torch.broadcast_shapes(q.shape[:2], k.shape[:2])
    return v.new_zeros((*rows, q.shape[2], v.shape[3])) + 0 * (q.sum() + k.sum() + v.sum())


def empty_weights(q: Tensor, k: Tensor) -> Tensor:
    """The map of `is_empty` tensors."""
    return q.new_zeros((*torch.broadcast_shapes(q.shape[:2], k.shape[:2]), q.shape[2], k.shape[2]))


def check_heads(dim: int, num_heads: int, *, key: str = "heads") -> None:
    """The width of a head if `dim` is divided into equal heads; `key` is the setting with their
    number."""
    if num_heads < 1 or dim % num_heads != 0:
        divisors = [number for number in range(1, dim + 1) if dim % number == 0]
        nearest = min(divisors, key=lambda number: abs(number - num_heads), default=1)
        raise UsageError(
            f"{key}={num_heads} does not divide dim={dim}; choose a divisor such as {nearest}, or "
            "another dim",
            f"{key}={num_heads} 不能整除 dim={dim}；请选约数，例如 {nearest}，或更换 dim",
        )


def check_tokens(x: Tensor, memory: Tensor, mask: Mask, *, dim: int) -> None:
    """Refuse tokens that a layer of width `dim` cannot read, or a mask made for other sizes. Only
    sizes are compared, so a compiled step contains no check."""
    for name, tokens in (("x", x), ("memory", memory)):
        if tokens.ndim != 3 or tokens.shape[2] != dim:
            raise UsageError(
                f"{name} has the shape {list(tokens.shape)}, and this attention reads [batch, "
                f"time, {dim}]; give vectors of that width, or "
                "build it with another dim",
                f"{name} 的形状为 {list(tokens.shape)}，而此注意力读取 [batch, time, {dim}]；"
                "请给出该宽度的向量，或以别的 dim 建立它",
            )
    if x.shape[0] != memory.shape[0]:
        raise UsageError(
            f"x has a batch of {x.shape[0]} and memory one of {memory.shape[0]}; give every row of "
            "x its own row of memory",
            f"x 的批为 {x.shape[0]}，memory 的批为 {memory.shape[0]}；请为 x 的每一行给出对应的 "
            "memory",
        )
    check_mask_shapes(mask, batch=x.shape[0], heads=None, queries=x.shape[1], keys=memory.shape[1])


def check_mask_shapes(
    mask: Mask, *, batch: int, heads: int | None, queries: int, keys: int
) -> None:
    """Refuse a mask made for other sizes; heads None: as many as the mask has."""
    for part in mask.parts:
        found: list[tuple[str, Tensor, tuple[int, ...]]] = []
        match part:
            case Padding(real=real):
                found = [("padding", real, (batch, keys))]
            case Segments(query=query, key=key):
                found = [("segments", query, (batch, queries)), ("segments", key, (batch, keys))]
            case Explicit(allowed=allowed):
                own = allowed.shape[1:2] if heads is None else (heads,)
                found = [("explicit", allowed, (batch, *own, queries, keys))]
        for name, table, needed in found:
            fits = table.ndim == len(needed) and table.shape[-1] == needed[-1]
            if not fits or any(
                size not in (1, full) for size, full in zip(table.shape, needed, strict=True)
            ):
                raise MaskError(
                    f"the mask {name}(…) has the shape {list(table.shape)}, and {list(needed)} is "
                    "needed for these queries and keys; "
                    "make it of the same batch and lengths",
                    f"掩码 {name}(…) 的形状为 {list(table.shape)}，而这些查询与键需要 "
                    f"{list(needed)}；请使批与长度一致",
                )
