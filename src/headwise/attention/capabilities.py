"""The declaration of an attention kernel: what it supports and costs (`AttentionKind`).

    masks      which masks it honours
    roles      encoder: self-attention over a whole sequence
               decoder: causal self-attention, with a cache while decoding
               cross: from target to source
    takes      which kinds of position encoding it supports
    limits     the longest and shortest rows it can read
    cost       multiplications and additions as a formula, which is also computed
    memory     numbers that the backward pass keeps, as a formula
    example    small settings for laws, pictures and the page

Each kernel's settings type (`Window`, `Linear`, …) is an `AttentionKind` with these declarations
and a method that builds the kernel; it is in the kernel's own file. attention/choices.py joins the
kinds into one union, and all other code asks a kind instead of listing kernels. A kernel of another
package declares itself in the same way (settings/added_kinds.py).

Tested against: the laws, which each kind must pass as it declares itself; every kind in every role.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, NamedTuple

from torch import Tensor

from headwise.attention.cost_formula import compute_formula
from headwise.attention.multi_head import Kernel, MultiHeadAttention, Need, Relation
from headwise.errors import UsageError
from headwise.settings.kind import Kind, Words, by_language

Role = Literal["encoder", "decoder", "cross"]
"""Where attention is used: among source tokens, among target tokens (causal), from target to
source."""
ROLES: Mapping[Role, str] = {
    "encoder": "model.encoder.attention",
    "decoder": "model.decoder.attention",
    "cross": "model.decoder.cross_attention",
}
"""Each role with its key in a recipe."""

MaskPart = Literal["causal", "causal_offset", "window", "padding", "segments", "explicit"]
"""The parts of a mask; `causal_offset`: causal where the first query does not correspond to the
first key."""
EVERY_MASK: frozenset[MaskPart] = frozenset(
    ("causal", "causal_offset", "window", "padding", "segments", "explicit")
)
ROW_MASKS: frozenset[MaskPart] = frozenset(("causal", "causal_offset", "padding", "segments"))
"""The masks that a kernel without a table of all pairs can honour."""

EVERY_NEED: frozenset[Need] = frozenset(("rotations", "views", "distances", "pairs", "weights"))
SCORE_NEEDS: frozenset[Need] = frozenset(("rotations", "views", "distances"))
"""Positions encoded in queries and keys, and biases by distance."""
VIEW_NEEDS: frozenset[Need] = frozenset(("rotations", "views"))
"""Positions encoded in queries, keys and values only."""

ONE_SEQUENCE: Words = (
    "its queries and keys must be the same tokens, and here they are two sequences without common "
    "neighbours",
    "它要求查询与键是同一些词元，而这里是两个序列，没有共同的相邻关系",
)
"""Why a kernel for one sequence cannot be used in cross-attention."""
LOOKS_AHEAD: Words = (
    "later tokens are not written yet, and its global tokens attend to them",
    "后面的词元尚未写出，而它的全局词元会关注它们",
)
"""Why a kernel with global tokens cannot be used in a decoder."""


class RowLimit(NamedTuple):
    """The most tokens of a row, and the key of the setting that limits it."""

    key: str
    tokens: int


class KernelSize(NamedTuple):
    """The setting of a kernel that decides how many keys a query sees."""

    label: Words
    value: int


class AttentionKind(Kind):
    """Settings of one kernel, and what it declares."""

    masks: ClassVar[frozenset[MaskPart]] = EVERY_MASK
    cost: ClassVar[str]
    """Operations of a row of n tokens in h heads of width d, without projections: a formula
    (cost_formula.py) of a row that is longer than blocks and windows. It counts matrix products, as
    torch does; differences, exponentials and sums of single numbers are left out."""
    memory: ClassVar[str | None] = None
    """Numbers that the backward pass keeps for such a row, as a formula; None: not known."""
    is_reference: ClassVar[bool] = False
    """Whether other kernels are compared with it; it then runs as written and is never compiled."""
    has_own_weights: ClassVar[bool] = True
    """Whether its weights differ from those of every other kernel, so that a picture of them is
    informative."""
    compared_with: ClassVar[Words | None] = None
    """What a kernel approximates, if it is not softmax attention of the same queries and keys."""

    # What the laws need to know to choose their inputs.
    one_sequence_only: ClassVar[bool] = False
    """Whether queries and keys must be the same tokens."""
    whole_segments: ClassVar[bool] = False
    """Whether the tokens of a segment must be contiguous in the row."""
    knows_order: ClassVar[bool] = False
    """Whether the order of the keys matters although the mask is permuted with them."""
    is_continuous: ClassVar[bool] = True
    """Whether the output is continuous in the input."""
    sums_to_one: ClassVar[bool] = True
    """Whether the weights of a query are non-negative and sum to one; mixtures of tokens may be
    negative."""
    num_extra_terms: ClassVar[int] = 0
    """How many numbers are summed beyond the scores and means of full attention, each with its
    rounding error."""

    @classmethod
    def example(cls) -> "AttentionKind":
        """Settings that are small enough for a test, a picture or a web page."""
        return cls.model_validate({})

    @property
    def takes(self) -> frozenset[Need]:
        """The ways in which position encodings may act on it."""
        return SCORE_NEEDS

    @property
    def size(self) -> KernelSize | None:
        """The setting that decides how many keys a query sees, if there is a single one."""
        return None

    def resize(self, size: int) -> "AttentionKind":
        """The same kernel with another `size`."""
        raise UsageError(
            f"attention {self.kind} has no size to choose; leave it out",
            f"{self.kind} 注意力没有可选的大小；请不要给出",
        )

    @property
    def cost_terms(self) -> dict[str, int | float]:
        """What the names in `cost` and `memory` stand for, besides n, h and d: the numbers among
        the settings."""
        return {name: value for name, value in self if isinstance(value, int | float)}

    def count_operations(self, length: int, *, num_heads: int, head_dim: int) -> int | float:
        """Operations of a row, from the formula."""
        sizes = {"n": length, "h": num_heads, "d": head_dim}
        return compute_formula(self.cost, self.cost_terms | sizes)

    def count_kept_bytes(self, length: int, *, num_heads: int, head_dim: int) -> int | float | None:
        """Bytes in float32 that the backward pass keeps for a row; None: not known."""
        if self.memory is None:
            return None
        sizes = {"n": length, "h": num_heads, "d": head_dim}
        return 4 * compute_formula(self.memory, self.cost_terms | sizes)

    def refuse_role(self, role: Role) -> Words | None:
        """Why these settings cannot be used in a role; None: they can."""
        return None

    @property
    def longest_row(self) -> RowLimit | None:
        """The longest rows it can read; None: any length."""
        return None

    def refuse_rows(self, num_tokens: int, *, key: str) -> Words | None:
        """Why rows of so many tokens are refused; `key` is where the settings are in the recipe."""
        return None

    def fit_length(self, length: int) -> "AttentionKind":
        """The same kernel for rows of this length, if it has a limit."""
        return self

    def build_kernel(self, *, head_dim: int, dropout_rate: float) -> Kernel:
        raise NotImplementedError(f"{type(self).__name__} does not say how its kernel is built")

    def build_layer(
        self, dim: int, num_heads: int, kernel: Kernel, *, relation: Relation | None
    ) -> MultiHeadAttention:
        """The module that holds the projections around the kernel."""
        return MultiHeadAttention(dim, num_heads, kernel, relation=relation)

    @classmethod
    def roles(cls) -> tuple[Role, ...]:
        """The roles in which the kernel can be used, with settings of its own choice."""
        return tuple(role for role in ROLES if cls.example().refuse_role(role) is None)

    @classmethod
    def declare(cls) -> dict[str, Any]:
        example = cls.example()
        size = example.size
        return {
            **super().declare(),
            "cost": cls.cost,
            "memory": cls.memory,
            "roles": list(cls.roles()),
            "masks": sorted(cls.masks),
            "size": None
            if size is None
            else {"label": by_language(size.label), "value": size.value},
            "has_own_weights": cls.has_own_weights,
        }


def keys_are_queries(kernel: Kernel) -> bool:
    """Whether a kernel sorts queries and keys together, so that both must be the same vectors."""
    return bool(getattr(kernel, "keys_are_queries", False))


def attend_exactly(kernel: Kernel, q: Tensor, v: Tensor, *, is_causal: bool) -> Tensor | None:
    """What a kernel approximates, if it is not softmax attention of the same q, k and v."""
    exact = getattr(kernel, "attend_exactly", None)
    return None if exact is None else exact(q, v, is_causal=is_causal)
