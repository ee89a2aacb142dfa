"""What an attention kernel declares about itself, in the file that computes it.

    masks      which masks it honours
    roles      encoder: self-attention over a whole sequence
               decoder: causal self-attention, with a cache while decoding
               cross: from target to source
    takes      which kinds of position encoding it supports
    limits     the longest and shortest rows it can read
    cost       multiplications and additions as a formula
    example    small settings for laws, pictures and the page

The settings type of a kernel (`Window`, `Linear`, …) is an `AttentionKind` with these declarations
and a method that builds the kernel. attention/choices.py joins the kinds into one union; everything
else asks a kind or goes through all of them. A kernel of another package declares itself in the
same way (settings/added_kinds.py).

Tested against: the laws, which each kind must pass as it declares itself; every kind in every role.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, NamedTuple

from torch import Tensor

from headwise.attention.multi_head import Kernel, MultiHeadAttention, Need, Relation
from headwise.errors import UsageError
from headwise.settings.kind import Kind, Words, by_language

Role = Literal["encoder", "decoder", "cross"]
"""Where attention stands: among source tokens, among target tokens (never ahead), from target to
source."""
ROLES: Mapping[Role, str] = {
    "encoder": "model.encoder.attention",
    "decoder": "model.decoder.attention",
    "cross": "model.decoder.cross_attention",
}
"""Each role with its place in a recipe."""

MaskPart = Literal["causal", "causal_offset", "window", "padding", "segments", "explicit"]
"""The parts of a mask; `causal_offset`: causal where queries do not start at the first key."""
EVERY_MASK: frozenset[MaskPart] = frozenset(
    ("causal", "causal_offset", "window", "padding", "segments", "explicit")
)
ROW_MASKS: frozenset[MaskPart] = frozenset(("causal", "causal_offset", "padding", "segments"))
"""What can be said about rows without a table of all pairs."""

EVERY_NEED: frozenset[Need] = frozenset(("places", "views", "distances", "pairs", "weights"))
SCORE_NEEDS: frozenset[Need] = frozenset(("places", "views", "distances"))
"""Positions marked in queries and keys, and biases by distance."""
VIEW_NEEDS: frozenset[Need] = frozenset(("places", "views"))
"""Positions marked in queries, keys and values alone."""

ONE_SEQUENCE: Words = (
    "its queries and keys must be the same tokens, and here they are two sequences without common "
    "neighbours",
    "它要求查询与键是同一些词元，而这里是两个序列，没有共同的相邻关系",
)
"""Why a kernel for one sequence cannot stand in cross-attention."""
LOOKS_AHEAD: Words = (
    "later tokens are not written yet, and its global tokens look ahead",
    "后面的词元尚未写出，而它的全局词元会向后看",
)
"""Why a kernel with global tokens cannot stand in a decoder."""


class RowLimit(NamedTuple):
    """At most so many tokens in a row, because this key of the settings says so."""

    key: str
    tokens: int


class Size(NamedTuple):
    """The one number of a kernel that decides how much it sees."""

    label: Words
    value: int


class AttentionKind(Kind):
    """Settings of one kernel, and what it declares."""

    masks: ClassVar[frozenset[MaskPart]] = EVERY_MASK
    cost: ClassVar[str]
    """Operations of n queries and n keys in h heads of width d, projections left out."""
    is_reference: ClassVar[bool] = False
    """Whether other kernels are compared with it; it is then run as it is written, never
    compiled."""
    has_own_weights: ClassVar[bool] = True
    """Whether its weights differ from those of every other kernel, so that a picture of them says
    something."""
    compared_with: ClassVar[Words | None] = None
    """What a kernel approximates, where that is not softmax attention of the same queries and
    keys."""

    # What the laws must know to choose their inputs.
    one_sequence_only: ClassVar[bool] = False
    """Whether queries and keys must be the same tokens."""
    whole_segments: ClassVar[bool] = False
    """Whether the tokens of a segment must stand in one stretch of the row."""
    knows_order: ClassVar[bool] = False
    """Whether the order of the keys matters although the mask follows it."""
    is_continuous: ClassVar[bool] = True
    """Whether a small change of the input changes the output a little."""
    sums_to_one: ClassVar[bool] = True
    """Whether the weights of a query are shares; mixtures of tokens may be negative."""
    num_extra_terms: ClassVar[int] = 0
    """Numbers that are added up beyond the scores and means of full attention, each with its
    rounding."""

    @classmethod
    def example(cls) -> "AttentionKind":
        """Settings that are small enough for a test, a picture or a page."""
        return cls.model_validate({})

    @property
    def takes(self) -> frozenset[Need]:
        """What position encodings may ask of it."""
        return SCORE_NEEDS

    @property
    def size(self) -> Size | None:
        """How much it sees, where one number decides that."""
        return None

    def resize(self, size: int) -> "AttentionKind":
        """The same kernel with another `size`."""
        raise UsageError(
            f"attention {self.kind} has no size to choose; leave it out",
            f"{self.kind} 注意力没有可选的大小；请不要给出",
        )

    def refuse_role(self, role: Role) -> Words | None:
        """Why these settings cannot stand in a role; None: they can."""
        return None

    @property
    def longest_row(self) -> RowLimit | None:
        """The limit of the rows it can read; None: any length."""
        return None

    def refuse_rows(self, num_tokens: int, *, key: str) -> Words | None:
        """Why rows of so many tokens make no sense; `key` is where the settings stand in the
        recipe."""
        return None

    def fit_length(self, length: int) -> "AttentionKind":
        """The same kernel for rows of this length, where it has a limit."""
        return self

    def build_kernel(self, *, head_dim: int, dropout_rate: float) -> Kernel:
        raise NotImplementedError(f"{type(self).__name__} does not say how its kernel is built")

    def build_layer(
        self, dim: int, num_heads: int, kernel: Kernel, *, relation: Relation | None
    ) -> MultiHeadAttention:
        """The module with the weights around the kernel."""
        return MultiHeadAttention(dim, num_heads, kernel, relation=relation)

    @classmethod
    def roles(cls) -> tuple[Role, ...]:
        """Where the kernel can stand, with settings of its own choice."""
        return tuple(role for role in ROLES if cls.example().refuse_role(role) is None)

    @classmethod
    def declare(cls) -> dict[str, Any]:
        example = cls.example()
        size = example.size
        return {
            **super().declare(),
            "cost": cls.cost,
            "roles": list(cls.roles()),
            "masks": sorted(cls.masks),
            "size": None
            if size is None
            else {"label": by_language(size.label), "value": size.value},
            "has_own_weights": cls.has_own_weights,
        }


def keys_are_queries(kernel: Kernel) -> bool:
    """Whether a kernel sorts queries and keys as one, so that both must be the same vectors."""
    return bool(getattr(kernel, "keys_are_queries", False))


def attend_exactly(kernel: Kernel, q: Tensor, v: Tensor, *, is_causal: bool) -> Tensor | None:
    """What a kernel approximates, where that is not softmax attention of the same q, k and v."""
    exact = getattr(kernel, "attend_exactly", None)
    return None if exact is None else exact(q, v, is_causal=is_causal)
