"""Whether queries, keys and values fit together: asked by every kernel before it computes, from sizes alone.

    queries [batch, head, query, d]     keys [batch, head, key, d]     values [batch, head, key, value_dim]

Some kernels would fail on others with a message of matrices, some would silently read too few keys. Tested in tests/attention/test_shapes.py.
"""

from torch import Tensor

from headwise.errors import UsageError


def check_shapes(q: Tensor, k: Tensor, v: Tensor, *, same_width: bool = True) -> None:
    """Refuse what does not fit; scores with weights of their own may compare unlike widths."""
    if q.ndim == k.ndim == v.ndim == 4:
        alike = all(len({q.shape[axis], k.shape[axis], v.shape[axis]} - {1}) <= 1 for axis in (0, 1))
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
        en, zh = "all three need the same batch and the same number of heads", "三者的批与头数须相同"
    return UsageError(
        f"queries, keys and values of shapes {given} do not fit: {en}; give [batch, head, time, head_dim]",
        f"查询、键、值的形状为 {given}，不相配：{zh}；请给出 [batch, head, time, head_dim]",
    )


def check_heads(dim: int, num_heads: int) -> None:
    """A width is cut into heads of equal size."""
    if num_heads < 1 or dim % num_heads != 0:
        raise UsageError(
            f"{num_heads} heads do not divide a width of {dim}; give a number of heads that does, or another dim",
            f"{num_heads} 个头不能整除宽度 {dim}；请给出能整除的头数，或更换 dim",
        )
