"""Refuses settings that cannot go together with a memory of earlier segments (segment_memory.py).

    positions    distances in the scores; a place in the row would have to change with every segment
    attention    keys that precede the first query, hidden one by one
    norm         no statistics over tokens, which would count remembered tokens again

Tested: each reason, and that what the message proposes is accepted.
"""

from typing import Protocol, runtime_checkable

from headwise.attention.capabilities import AttentionKind, MaskPart
from headwise.attention.choices import AttentionSettings, kinds_that
from headwise.blocks.choices import NormSettings, name_plain_norms
from headwise.errors import SettingsError
from headwise.models.segment_memory import LanguageMemorySettings, SegmentMemory
from headwise.positions.choices import BUILT_IN as POSITIONS
from headwise.positions.choices import PositionSettings
from headwise.positions.declaration import PositionKind
from headwise.settings.kind import join_words

NEEDED: frozenset[MaskPart] = frozenset(("causal", "causal_offset", "window", "padding"))


@runtime_checkable
class SettingsWithMemory(Protocol):
    """The settings of a model that may have a memory."""

    @property
    def position(self) -> PositionSettings: ...
    @property
    def attention(self) -> AttentionSettings: ...
    @property
    def norm(self) -> NormSettings: ...
    @property
    def memory(self) -> LanguageMemorySettings: ...


def check_memory(settings: SettingsWithMemory) -> None:
    """Raise unless these settings can carry a memory, if they have one."""
    if not isinstance(settings.memory, SegmentMemory):
        return
    if not _counts_distances(settings.position):
        able = [kind.word() for kind in POSITIONS if _counts_distances(kind.model_validate({}))]
        raise SettingsError(
            f"memory.kind=segments needs positions that are distances, but position.kind="
            f"{settings.position.kind} marks places in a row, which are others in the next "
            f"segment; use position.kind={join_words(able, ' or ')}",
            f"memory.kind=segments 需要以距离表示的位置，而 position.kind="
            f"{settings.position.kind} 标记词元在行内的位置，到下一段就变了；请用 "
            f"position.kind={join_words(able, ' 或 ', '、')}",
        )
    if not _reads_earlier_keys(settings.attention):
        kinds = kinds_that(_reads_earlier_keys)
        raise SettingsError(
            f"memory.kind=segments needs attention to keys before the row, which attention.kind="
            f"{settings.attention.kind} cannot give; use "
            f"attention.kind={join_words(kinds, ' or ')}",
            f"memory.kind=segments 需要关注本行之前的键，attention.kind="
            f"{settings.attention.kind} 做不到；请用 "
            f"attention.kind={join_words(kinds, ' 或 ', '、')}",
        )
    if settings.norm.counts_tokens:
        able_norms = name_plain_norms()
        raise SettingsError(
            f"memory.kind=segments reads remembered tokens again, and norm.kind="
            f"{settings.norm.kind} would count them twice; use {able_norms[0]}",
            f"memory.kind=segments 会再次读取记住的词元，norm.kind={settings.norm.kind} "
            f"会把它们统计两次；请用 {able_norms[1]}",
        )


def _counts_distances(position: PositionKind) -> bool:
    return position.needs not in (None, "rotations", "views")


def _reads_earlier_keys(kind: AttentionKind) -> bool:
    is_cross = kind.refuse_role("cross") is None and kind.refuse_role("decoder") is None
    return is_cross and kind.masks >= NEEDED and not kind.one_sequence_only
