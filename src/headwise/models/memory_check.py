"""Refuses settings that cannot go together with a memory of earlier segments (segment_memory.py).

    positions    distances in the scores; a place in the row would have to change with every segment
    attention    keys that precede the first query, hidden one by one
    norm         no statistics over tokens, which would count remembered tokens again
    lookup       a layer that exists, no more neighbours than stored tokens

Tested: each reason, and that what the message proposes is accepted.
"""

from typing import Protocol, runtime_checkable

from headwise.attention.capabilities import AttentionKind, MaskPart
from headwise.attention.choices import AttentionSettings, kinds_that
from headwise.blocks.choices import NormSettings, name_plain_norms
from headwise.errors import SettingsError
from headwise.models.segment_memory import (
    CarriedMemory,
    LanguageMemorySettings,
    NearestMemory,
)
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
    def layers(self) -> int: ...
    @property
    def memory(self) -> LanguageMemorySettings: ...


def check_memory(settings: SettingsWithMemory) -> None:
    """Raise unless these settings can carry a memory, if they have one."""
    memory = settings.memory
    if not isinstance(memory, CarriedMemory):
        return
    word = f"memory.kind={memory.kind}"
    if not _counts_distances(settings.position):
        able = [kind.word() for kind in POSITIONS if _counts_distances(kind.model_validate({}))]
        raise SettingsError(
            f"{word} needs positions that are distances, but position.kind="
            f"{settings.position.kind} marks places in a row, which are others in the next "
            f"segment; use position.kind={join_words(able, ' or ')}",
            f"{word} 需要以距离表示的位置，而 position.kind="
            f"{settings.position.kind} 标记词元在行内的位置，到下一段就变了；请用 "
            f"position.kind={join_words(able, ' 或 ', '、')}",
        )
    if not _reads_earlier_keys(settings.attention):
        kinds = kinds_that(_reads_earlier_keys)
        raise SettingsError(
            f"{word} needs attention to keys before the row, which attention.kind="
            f"{settings.attention.kind} cannot give; use "
            f"attention.kind={join_words(kinds, ' or ')}",
            f"{word} 需要关注本行之前的键，attention.kind="
            f"{settings.attention.kind} 做不到；请用 "
            f"attention.kind={join_words(kinds, ' 或 ', '、')}",
        )
    if settings.norm.counts_tokens:
        able_norms = name_plain_norms()
        raise SettingsError(
            f"{word} reads remembered tokens again, and norm.kind="
            f"{settings.norm.kind} would count them twice; use {able_norms[0]}",
            f"{word} 会再次读取记住的词元，norm.kind={settings.norm.kind} "
            f"会把它们统计两次；请用 {able_norms[1]}",
        )
    if isinstance(memory, NearestMemory):
        _check_lookup(memory, settings)


def _check_lookup(memory: NearestMemory, settings: SettingsWithMemory) -> None:
    """Raise unless a layer of these settings can look up stored tokens."""
    if memory.layer is not None and memory.layer > settings.layers:
        raise SettingsError(
            f"memory.layer={memory.layer}, but the model has {settings.layers} layers, counted "
            f"from 1; use memory.layer={settings.layers} or less",
            f"memory.layer={memory.layer}，而模型只有 {settings.layers} 层（从 1 数起）；请用 "
            f"memory.layer={settings.layers} 或更小",
        )
    if memory.neighbours > memory.size:
        raise SettingsError(
            f"memory.neighbours={memory.neighbours} of memory.size={memory.size} stored tokens "
            f"cannot be chosen; use memory.neighbours={memory.size} or less, or a larger "
            "memory.size",
            f"只存 memory.size={memory.size} 个词元，无法选出 memory.neighbours="
            f"{memory.neighbours} 个；请用 memory.neighbours={memory.size} 或更小，或增大 "
            "memory.size",
        )
    if not _has_plain_layers(settings.attention):
        kinds = kinds_that(lambda kind: _reads_earlier_keys(kind) and _has_plain_layers(kind))
        raise SettingsError(
            f"memory.kind=nearest needs plain layers, and attention.kind="
            f"{settings.attention.kind} builds its own; use "
            f"attention.kind={join_words(kinds, ' or ')}",
            f"memory.kind=nearest 需要普通的注意力层，而 attention.kind="
            f"{settings.attention.kind} 自建其层；请用 "
            f"attention.kind={join_words(kinds, ' 或 ', '、')}",
        )


def _has_plain_layers(kind: AttentionKind) -> bool:
    return type(kind).build_layer is AttentionKind.build_layer


def _counts_distances(position: PositionKind) -> bool:
    return position.needs not in (None, "rotations", "views")


def _reads_earlier_keys(kind: AttentionKind) -> bool:
    is_cross = kind.refuse_role("cross") is None and kind.refuse_role("decoder") is None
    return is_cross and kind.masks >= NEEDED and not kind.one_sequence_only
