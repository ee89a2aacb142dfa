"""The door for tensors that come from outside: everything is checked, and what is wrong is said in one sentence.

    attend(q, k, v)                                                 fused full attention
    attend(q, k, v, kernel=WindowAttention(64, 64), mask=causal())  any kernel, any mask

Inside a model queries, keys and values come from its own projections: shapes fit and numbers are finite, and asking would make a GPU wait. Tensors of
one's own can be anything. Here their shapes must fit each other, all must be of one kind and on one device, and every number must be one, small
enough for its products to stay in float32: hidden ones too, since a weight of zero does not silence a NaN (0 × NaN = NaN). Where there is nothing
(no batch, no queries, no keys) the answer is nothing, or zeros.

Tested against: each mistake by itself, for every kernel of the table of laws.
"""

from jaxtyping import Float
from torch import Tensor

from headwise.attention.biases import Bias
from headwise.attention.fused import FusedAttention
from headwise.attention.masks import Mask
from headwise.attention.multi_head import Kernel
from headwise.attention.scores import LARGEST
from headwise.attention.shapes import check_shapes
from headwise.errors import UsageError


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
    if 0 in (q.shape[0], q.shape[2], k.shape[2]):
        return v.new_zeros(*q.shape[:3], v.shape[3]) + 0 * (q.sum() + k.sum() + v.sum())  # with a gradient: of zero
    return (FusedAttention() if kernel is None else kernel)(q, k, v, Mask() if mask is None else mask, bias=bias)


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
