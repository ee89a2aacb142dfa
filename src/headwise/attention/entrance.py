"""The door for tensors that come from outside: everything is checked, and what is wrong is said in one sentence.

    attend(q, k, v)                                                 fused full attention
    attend(q, k, v, kernel=WindowAttention(64, 64), mask=causal())  any kernel, any mask

Inside a model queries, keys and values come from its own projections: shapes fit and numbers are finite, and asking would make a GPU wait. Tensors of
one's own can be anything. Here their shapes must fit each other, the mask and the kernel, all must be of one kind and on one device, and every number must be one, small
enough for its products to stay in float32: hidden ones too, since a weight of zero does not silence a NaN (0 × NaN = NaN). Where there is nothing
(no batch, no queries, no keys) the answer is nothing, or zeros.

Tested against: each mistake by itself, for every kernel of the table of laws.
"""

from jaxtyping import Float
from torch import Tensor

from headwise.attention.biases import Bias
from headwise.attention.fused import FusedAttention
from headwise.attention.masks import Explicit, Mask, Padding, Segments
from headwise.attention.multi_head import Kernel
from headwise.attention.scores import LARGEST
from headwise.attention.shapes import check_shapes
from headwise.attention.widths import built_width
from headwise.errors import MaskError, UsageError


def attend(
    q: Tensor, k: Tensor, v: Tensor, *, kernel: Kernel | None = None, mask: Mask | None = None, bias: Bias | None = None
) -> Float[Tensor, "batch head query value_dim"]:
    """Attention over tensors of one's own; raises UsageError for what no kernel could compute."""
    # No shapes in the signature: they are what is checked here.
    named = {"q": q, "k": k, "v": v}
    _check_kind(named)
    check_shapes(q, k, v)
    for name, x in named.items():
        _check_numbers(name, x)
    kernel, mask = FusedAttention() if kernel is None else kernel, Mask() if mask is None else mask
    _check_width(kernel, q)
    batch, heads = (_common(q.shape[axis], k.shape[axis], v.shape[axis]) for axis in (0, 1))
    q, k, v = (x.expand(batch, heads, -1, -1) for x in (q, k, v))  # a batch of one is for all
    check_mask(mask, (batch, heads, q.shape[2], k.shape[2]))
    if 0 in (batch, heads, q.shape[2], k.shape[2]):
        return v.new_zeros(*q.shape[:3], v.shape[3]) + 0 * (q.sum() + k.sum() + v.sum())  # with a gradient: of zero
    return kernel(q, k, v, mask, bias=bias)


def _common(*sizes: int) -> int:
    return next((size for size in sizes if size != 1), 1)


def _check_width(kernel: Kernel, q: Tensor) -> None:
    width = built_width(kernel)
    if q.shape[3] == 0 or width not in (None, q.shape[3]):
        needed, needed_zh = ("at least 1", "至少 1") if width is None else (str(width), str(width))
        raise UsageError(
            f"queries have {q.shape[3]} numbers a head, and {needed} are needed by {type(kernel).__name__}; "
            "give vectors of that width, or build the kernel for this one",
            f"查询每头有 {q.shape[3]} 个数，而 {type(kernel).__name__} 需要 {needed_zh} 个；请给出该宽度的向量，或按此宽度建立核",
        )


def check_mask(mask: object, sizes: tuple[int, int, int, int]) -> None:
    """Refuse a mask that is none, or is not made for (batch, heads, queries, keys)."""
    if not isinstance(mask, Mask):
        raise UsageError(
            f"the mask is a {type(mask).__name__}, and a mask of headwise.attention.masks is needed; write explicit(table) for a table "
            "[batch, head, query, key] of what may be looked at, padding(real), causal() or several joined by &",
            f"掩码是 {type(mask).__name__}，而需要 headwise.attention.masks 的掩码；可见性表 [batch, head, query, key] 请写 explicit(table)，"
            "或用 padding(real)、causal()，多个以 & 相连",
        )
    batch, heads, queries, keys = sizes
    for part in mask.parts:
        found: list[tuple[str, Tensor, tuple[int, ...]]] = []
        match part:
            case Padding(real=real):
                found = [("padding", real, (batch, keys))]
            case Segments(query=query, key=key):
                found = [("segments", query, (batch, queries)), ("segments", key, (batch, keys))]
            case Explicit(allowed=allowed):
                found = [("explicit", allowed, (batch, heads, queries, keys))]
        for name, table, needed in found:
            fits = table.ndim == len(needed) and table.shape[-1] == needed[-1]
            if not fits or any(size not in (1, full) for size, full in zip(table.shape, needed, strict=True)):
                raise MaskError(
                    f"the mask {name}(…) has the shape {list(table.shape)}, and {list(needed)} is needed for these queries and keys; "
                    "make it of the same batch and lengths",
                    f"掩码 {name}(…) 的形状为 {list(table.shape)}，而这些查询与键需要 {list(needed)}；请使批与长度一致",
                )


def _check_kind(named: dict[str, Tensor]) -> None:
    kinds = {name: f"{x.dtype} on {x.device.type}".removeprefix("torch.") for name, x in named.items()}
    if len(set(kinds.values())) > 1 or not named["q"].is_floating_point():
        given = ", ".join(f"{name} {kind}" for name, kind in kinds.items())
        raise UsageError(
            f"attention was given {given}; all three must be of one floating type and on one device: convert them with .to(…)",
            f"注意力收到 {given}；三者须为同一浮点类型并在同一设备上：请用 .to(…) 转换",
        )


def _check_numbers(name: str, x: Tensor) -> None:
    wrong = ~x.isfinite() if name == "v" else ~(x.abs() <= LARGEST)
    place = wrong.nonzero()[:1].tolist()
    if place:
        number = x[tuple(place[0])].item()
        raise UsageError(
            f"{name}{place[0]} is {number:g}; attention needs finite numbers, hidden ones too, and up to {LARGEST:g} in queries and keys: "
            "look where it comes from, or fill it with zeros (torch.nan_to_num) if it is filling",
            f"{name}{place[0]} 为 {number:g}；注意力需要有限的数（被遮住的也一样），查询与键不超过 {LARGEST:g}："
            "请查明来源；若是填充，请用零填上（torch.nan_to_num）",
        )
