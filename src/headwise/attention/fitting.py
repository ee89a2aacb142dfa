"""Which positions a kernel can be told of: asked once, when a model is built.

    full     everything, since it forms scores and weights
    fused    biases of scores, be they of distances or of pairs
    sparse   biases by distance, which are asked for pair by pair; a bias of pairs would have to be formed whole first
    others   (`takes_bias = False`) what is marked in queries, keys and values: they never form scores
    hashed   (`takes_views = False`) only what marks queries and keys alike

Tested against: every kind of position with every kernel that differs in this.
"""

from headwise.attention.kernels.full import FullAttention
from headwise.attention.kernels.fused import FusedAttention
from headwise.attention.multi_head import Kernel, Need, Relation
from headwise.errors import UsageError

POSITIONS = ("alibi", "t5", "rotary")
UNBIASED = ("sinusoidal", "learned", "rotary")
"""Positions that are marked in x, or in queries and keys alike: every kernel takes them."""
ABLE: dict[Need, tuple[str, ...]] = {
    "views": (
        "full",
        "fused",
        "window",
        "longformer",
        "bigbird",
        "linear",
        "performer",
        "linformer",
    ),
    "distances": ("full", "fused", "window", "longformer", "bigbird"),
    "pairs": ("full", "fused"),
    "weights": ("full",),
}
"""The kernels that can be told what a position asks for."""


def _list(names: tuple[str, ...], last: str, between: str) -> str:
    return last.join([*([between.join(names[:-1])] if len(names) > 1 else []), names[-1]])


def check_relation(kind: str, kernel: Kernel, relation: Relation) -> None:
    """Refuse what the kernel of this name cannot take, with what it can."""
    takes: tuple[Need, ...] = (
        ("places", "views") if getattr(kernel, "takes_views", True) else ("places",)
    )
    if getattr(kernel, "takes_bias", True):
        takes = (*takes, "distances")
    if isinstance(kernel, FusedAttention):
        takes = (*takes, "pairs")
    elif isinstance(kernel, FullAttention):
        takes = (*takes, "pairs", "weights")
    if relation.needs in takes:
        return
    if kind == "full":
        way = (
            "leave attention.score and attention.weights as they are by default, or use position.kind=alibi, t5 or rotary",
            "请让 attention.score 与 attention.weights 保持默认，或用 position.kind=alibi、t5、rotary",
        )
    elif relation.needs == "weights" and "pairs" in takes:
        way = (
            "use attention.kind=full, or set position.values=false",
            "请用 attention.kind=full，或设 position.values=false",
        )
    else:
        kinds, positions = ABLE[relation.needs], POSITIONS if "distances" in takes else UNBIASED
        way = (
            f"use attention.kind={_list(kinds, ' or ', ', ')}, or position.kind={_list(positions, ' or ', ', ')}",
            f"请用 attention.kind={_list(kinds, ' 或 ', '、')}，或 position.kind={_list(positions, ' 或 ', '、')}",
        )
    en, zh = {
        "views": ("marks queries and keys in different ways", "以不同方式标记查询与键"),
        "distances": ("adds a bias to the scores", "给分数加偏置"),
        "pairs": (
            "adds a bias of its own for every pair of query and key",
            "给每对查询与键各加偏置",
        ),
        "weights": (
            "adds to the values, for which every weight is needed",
            "给值加向量，需要每个权重",
        ),
    }[relation.needs]
    raise UsageError(
        f"position.kind={relation.kind} {en}, which attention.kind={kind} cannot take; {way[0]}",
        f"position.kind={relation.kind} {zh}，attention.kind={kind} 做不到；{way[1]}",
    )
