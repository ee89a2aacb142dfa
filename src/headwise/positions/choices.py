"""The position encodings that a recipe may name under `position: {kind: …}`.

A new encoding is its own file in positions/ and one name in the union here. An encoding of another
package is found through the entry points `headwise.positions` (settings/added_kinds.py).
"""

from collections.abc import Sequence
from typing import Annotated, get_args

from torch import nn

from headwise.attention.capabilities import AttentionKind
from headwise.attention.choices import kinds_that
from headwise.attention.multi_head import Need, Relation
from headwise.errors import UsageError
from headwise.positions.alibi import Alibi
from headwise.positions.continuous import Continuous
from headwise.positions.declaration import PositionKind
from headwise.positions.learned import Learned
from headwise.positions.relative import Relative
from headwise.positions.rotary import Rotary
from headwise.positions.sinusoidal import Sinusoidal
from headwise.positions.t5 import Buckets
from headwise.positions.transformer_xl import TransformerXL
from headwise.settings.added_kinds import OpenChoice, all_kinds
from headwise.settings.kind import Words, join_words

GROUP = "headwise.positions"

PositionSettings = Annotated[
    Sinusoidal | Learned | Rotary | Alibi | Buckets | Relative | TransformerXL | Continuous,
    OpenChoice(GROUP, PositionKind),
]
BUILT_IN: tuple[type[PositionKind], ...] = get_args(get_args(PositionSettings)[0])
DEFAULT_POSITION = Sinusoidal()

__all__ = [
    "BUILT_IN",
    "DEFAULT_POSITION",
    "GROUP",
    "Alibi",
    "Buckets",
    "Continuous",
    "Learned",
    "PositionSettings",
    "Relative",
    "Rotary",
    "Sinusoidal",
    "TransformerXL",
    "build_positions",
    "build_relations",
    "check_relation",
    "position_kinds",
]

NEEDS: dict[Need, Words] = {
    "rotations": ("rotates queries and keys", "旋转查询与键"),
    "views": ("marks queries and keys in different ways", "以不同方式标记查询与键"),
    "distances": ("adds a bias to the scores", "给分数加偏置"),
    "pairs": ("adds a bias of its own for every pair of query and key", "给每对查询与键各加偏置"),
    "weights": ("adds to the values, for which every weight is needed", "给值加向量，需要每个权重"),
}
"""For each effect of an encoding on attention, its description; a kernel must support it."""


def position_kinds() -> dict[str, type[PositionKind]]:
    """Every position encoding by its name: the built-in ones, then those of installed packages."""
    return all_kinds(GROUP, PositionKind, BUILT_IN)


def build_positions(settings: PositionKind, *, dim: int) -> nn.Module | None:
    """The module that is added to the embeddings; None for kinds that act in attention instead."""
    return settings.build_added(dim=dim)


def build_relations(
    settings: PositionKind, *, num_layers: int, dim: int, num_heads: int, is_causal: bool
) -> Sequence[Relation | None]:
    """For each layer of a stack the relation for its self-attention, or None for kinds that are
    added to the embeddings."""
    return settings.build_relations(
        num_layers=num_layers, dim=dim, num_heads=num_heads, is_causal=is_causal
    )


def check_relation(attention: AttentionKind, relation: Relation | None) -> None:
    """Refuse a position encoding that the kernel does not support, with kernels and encodings that
    fit."""
    if relation is None or relation.needs in attention.takes:
        return
    need, kind = relation.needs, attention.kind
    able = kinds_that(lambda one: need in one.takes)
    if kind in able:
        en = "leave the score and the weights of attention as they are by default"
        zh = "请让 attention 的 score 与 weights 保持默认"
    else:
        en = f"use attention.kind={join_words(able, ' or ')}"
        zh = f"请用 attention.kind={join_words(able, ' 或 ', '、')}"
    position = position_kinds().get(relation.kind)
    variants = {} if position is None else position.variants
    ways = [f"position.{text}" for text, other in variants.items() if other in attention.takes]
    others = [one.word() for one in BUILT_IN if one.needs is None or one.needs in attention.takes]
    en, zh = (
        ", or ".join([en, *ways, f"position.kind={join_words(others, ' or ')}"]),
        "，或 ".join([zh, *ways, f"position.kind={join_words(others, ' 或 ', '、')}"]),
    )
    raise UsageError(
        f"position.kind={relation.kind} {NEEDS[need][0]}, which attention.kind={kind} cannot take; "
        f"{en}",
        f"position.kind={relation.kind} {NEEDS[need][1]}，attention.kind={kind} 做不到；{zh}",
    )
