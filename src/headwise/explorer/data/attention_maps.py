"""Attention maps of one translation: its pieces, and the weights of every layer and head.

A map is a table of weights A[head, query, key]: how much of the value at position `key` goes into
position `query`. Each row of a softmax attention sums to one. Linformer's weights
on tokens may be negative, because they are products with learned projections. Pictures are made
from these values, so drawing needs no model.

    kind            the queries (rows)              the keys (columns)
    encoder_self    source pieces                   source pieces
    decoder_self    target pieces, as predicted     target pieces, as read (shifted: begin with <s>)
    cross           target pieces, as predicted     source pieces

Tested against: hand-made maps, and one test for every way in which a map and its pieces may
disagree.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from headwise.errors import UsageError

MapKind = Literal["encoder_self", "decoder_self", "cross"]
MAP_KINDS: tuple[MapKind, ...] = get_args(MapKind)

HeadChoice = int | Literal["mean", "max"]
"""One head by number (from 0), or the mean or the maximum over the heads of a layer."""

Level = Literal["piece", "word"]
"""Whether a picture shows the tokenizer's pieces, or pieces merged into words."""


@dataclass(frozen=True)
class AttentionMap:
    """The weights of one attention layer, all heads; `layer` counts from 0."""

    name: str
    kind: MapKind
    layer: int
    weights: NDArray[np.floating]

    def __post_init__(self) -> None:
        if self.kind not in MAP_KINDS:
            raise UsageError(
                f"attention map {self.name!r} is of kind {self.kind!r}; give one of "
                f"{', '.join(MAP_KINDS)}",
                f"注意力图 {self.name!r} 的种类为 {self.kind!r}；请用 {'、'.join(MAP_KINDS)} 之一",
            )
        weights = self.weights
        if weights.ndim != 3 or 0 in weights.shape:
            raise UsageError(
                f"attention map {self.name!r} has shape {weights.shape}; give non-empty weights "
                "[head, query, key] of one sentence",
                f"注意力图 {self.name!r} 的形状为 {weights.shape}；请给出单个句子的非空权重 "
                "[head, query, key]",
            )
        if not np.isfinite(weights).all():
            raise UsageError(
                f"attention map {self.name!r} holds weights that are not finite numbers; give "
                "weights after the softmax",
                f"注意力图 {self.name!r} 含有非有限的权重；请给出 softmax 之后的权重",
            )

    @property
    def is_signed(self) -> bool:
        """Whether some weights are negative: pictures then need a colour scale with zero in the
        middle.
        """
        return bool(self.weights.min() < 0)


@dataclass(frozen=True)
class Trace:
    """One translation with the attention maps of every layer. Languages are codes such as "en", or
    "" if unknown.
    """

    source_text: str
    target_text: str
    source_pieces: tuple[str, ...]
    target_pieces: tuple[str, ...]
    target_input_pieces: tuple[str, ...]
    maps: tuple[AttentionMap, ...]
    title: str
    source_language: str = ""
    target_language: str = ""

    def __post_init__(self) -> None:
        if not self.maps:
            raise UsageError(
                f"trace {self.title!r} has no attention maps; give at least one",
                f"轨迹 {self.title!r} 没有注意力图；请至少给出一个",
            )
        for attention in self.maps:
            expected = (
                len(self.query_pieces(attention.kind)),
                len(self.key_pieces(attention.kind)),
            )
            if attention.weights.shape[1:] != expected:
                raise UsageError(
                    f"attention map {attention.name!r} has {attention.weights.shape[1:]} (query, "
                    f"key) positions but the trace has {expected} pieces; give the pieces with "
                    "their special marks, as the model read them",
                    f"注意力图 {attention.name!r} 有 {attention.weights.shape[1:]} 个（query, "
                    f"key）位置，而轨迹有 {expected} 个词元；"
                    "请给出模型实际读入的词元（含特殊符号）",
                )

    def query_pieces(self, kind: MapKind) -> tuple[str, ...]:
        """The pieces of the rows of a map: the positions that attend."""
        return self.source_pieces if kind == "encoder_self" else self.target_pieces

    def key_pieces(self, kind: MapKind) -> tuple[str, ...]:
        """The pieces of the columns of a map: the positions that are attended to."""
        return self.target_input_pieces if kind == "decoder_self" else self.source_pieces

    def maps_of(self, kind: MapKind) -> tuple[AttentionMap, ...]:
        """The maps of one kind from the lowest layer to the highest."""
        found = tuple(
            sorted((item for item in self.maps if item.kind == kind), key=lambda item: item.layer)
        )
        if not found:
            present = sorted({item.kind for item in self.maps})
            raise UsageError(
                f"trace {self.title!r} has no {kind!r} map; it has {', '.join(present)}",
                f"轨迹 {self.title!r} 没有 {kind!r} 类注意力图；现有 {'、'.join(present)}",
            )
        return found

    def map_of(self, kind: MapKind, *, layer: int) -> AttentionMap:
        """The map of one layer; -1 is the highest layer in the trace."""
        found = self.maps_of(kind)
        by_layer = {item.layer: item for item in found}
        if layer == -1:
            return found[-1]
        if layer not in by_layer:
            layers = ", ".join(map(str, by_layer))
            raise UsageError(
                f"there is no {kind!r} map of layer {layer}; choose among the layers {layers} "
                "(counted from 0 here), or -1 for the highest",
                f"没有编号 {layer} 的层的 {kind!r} 注意力图；可选的层为 {layers}（此处从 0 "
                "数起），或用 -1 表示最高层",
            )
        return by_layer[layer]


def describe_layer(layer: int) -> tuple[str, str]:
    """The name of a layer in English and Chinese, counted from 1; arguments count from 0."""
    return f"layer {layer + 1}", f"第 {layer + 1} 层"


def describe_head(head: HeadChoice) -> tuple[str, str]:
    """The name of a head or of a mean or maximum in English and Chinese, counted from 1."""
    match head:
        case "mean":
            return "mean of the heads", "各头平均"
        case "max":
            return "maximum of the heads", "各头最大"
        case _:
            return f"head {head + 1}", f"第 {head + 1} 头"


def choose_head(weights: NDArray[np.floating], head: HeadChoice) -> NDArray[np.float64]:
    """[head, query, key] -> [query, key]: one head, or the mean or maximum over heads. The maximum
    of signed weights is the one farthest from zero.
    """
    values = weights.astype(np.float64)
    if head == "mean":
        return values.mean(axis=0)
    if head == "max":
        strongest = np.abs(values).argmax(axis=0)[None]
        return np.take_along_axis(values, strongest, axis=0)[0]
    if not isinstance(head, int) or not 0 <= head < len(values):
        raise UsageError(
            f"there is no head {head!r}; choose 0 to {len(values) - 1} (heads are counted from 0 "
            "here), 'mean' or 'max'",
            f"没有注意力头 {head!r}；请选择 0 到 {len(values) - 1}（此处从 0 数起）、'mean' 或 "
            "'max'",
        )
    return values[head]
