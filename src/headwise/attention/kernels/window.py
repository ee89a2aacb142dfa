"""Sliding-window attention: a query attends only to nearby keys, so the cost is linear.

    weights_ij = softmax over j with i − left ≤ j ≤ i + right          (and what the mask allows)

Beltagy et al. 2020 (Longformer), section 3.1; also called local attention. After L layers a token
depends on L · left tokens to its left, as in a stack of small convolutions. Under a causal mask
nothing to the right of i is visible, whatever `right` is. While decoding, the cache holds only the
last left + 1 positions: memory and time of a step do not grow with the length.

Cost for n tokens, h heads of d: 4 · n · h · (left + right + block) · d operations instead of 4 · n²
· h · d; the additional block of keys comes from computing queries in blocks
(attention/sparse/gathered.py).

Tested against: attention/kernels/full.py with a window mask; with left and right ≥ length it is
full attention.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field, model_validator
from torch import Tensor

from headwise.attention import masks
from headwise.attention.biases import Bias, DistanceBias, VectorBias
from headwise.attention.cache import Cache
from headwise.attention.capabilities import ONE_SEQUENCE, AttentionKind, KernelSize, Role
from headwise.attention.kernels.full import FullAttention
from headwise.attention.masks import Mask
from headwise.attention.multi_head import Kernel
from headwise.attention.size_checks import BoundedSize, check_sizes
from headwise.attention.sparse.gathered import Layout, fitting_block
from headwise.attention.sparse.sparse_attention import Form, SparseAttention, SparsePlan
from headwise.errors import SettingsError, UsageError
from headwise.settings.kind import Words


@dataclass(frozen=True)
class WindowAttention(SparseAttention):
    """`left` keys before, `right` keys after, and the query's own; the position of a query is its
    index, shifted by the offset of a causal mask."""

    kind: ClassVar[str] = "window"
    left: int
    right: int
    dropout_rate: float = 0.0
    block: int | None = None
    """Number of queries in a block, which fetch their keys together; None: about half a window."""
    form: Form = "auto"

    def __post_init__(self) -> None:
        sizes = (
            BoundedSize("left", self.left, least=0),
            BoundedSize("right", self.right, least=0),
            BoundedSize("block", self.block),
        )
        check_sizes("WindowAttention", *sizes)
        _check_reach(self.left, self.right, owner="WindowAttention")

    def plan(self, mask: Mask, num_queries: int, num_keys: int, device: torch.device) -> SparsePlan:
        # the position of a query is its index unless the mask has an offset
        offset = mask.causal_offset or 0
        left = min(self.left, num_keys)
        right = min(self.right, num_keys) if mask.causal_offset is None else 0
        block = self.block or fitting_block(left + right)
        layout = Layout(num_queries, num_keys, block, left, right, device, offset=offset)
        return SparsePlan(masks.Band(self.left, self.right, offset), layout)

    def make_cache(
        self, *, max_length: int, num_rows: int, num_heads: int, head_dim: int, like: Tensor
    ) -> Cache:
        shape = (num_rows, num_heads, head_dim)
        return WindowCache.empty(self.left + 1, max_length=max_length, shape=shape, like=like)

    def step(
        self,
        q: Float[Tensor, "row head 1 head_dim"],
        k: Float[Tensor, "row head 1 head_dim"],
        v: Float[Tensor, "row head 1 head_dim"],
        cache: Cache,
        *,
        bias: Bias | None = None,
    ) -> Float[Tensor, "row head 1 head_dim"]:
        assert isinstance(cache, WindowCache)
        keys, values = cache.append(k, v)
        return FullAttention()(q, keys, values, Mask(), bias=bias_of_last(bias, keys.shape[2]))


class WindowCache:
    """The last `num_kept` keys and values, in a buffer of twice that size, so that they are
    contiguous and rarely moved."""

    def __init__(
        self,
        store: Float[Tensor, "two time row head head_dim"],
        num_kept: int,
        *,
        room: int | None = None,
    ) -> None:
        self.store, self.num_kept, self.room = store, num_kept, room
        self.length = 0
        self._end = 0

    @classmethod
    def empty(
        cls, num_in_sight: int, *, max_length: int, shape: tuple[int, int, int], like: Tensor
    ) -> "WindowCache":
        """For a window of so many positions, rows of at most `max_length`, and one position of
        shape [row, head, head_dim]."""
        num_kept = min(num_in_sight, max_length)
        room = max_length if max_length < num_in_sight else None
        return cls(like.new_empty((2, 2 * num_kept, *shape)), num_kept, room=room)

    def append(
        self, k: Float[Tensor, "row head 1 head_dim"], v: Float[Tensor, "row head 1 head_dim"]
    ) -> tuple[Float[Tensor, "row head time head_dim"], Float[Tensor, "row head time head_dim"]]:
        """Add one position; returns the keys and values inside the window, oldest first."""
        if self.length == self.room:  # the oldest are still inside the window and would be lost
            raise UsageError(
                f"the cache has room for {self.room} positions and {self.length + 1} are needed; "
                "start with a larger max_length",
                f"缓存可容纳 {self.room} 个位置，需要 {self.length + 1} 个；请以更大的 max_length "
                "开始",
            )
        if self._end == self.store.shape[1]:
            num_older = self.num_kept - 1
            self.store[:, :num_older] = self.store[:, self._end - num_older : self._end].clone()
            self._end = num_older
        self.store[0, self._end], self.store[1, self._end] = k[:, :, 0], v[:, :, 0]
        self._end += 1
        self.length += 1
        keys, values = self.store[:, max(0, self._end - self.num_kept) : self._end].permute(
            0, 2, 3, 1, 4
        )
        return keys, values

    def reorder(self, index: Int[Tensor, " new_row"]) -> None:
        """Row i becomes the old row index[i]; fewer rows than before drops the others."""
        store = self.store.new_empty(*self.store.shape[:2], index.shape[0], *self.store.shape[3:])
        begin = max(0, self._end - self.num_kept)
        store[:, begin : self._end] = self.store[:, begin : self._end].index_select(2, index)
        self.store = store


def bias_of_last(bias: Bias | None, num_kept: int) -> Tensor | DistanceBias | None:
    """The bias of the keys inside the window, which are the last ones."""
    if bias is None:
        return None
    if isinstance(bias, DistanceBias):
        return DistanceBias(bias.table, bias.first, offset=num_kept - 1)
    assert not isinstance(bias, VectorBias), "Window declares that it does not take `weights`"
    return bias[..., -num_kept:]


def _check_reach(left: int, right: int, *, owner: str) -> None:
    """A rule of the kernel and of its settings; `owner` is whose settings the message names."""
    if left == right == 0:
        raise SettingsError(
            f"{owner}.left and {owner}.right are both 0, so a token would attend only to itself; a "
            f"window needs at least one neighbour: set {owner}.left=1 or more",
            f"{owner}.left 与 {owner}.right 均为 0，词元只能关注自己；"
            f"窗口至少要有一个邻居：请设 {owner}.left=1 或更大",
        )


class Window(AttentionKind):
    """Nearby tokens only: the cost grows with the length, not with its square."""

    kind: Literal["window"] = "window"
    left: int = Field(256, ge=0, le=1 << 30)
    right: int = Field(256, ge=0, le=1 << 30)
    """Number of tokens before and after that a token attends to; a decoder never attends to later
    tokens."""

    title: ClassVar[Words] = ("window", "窗口")
    summary: ClassVar[Words] = (
        "Neighbours only: cost grows with the length, not its square.",
        "只关注邻近：代价随长度增长，而不是其平方。",
    )
    paper: ClassVar[str] = "Beltagy et al. 2020, Longformer: The Long-Document Transformer"
    cost: ClassVar[str] = "4 · n · h · min(n, left + right + block) · d"
    memory: ClassVar[str] = "n · h · (2 · min(n, left + right + block) + 9 · d)"
    knows_order: ClassVar[bool] = True

    @model_validator(mode="after")
    def _sees_more_than_itself(self) -> "Window":
        _check_reach(self.left, self.right, owner="attention")
        return self

    @classmethod
    def example(cls) -> "Window":
        return cls(left=4, right=4)

    @property
    def size(self) -> KernelSize:
        return KernelSize(("tokens to either side", "两侧的词元数"), self.left)

    def resize(self, size: int) -> "Window":
        return Window(left=size, right=size)

    def refuse_role(self, role: Role) -> Words | None:
        if role == "cross":
            return ONE_SEQUENCE
        if role == "decoder" and self.left == 0:
            return (
                "nothing ahead is seen there, and a token would see only itself; set "
                "attention.left=1 or more",
                "那里看不到后面，词元只能看到自己；请设 attention.left=1 或更大",
            )
        return None

    @property
    def cost_terms(self) -> dict[str, int | float]:
        return super().cost_terms | {"block": fitting_block(self.left + self.right)}

    def build_kernel(self, *, head_dim: int, dropout_rate: float) -> Kernel:
        return WindowAttention(self.left, self.right, dropout_rate)
