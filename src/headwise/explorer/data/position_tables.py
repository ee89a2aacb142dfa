"""Every position encoding as numbers: its table, and its effect on a score by distance.

    encoding                     table                          curve over distances d
    sinusoidal, learned          [position, dim]                PE(p) · PE(p + d), mean over p
    rotary                       one vector, rotated            q₀ · k_d of equal unit vectors
    alibi, t5                    t5: the buckets                the bias of each head (t5 without a
                                                                model: the buckets)
    relative, transformer_xl     [distance, dim]                product with a fixed query
    continuous                   the path of the keys           as for sinusoidal

The numbers come from new modules, or from those of a loaded translator or language model.
Parameters of a loaded model are shown as learned, and those of a new module as initialised;
`origin` says which (formula, drawn, model).

Tested against: the formulas, the relations' own biases, a model's own tables.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from headwise.attention.biases import DistanceBias
from headwise.attention.multi_head import Relation
from headwise.errors import UsageError
from headwise.initialization import initialize
from headwise.models.choices import DecoderOnlySettings
from headwise.models.decoder_only import DecoderOnly
from headwise.models.encoder_decoder import EncoderDecoder
from headwise.models.transformer_settings import TransformerSettings
from headwise.positions.choices import build_positions, build_relations
from headwise.positions.declaration import PositionKind
from headwise.randomness import torch_generator
from headwise.settings import Settings

Origin = Literal["formula", "drawn", "model"]


@runtime_checkable
class DistanceTable(Protocol):
    """A relation with a vector for each distance between key and query."""

    def table_by_distance(
        self, distance: Int[Tensor, " distance"]
    ) -> Float[Tensor, "distance dim"]: ...


@runtime_checkable
class PositionPath(Protocol):
    """A relation with a vector for each position."""

    def table_by_position(self, length: int) -> Float[Tensor, "time dim"]: ...


@runtime_checkable
class DistanceBuckets(Protocol):
    """A relation that puts distances into buckets."""

    def find_buckets(self, distance: Int[Tensor, " distance"]) -> Int[Tensor, " distance"]: ...


@dataclass(frozen=True)
class Curve:
    """A curve over distances (key − query); `head` counts from 0, None if all heads share it."""

    head: int | None
    values: list[float]


@dataclass(frozen=True)
class PositionTable:
    kind: str
    formula: str
    origin: Origin
    rows: Literal["position", "distance"]
    """What a row of the table belongs to."""
    first_row: int
    table: list[list[float]] | None
    curve: Literal["product", "bias", "bucket"]
    first_distance: int
    curves: list[Curve]

    def as_dict(self) -> dict[str, Any]:
        return {
            **vars(self),
            "curves": [vars(curve) for curve in self.curves],
        }


@dataclass(frozen=True)
class PositionModules:
    """The modules of an encoding: what is added to tokens, and what self-attention receives."""

    added: nn.Module | None
    relation: Relation | None
    origin: Origin


def build_modules(
    settings: PositionKind, *, dim: int, num_heads: int, seed: int = 0
) -> PositionModules:
    """The modules of a new model; learned parameters are drawn from the seed."""
    added = build_positions(settings, dim=dim)
    relation = build_relations(
        settings, num_layers=1, dim=dim, num_heads=num_heads, is_causal=False
    )[0]
    modules = nn.ModuleList(part for part in (added, relation) if isinstance(part, nn.Module))
    generator = torch_generator("positions", seed)
    initialize(modules, generator)
    begin = getattr(relation, "begin_moving", None)
    if begin is not None:  # the initial weights are zero, which would show nothing
        begin(generator)
    # Some encodings show only the part without parameters when there is no model.
    known = getattr(relation, "shows_fixed_part", False) or not list(modules.parameters())
    return PositionModules(added, relation, "formula" if known else "drawn")


def modules_of(model: EncoderDecoder | DecoderOnly) -> PositionModules:
    """The modules of a loaded model's first layer: of its encoder, or of its decoder if there is no
    encoder or it has no layers.
    """
    if isinstance(model, DecoderOnly):
        relation, embedding = model.blocks[0].self_attention.relation, model.embedding
    else:
        blocks = model.encoder if len(model.encoder) > 0 else model.decoder
        relation, embedding = blocks[0].self_attention.relation, model.source_embedding
    added: nn.Module | None = embedding.positions
    learned = any(
        True for part in (added, relation) if isinstance(part, nn.Module) for _ in part.parameters()
    )
    return PositionModules(added, relation, "model" if learned else "formula")


def show_own_positions(model: object, settings: Settings | None, *, length: int) -> PositionTable:
    """The positions of a loaded Transformer, by the `model` section of its recipe."""
    match model, settings:
        case EncoderDecoder(), TransformerSettings():
            num_heads = settings.encoder.heads
        case DecoderOnly(), DecoderOnlySettings():
            num_heads = settings.heads
        case _:
            kind = getattr(settings, "kind", "n-gram")
            raise UsageError(
                f"positions are shown of a Transformer, and this model is {kind!r}; "
                "choose another model",
                f"只能显示 Transformer 的位置编码，而该模型是 {kind!r}；请换一个模型",
            )
    limit = settings.position.longest_row
    return show_positions(
        settings.position,
        modules_of(model),
        length=length if limit is None else min(length, limit.tokens),
        dim=settings.dim,
        num_heads=num_heads,
    )


@torch.inference_mode()
def show_positions(
    settings: PositionKind, parts: PositionModules, *, length: int, dim: int, num_heads: int
) -> PositionTable:
    """The table and the curves for positions 0 … length − 1 and distances −(length − 1) … length −
    1.
    """
    shown, relation = EncodingName(settings, parts.origin), parts.relation
    distance = torch.arange(1 - length, length)
    if isinstance(relation, DistanceTable):
        if getattr(relation, "shows_fixed_part", False):
            shown = EncodingName(settings, "formula")
        return _by_distance(shown, relation.table_by_distance(distance), length=length)
    if isinstance(relation, PositionPath):
        return _by_position(shown, relation.table_by_position(length))
    if relation is not None and relation.needs == "distances":
        return _by_bias(shown, relation, length=length, num_heads=num_heads)
    if relation is not None:
        head_dim = dim // num_heads
        one = torch.full((1, 1, length, head_dim), math.sqrt(1 / head_dim))
        place = torch.arange(length)[None]
        _, turned, _ = relation.encode(one, one, one, place, length=length)
        return _by_position(shown, turned[0, 0])
    assert parts.added is not None, "what is not told to attention is added to tokens"
    return _by_position(shown, parts.added(torch.arange(length)[None], length=length)[0])


class EncodingName(NamedTuple):
    """The encoding that a table belongs to."""

    settings: PositionKind
    origin: Origin


def _by_position(shown: EncodingName, table: Tensor) -> PositionTable:
    """The product of rows at distance d, averaged over all pairs at this distance."""
    precise = table.double().cpu()
    products, length = precise @ precise.T, len(precise)
    means = [float(products.diagonal(distance).mean()) for distance in range(1 - length, length)]
    return PositionTable(
        *_facts(shown),
        "position",
        0,
        _plain(precise),
        "product",
        1 - length,
        [Curve(None, _round(means))],
    )


def _by_distance(shown: EncodingName, table: Tensor, *, length: int) -> PositionTable:
    """The product of each vector with the vector of distance 0."""
    precise = table.double().cpu()
    curve = Curve(None, _round((precise @ precise[length - 1]).tolist()))
    return PositionTable(
        *_facts(shown), "distance", 1 - length, _plain(precise), "product", 1 - length, [curve]
    )


def _by_bias(
    shown: EncodingName, relation: Relation, *, length: int, num_heads: int
) -> PositionTable:
    q = torch.zeros(1, num_heads, length, 1)
    bias = relation.bias(q, num_keys=length, offset=0)
    assert isinstance(bias, DistanceBias)
    distance = torch.arange(1 - length, length)
    column = (distance - bias.first).clamp(0, bias.table.shape[1] - 1)
    curves = [
        Curve(head, _round(bias.table[head, column].tolist())) for head in range(len(bias.table))
    ]
    table = None
    if isinstance(relation, DistanceBuckets):
        bucket = relation.find_buckets(distance)
        query, key = torch.arange(length)[:, None], torch.arange(length)
        table = bucket[key - query + length - 1].double().tolist()
        if shown.origin == "formula":
            return PositionTable(
                *_facts(shown),
                "position",
                0,
                table,
                "bucket",
                1 - length,
                [Curve(None, bucket.double().tolist())],
            )
    return PositionTable(*_facts(shown), "position", 0, table, "bias", 1 - length, curves)


def _facts(shown: EncodingName) -> tuple[str, str, Origin]:
    return shown.settings.kind, shown.settings.formula, shown.origin


def _plain(table: Tensor) -> list[list[float]]:
    return [_round(row) for row in table.tolist()]


def _round(row: list[float]) -> list[float]:
    """Six digits are enough for a picture and halve the bytes. Adding zero turns −0 into 0."""
    return [float(f"{number:.6g}") + 0.0 for number in row]
