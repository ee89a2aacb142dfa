"""`attend`: attention over tensors of the caller, with checks of every input.

    attend(q, k, v)                                                 fused full attention
    attend(q, k, v, kernel=WindowAttention(64, 64), mask=causal())  any kernel, any mask

Inside a model, queries, keys and values come from its own projections, so their shapes fit and
their numbers are finite; checking them would make a GPU wait. Tensors from elsewhere are checked
here: shapes against each other, the mask, the bias and the kernel; one dtype and one device; finite
numbers, small enough that products stay in float32. Numbers at masked positions are checked too,
because a weight of zero does not remove a NaN (0 × NaN = NaN). Without a batch, queries or keys the
result is empty or zeros. A result that overflows its dtype is refused as well. Each error explains
the mistake.

Tested against: each mistake by itself, for every kernel under the laws.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from headwise.attention.biases import DistanceBias, VectorBias
from headwise.attention.capabilities import keys_are_queries
from headwise.attention.kernels.fused import FusedAttention
from headwise.attention.kernels.scored import MAX_SCORE
from headwise.attention.masks import Explicit, Mask, Padding, Segments
from headwise.attention.multi_head import Fitted, Kernel
from headwise.attention.scores.comparison import LARGEST
from headwise.attention.shapes import check_mask_shapes, check_shapes, empty_output, is_empty
from headwise.errors import MaskError, UsageError

AnyBias = Tensor | DistanceBias | VectorBias
"""Of any shape and type: they are checked here."""


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    kernel: Kernel | None = None,
    mask: Mask | None = None,
    bias: AnyBias | None = None,
) -> Float[Tensor, "batch head query value_dim"]:
    """Attention over tensors of the caller; raises UsageError for inputs that no kernel could
    compute."""
    # No shapes in the signature: they are checked here.
    named = {"q": q, "k": k, "v": v}
    for name, x in named.items():
        check_tensor(name, x)
    _check_kind(named)
    check_shapes(q, k, v)
    for name, x in named.items():
        _check_numbers(name, x)
    kernel, mask = FusedAttention() if kernel is None else kernel, Mask() if mask is None else mask
    _check_width(kernel, q)
    batch, heads = (_common(q.shape[axis], k.shape[axis], v.shape[axis]) for axis in (0, 1))
    q, k, v = (x.expand(batch, heads, -1, -1) for x in (q, k, v))  # a batch of one applies to all
    check_mask(mask, (batch, heads, q.shape[2], k.shape[2]))
    check_bias(bias, (batch, heads, q.shape[2], k.shape[2]), like=q)
    if is_empty(q, k):
        return empty_output(q, k, v)
    if keys_are_queries(kernel) and not torch.equal(q, k):
        name = type(kernel).__name__
        raise UsageError(
            f"{name} was given keys that are not its queries, and it sorts both as one; give the "
            "same "
            "vectors twice, attend(q, q, v, …), or take kernel=FusedAttention()",
            f"{name} 收到的键与查询不同，而它把两者当作一体来排序；请两次给出同样的向量 attend(q, "
            "q, v, …)，"
            "或用 kernel=FusedAttention()",
        )
    output = kernel(q, k, v, mask, bias=bias)
    if not output.isfinite().all():
        raise UsageError(
            f"the output is not finite: values up to {v.abs().max().item():g} are too large for "
            f"{type(kernel).__name__} in {v.dtype}; "
            "divide them by a constant and multiply the output by it, or give all in float64",
            f"输出不是有限的数：{type(kernel).__name__} 在 {v.dtype} 下无法处理大到 "
            f"{v.abs().max().item():g} 的值；"
            "请先将值除以一个常数、再把输出乘回去，或全部用 float64",
        )
    return output


def _common(*sizes: int) -> int:
    return next((size for size in sizes if size != 1), 1)


def _check_width(kernel: Kernel, q: Tensor) -> None:
    width = kernel.head_dim if isinstance(kernel, Fitted) else None
    if q.shape[3] == 0 or width not in (None, q.shape[3]):
        needed, needed_zh = ("at least 1", "至少 1") if width is None else (str(width), str(width))
        raise UsageError(
            f"queries have {q.shape[3]} numbers a head, and {needed} are needed by "
            f"{type(kernel).__name__}; "
            "give vectors of that width, or build the kernel for this one",
            f"查询每头有 {q.shape[3]} 个数，而 {type(kernel).__name__} 需要 {needed_zh} 个；"
            "请给出该宽度的向量，或按此宽度建立内核",
        )


def check_mask(mask: object, sizes: tuple[int, int, int, int]) -> None:
    """Refuse a mask that is not a Mask, or that does not fit (batch, heads, queries, keys)."""
    if not isinstance(mask, Mask):
        raise UsageError(
            f"the mask is a {type(mask).__name__}, and a mask of headwise.attention.masks is "
            "needed; write explicit(table) for a table "
            "[batch, head, query, key] of visible pairs, padding(real), causal() or "
            "several joined by &",
            f"掩码是 {type(mask).__name__}，而需要 headwise.attention.masks 的掩码；可见性表 "
            "[batch, head, query, key] 请写 explicit(table)，"
            "或用 padding(real)、causal()，多个以 & 相连",
        )
    for part in mask.parts:
        match part:
            case Padding(real=real):
                _check_table("padding", real, is_numbered=False)
            case Segments(query=query, key=key):
                _check_table("segments", query, is_numbered=True)
                _check_table("segments", key, is_numbered=True)
            case Explicit(allowed=allowed):
                _check_table("explicit", allowed, is_numbered=False)
    batch, heads, queries, keys = sizes
    check_mask_shapes(mask, batch=batch, heads=heads, queries=queries, keys=keys)


def _check_table(name: str, table: Tensor, *, is_numbered: bool) -> None:
    is_number = not (table.is_floating_point() or table.is_complex() or table.dtype == torch.bool)
    if is_number if is_numbered else table.dtype == torch.bool:
        return
    needed, needed_zh, advice = (
        ("whole numbers", "整数", ".long()")
        if is_numbered
        else ("truth values", "布尔值", ".bool()")
    )
    raise MaskError(
        f"the mask {name}(…) holds {table.dtype}, and {needed} are needed; convert it with "
        f"{advice}",
        f"掩码 {name}(…) 为 {table.dtype}，而需要{needed_zh}；请用 {advice} 转换",
    )


def check_bias(bias: AnyBias | None, sizes: tuple[int, int, int, int], *, like: Tensor) -> None:
    """Refuse a bias that does not fit (batch, heads, queries, keys), or that contains NaN."""
    if bias is None:
        return
    if isinstance(bias, DistanceBias):
        _check_bias_table(bias.table, (sizes[1], bias.table.shape[-1] or 1), like=like, exact=True)
        return
    _check_bias_table(bias.scores if isinstance(bias, VectorBias) else bias, sizes, like=like)
    if isinstance(bias, VectorBias):
        _check_numbers("bias.values", bias.values)


def _check_bias_table(
    table: Tensor, needed: tuple[int, ...], *, like: Tensor, exact: bool = False
) -> None:
    allowed = [
        (full,) if exact or axis == len(needed) - 1 else (1, full)
        for axis, full in enumerate(needed)
    ]
    fits = table.ndim == len(needed) and all(
        size in one for size, one in zip(table.shape, allowed, strict=True)
    )
    if not fits or not table.is_floating_point() or table.device != like.device:
        raise UsageError(
            f"the bias is {table.dtype} of shape {list(table.shape)} on {table.device.type}, and "
            f"floating numbers of shape {list(needed)} (1 stands for "
            f"all but the last) on {like.device.type} are needed for these queries and keys; make "
            "it of that shape and kind",
            f"偏置为 {table.device.type} 上形状 {list(table.shape)} 的 {table.dtype}，"
            f"而这些查询与键需要 {like.device.type} 上形状 {list(needed)} 的浮点数"
            "（除最后一维外可为 1）；请按此形状与类型给出",
        )
    place = (~((table == -torch.inf) | (table.abs() <= MAX_SCORE))).nonzero()[:1].tolist()
    if place:
        number = table[tuple(place[0])].item()
        raise UsageError(
            f"bias{place[0]} is {number:g}; a bias is a number up to {MAX_SCORE:g}, or -inf where "
            "a key is hidden: find out where it comes from",
            f"bias{place[0]} 为 {number:g}；偏置须为绝对值不超过 {MAX_SCORE:g} 的数，或以 -inf "
            "隐藏某个键：请查明来源",
        )


def check_tensor(name: str, x: object) -> None:
    if not isinstance(x, Tensor):
        raise UsageError(
            f"{name} is a {type(x).__name__}, and a tensor [batch, head, time, head_dim] is "
            "needed; convert it with torch.as_tensor(…)",
            f"{name} 是 {type(x).__name__}，而需要张量 [batch, head, time, head_dim]；请用 "
            "torch.as_tensor(…) 转换",
        )


def _check_kind(named: dict[str, Tensor]) -> None:
    kinds = {
        name: f"{x.dtype} on {x.device.type}".removeprefix("torch.") for name, x in named.items()
    }
    if len(set(kinds.values())) > 1 or not named["q"].is_floating_point():
        given = ", ".join(f"{name} {kind}" for name, kind in kinds.items())
        raise UsageError(
            f"attention was given {given}; all three must be of one floating type and on one "
            "device: convert them with .to(…)",
            f"注意力收到 {given}；三者须为同一浮点类型并在同一设备上：请用 .to(…) 转换",
        )


def _check_numbers(name: str, x: Tensor) -> None:
    wrong = ~(x.abs() <= LARGEST) if name in ("q", "k") else ~x.isfinite()
    place = wrong.nonzero()[:1].tolist()
    if place:
        number = x[tuple(place[0])].item()
        raise UsageError(
            f"{name}{place[0]} is {number:g}; attention needs finite numbers, hidden ones too, "
            f"and up to {LARGEST:g} in queries and keys: find out where it comes from, or fill it "
            "with zeros (torch.nan_to_num) if it is padding",
            f"{name}{place[0]} 为 {number:g}；注意力需要有限的数（被掩码的也一样），查询与键不超过 "
            f"{LARGEST:g}："
            "请查明来源；若是填充，请用零填上（torch.nan_to_num）",
        )
