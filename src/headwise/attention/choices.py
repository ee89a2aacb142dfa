"""The attention kernels that a recipe may name under `attention: {kind: …}`.

A new kernel is its own file in attention/kernels/ and one name in the union here. A kernel of
another package is found through the entry points `headwise.attention` (settings/added_kinds.py).
"""

from collections.abc import Callable, Sequence
from typing import Annotated, get_args

from headwise.attention.capabilities import ROLES, AttentionKind, Role
from headwise.attention.kernels.bigbird import BigBird
from headwise.attention.kernels.full import Full
from headwise.attention.kernels.fused import Fused
from headwise.attention.kernels.linear import Linear
from headwise.attention.kernels.linformer import Linformer
from headwise.attention.kernels.longformer import Longformer
from headwise.attention.kernels.performer import Performer
from headwise.attention.kernels.reformer import Reformer
from headwise.attention.kernels.window import Window
from headwise.attention.multi_head import MultiHeadAttention, Relation
from headwise.errors import SettingsError
from headwise.settings.added_kinds import FoundKinds, OpenChoice, find_kinds
from headwise.settings.kind import join_words

GROUP = "headwise.attention"

AttentionSettings = Annotated[
    Full | Fused | Window | Longformer | BigBird | Linear | Performer | Linformer | Reformer,
    OpenChoice(GROUP, AttentionKind),
]
BUILT_IN: tuple[type[AttentionKind], ...] = get_args(get_args(AttentionSettings)[0])
DEFAULT_ATTENTION = Fused()

__all__ = [
    "BUILT_IN",
    "DEFAULT_ATTENTION",
    "GROUP",
    "AttentionSettings",
    "BigBird",
    "Full",
    "Fused",
    "Linear",
    "Linformer",
    "Longformer",
    "Performer",
    "Reformer",
    "Window",
    "attention_kinds",
    "build_attention",
    "kinds_that",
    "share_between_layers",
]


def attention_kinds() -> dict[str, type[AttentionKind]]:
    """Every kind of attention by its name: the built-in ones, then those of installed packages."""
    return find_attention().usable


def find_attention() -> FoundKinds[AttentionKind]:
    """The same, and the words of installed packages that cannot be used."""
    return find_kinds(GROUP, AttentionKind, BUILT_IN)


def build_attention(
    settings: AttentionKind,
    *,
    dim: int,
    num_heads: int,
    dropout_rate: float,
    role: Role,
    relation: Relation | None = None,
) -> MultiHeadAttention:
    """The attention of one layer; settings that cannot be used in this role are refused with a list
    of those that can."""
    why = settings.refuse_role(role)
    if why is not None:
        able = kinds_that(lambda kind: kind.refuse_role(role) is None)
        en, zh = (
            f"attention.kind={settings.kind} stands in {ROLES[role]}, but {why[0]}",
            f"attention.kind={settings.kind} 出现在 {ROLES[role]}，而{why[1]}",
        )
        if settings.kind not in able:  # otherwise the reason names the setting that prevents it
            en += f"; use kind={join_words(able, ' or ')} there"
            zh += f"；请在该处使用 kind={join_words(able, ' 或 ', '、')}"
        raise SettingsError(en, zh)
    kernel = settings.build_kernel(head_dim=dim // num_heads, dropout_rate=dropout_rate)
    return settings.build_layer(dim, num_heads, kernel, relation=relation)


def kinds_that(fits: Callable[[AttentionKind], bool]) -> list[str]:
    """The built-in kinds that can be used in this role with their default settings."""
    return [kind.word() for kind in BUILT_IN if fits(kind.model_validate({}))]


def share_between_layers(layers: Sequence[MultiHeadAttention]) -> None:
    """Replace equal kernels of a stack by one kernel that all layers share."""
    for layer in layers[1:]:
        if getattr(layer.kernel, "is_shared_by_layers", False):
            layer.kernel = layers[0].kernel
