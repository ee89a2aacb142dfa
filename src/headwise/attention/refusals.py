"""Errors for masks, biases and sequences that a kernel cannot handle; each names kernels that can.

The alternatives are read from what the kernels declare (capabilities.py), so that a new kernel is
named without a change here.

Tested by the laws: every refusal names a kernel that supports what was asked for.
"""

from collections.abc import Callable

from headwise.attention.biases import Bias, VectorBias
from headwise.attention.capabilities import AttentionKind, MaskPart
from headwise.attention.masks import Band, Causal, Mask, MaskCondition, Padding, Segments
from headwise.errors import MaskError, UsageError
from headwise.settings.kind import Words, name_kinds


def name_able(fits: Callable[[AttentionKind], bool]) -> Words:
    """The kernels of Headwise that are able with their defaults."""
    return name_kinds(AttentionKind, "attention", fits)


def name_part(part: MaskCondition) -> MaskPart:
    """What a condition of a mask is called in the declarations of kernels."""
    match part:
        case Causal(offset=0):
            return "causal"
        case Causal():
            return "causal_offset"
        case Padding():
            return "padding"
        case Segments():
            return "segments"
        case Band():
            return "window"
    return "explicit"


def refuse_part(part: MaskCondition, *, kind: str, causal_too: bool) -> MaskError:
    """For kernels without a table of all pairs, which honour few kinds of masks."""
    name = name_part(part)
    can, can_zh = (
        ("causal, padding and segments", "因果、填充与分段")
        if causal_too
        else ("padding and segments", "填充与分段")
    )
    able, able_zh = name_able(lambda settings: name in settings.masks)
    return MaskError(
        f"attention.kind={kind} cannot honour a mask of kind {name}, only {can}; use {able}",
        f"attention.kind={kind} 无法遵守 {name} 掩码，只支持{can_zh}；请用 {able_zh}",
    )


def refuse_bias(bias: Bias | None, *, kind: str) -> None:
    """For kernels that never form the score of a single pair."""
    if bias is None:
        return
    able, able_zh = name_able(lambda settings: "distances" in settings.takes)
    raise UsageError(
        f"attention.kind={kind} never forms the score of a single pair, so a bias (relative "
        f"positions, ALiBi) cannot be added to it; use {able}, or positions that are added to x "
        "or rotate it",
        f"attention.kind={kind} 不计算单个查询与键的分数，无法加偏置（相对位置、ALiBi）；请用 "
        f"{able_zh}，或改用加到输入上或旋转式的位置编码",
    )


def refuse_vectors(bias: Bias | None, *, kind: str) -> None:
    """For kernels that do not form their weights: they would add the scores and drop the
    vectors."""
    if not isinstance(bias, VectorBias):
        return
    able, able_zh = name_able(lambda settings: "weights" in settings.takes)
    raise UsageError(
        f"attention.kind={kind} was given a bias with vectors that are added to the values "
        "(VectorBias), but this kernel never computes single weights, which they need; use "
        f"{able}, or give VectorBias.scores alone (position.values=false)",
        f"attention.kind={kind} 收到带向量、要加到值上的偏置（VectorBias）；这需要每个权重，"
        f"而该内核从不单独计算权重；请用 {able_zh}，或只给 "
        "VectorBias.scores（position.values=false）",
    )


def refuse_causal(kind: str, mask: Mask, way: str = "", way_zh: str = "") -> None:
    """For patterns in which some tokens attend to later ones; `way`: what can be done instead."""
    if mask.causal_offset is None:
        return
    able, able_zh = name_able(lambda settings: settings.refuse_role("decoder") is None)
    raise MaskError(
        f"attention.kind={kind} was given a causal mask, but its global tokens attend to later "
        f"ones; use {able} in a decoder{way}",
        f"attention.kind={kind} 收到因果掩码，但其全局词元会关注后面的词元；解码器请使用 "
        f"{able_zh}{way_zh}",
    )


def refuse_offset(kind: str, offset: int, way: str = "", way_zh: str = "") -> MaskError:
    """For kernels of one sequence, in which a query and its key have the same position."""
    able, able_zh = name_able(lambda settings: "causal_offset" in settings.masks)
    return MaskError(
        f"attention.kind={kind} was given a causal mask whose queries are {offset} positions from "
        "their keys, but it is for one sequence, in which both are at the same position; use "
        f"{way}{able}",
        f"attention.kind={kind} 收到的因果掩码中查询与键相差 {offset} 个位置，而它只用于同一序列，"
        f"两者位置相同；请用 {way_zh}{able_zh}",
    )


def only_self_attention(kind: str, num_queries: int, num_keys: int) -> None:
    """Refuse two sequences: a pattern inside sentences is undefined between them."""
    if num_queries == num_keys:
        return
    able, able_zh = name_able(lambda settings: settings.refuse_role("cross") is None)
    raise UsageError(
        f"attention.kind={kind} was given {num_queries} queries and {num_keys} keys; it needs the "
        f"same tokens on both sides (self-attention); use {able} between two sequences",
        f"attention.kind={kind} 收到 {num_queries} 个查询和 {num_keys} 个键；"
        f"它要求两边是同一些词元（自注意力）；两个序列之间请使用 {able_zh}",
    )
