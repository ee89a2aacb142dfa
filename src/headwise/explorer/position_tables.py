"""Every position encoding as numbers to be drawn: its table, and what it does to a score by distance.

    added to a token     sinusoidal, learned        table [position, dim];    curve: PE(p) · PE(p + d), the mean over all p
    turns q and k        rotary                     table: one vector turned; curve: q₀ · k_d of equal unit vectors
    added to a score     alibi, t5                  curve: the bias of each head;   t5's table: buckets, its curve without a model too
    vectors of distance  relative, transformer_xl   table [distance, dim];    curve: product of a fixed query with them
    moved along a path   continuous                 table: the path of the keys;    curve: as for sinusoidal

The numbers come from the modules a model is built of, or from those of a loaded model (`parts_of`): what is learned there is shown as learned, and
what nobody has learned is drawn as a first weight would be; `origin` says which (formula, drawn, model).

Tested against: the formulas, the relations' own biases, a model's own tables.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from headwise.attention.biases import DistanceBias
from headwise.attention.multi_head import Relation
from headwise.blocks.initialization import initialize
from headwise.models.encoder_decoder import EncoderDecoder
from headwise.positions.alibi import AlibiRelation
from headwise.positions.buckets import BucketRelation, distance_buckets
from headwise.positions.choices import PositionSettings, build_positions, build_relations
from headwise.positions.continuous import ContinuousRelation, solve_path
from headwise.positions.relative import RelativeRelation
from headwise.positions.rotary import RotaryRelation
from headwise.positions.transformer_xl import TransformerXLRelation, distance_waves
from headwise.randomness import torch_generator

Origin = Literal["formula", "drawn", "model"]
# Two spaces stand between two formulas.
FORMULAS = {
    "sinusoidal": "PE(p, 2i) = sin(p / 10000^(2i/dim)),  PE(p, 2i+1) = cos(p / 10000^(2i/dim))",
    "learned": "x_p ← x_p + P[p]",
    "rotary": "a ← a cos p θ_i − b sin p θ_i,  b ← a sin p θ_i + b cos p θ_i,  θ_i = base^(−2i/dim)",
    "alibi": "score(i, j) ← score(i, j) − slope_head · |i − j|",
    "t5": "score(i, j) ← score(i, j) + B[head, bucket(j − i)]",
    "relative": "score(i, j) = q_i · (k_j + A[clip(j − i)]) / √dim",
    "transformer_xl": "score(i, j) = [(q_i + u) · k_j + (q_i + w) · W R(i − j)] / √dim",
    "continuous": "dp/dt = h(p, t);  k_m ← k_m + p(m δ)",
}


@dataclass(frozen=True)
class Curve:
    """A line over distances (key − query); `head` counts from 0, None where all heads share it."""

    head: int | None
    values: list[float]


@dataclass(frozen=True)
class PositionTable:
    kind: str
    origin: Origin
    rows: Literal["position", "distance"]
    """What the rows of the table stand for."""
    first_row: int
    table: list[list[float]] | None
    curve: Literal["product", "bias", "bucket"]
    first_distance: int
    curves: list[Curve]

    def as_dict(self) -> dict[str, Any]:
        return {
            **vars(self),
            "formula": FORMULAS[self.kind],
            "curves": [vars(curve) for curve in self.curves],
        }


@dataclass(frozen=True)
class Parts:
    """The modules of an encoding: what is added to tokens, and what self-attention is told."""

    added: nn.Module | None
    relation: Relation | None
    origin: Origin


def build_parts(settings: PositionSettings, *, dim: int, num_heads: int, seed: int = 0) -> Parts:
    """As a new model would have them; what is learned is drawn from the seed."""
    added = build_positions(settings, dim=dim)
    relation = build_relations(
        settings, num_layers=1, dim=dim, num_heads=num_heads, is_causal=False
    )[0]
    modules = nn.ModuleDict({"position": added} if added is not None else {})
    if isinstance(relation, nn.Module):
        modules["layer"] = nn.ModuleDict({"relation": relation})
    generator = torch_generator("positions", seed)
    initialize(modules, generator)
    if isinstance(
        relation, ContinuousRelation
    ):  # it starts without any motion, of which there would be nothing to see
        nn.init.xavier_uniform_(relation.dynamics.narrow.weight, generator=generator)
    # Of T5 and Transformer-XL only the part that nobody learns is shown without a model: buckets and waves.
    known = isinstance(relation, BucketRelation | TransformerXLRelation) or not list(
        modules.parameters()
    )
    return Parts(added, relation, "formula" if known else "drawn")


def parts_of(model: EncoderDecoder) -> Parts:
    """Those of a loaded model's encoder, first layer; of the decoder if the encoder has no layers."""
    relation = (model.encoder if len(model.encoder) > 0 else model.decoder)[
        0
    ].self_attention.relation
    added: nn.Module | None = model.source_embedding.positions
    learned = any(
        True for part in (added, relation) if isinstance(part, nn.Module) for _ in part.parameters()
    )
    return Parts(added, relation, "model" if learned else "formula")


@torch.inference_mode()
def show_positions(
    settings: PositionSettings, parts: Parts, *, length: int, dim: int, num_heads: int
) -> PositionTable:
    """Positions 0 … length − 1, distances −(length − 1) … length − 1."""
    kind, head_dim = settings.kind, dim // num_heads
    match parts.relation:
        case RotaryRelation() as relation:
            one = torch.full((1, 1, length, head_dim), math.sqrt(1 / head_dim))
            place = torch.arange(length)[None]
            _, turned, _ = relation.place(one, one, one, place, length=length)
            return _by_position(kind, parts.origin, turned[0, 0])
        case AlibiRelation() | BucketRelation() as relation:
            return _by_bias(kind, parts.origin, relation, length=length, num_heads=num_heads)
        case RelativeRelation() as relation:
            rows = (
                torch.arange(1 - length, length).clamp(-relation.limit, relation.limit)
                + relation.limit
            ).tolist()
            return _by_distance(kind, parts.origin, relation.distance_keys[rows], length=length)
        case TransformerXLRelation() as relation:
            # The published R is of the distance back, i − j.
            back = -torch.arange(1 - length, length, dtype=torch.float32)
            return _by_distance(kind, "formula", distance_waves(back, dim), length=length)
        case ContinuousRelation() as relation:
            path = solve_path(
                relation.dynamics,
                relation.start,
                length=length,
                delta=relation.delta,
                stride=relation.stride,
            )
            return _by_position(kind, parts.origin, path[:, 1])
        case _:
            assert parts.added is not None, "what is not told to attention is added to tokens"
            table = parts.added(torch.arange(length)[None], length=length)[0]
            return _by_position(kind, parts.origin, table)


def _by_position(kind: str, origin: Origin, table: Tensor) -> PositionTable:
    """Products of rows d apart, the mean over all pairs that far apart."""
    precise = table.double().cpu()
    products, length = precise @ precise.T, len(precise)
    means = [float(products.diagonal(distance).mean()) for distance in range(1 - length, length)]
    return PositionTable(
        kind,
        origin,
        "position",
        0,
        _plain(precise),
        "product",
        1 - length,
        [Curve(None, _round(means))],
    )


def _by_distance(kind: str, origin: Origin, table: Tensor, *, length: int) -> PositionTable:
    """Products with the vector of distance 0."""
    precise = table.double().cpu()
    curve = Curve(None, _round((precise @ precise[length - 1]).tolist()))
    return PositionTable(
        kind, origin, "distance", 1 - length, _plain(precise), "product", 1 - length, [curve]
    )


def _by_bias(
    kind: str,
    origin: Origin,
    relation: AlibiRelation | BucketRelation,
    *,
    length: int,
    num_heads: int,
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
    if isinstance(relation, BucketRelation):
        bucket = distance_buckets(
            distance,
            num_buckets=relation.num_buckets,
            max_distance=relation.max_distance,
            is_causal=relation.is_causal,
        )
        query, key = torch.arange(length)[:, None], torch.arange(length)
        table = bucket[key - query + length - 1].double().tolist()
        if origin == "formula":
            return PositionTable(
                kind,
                origin,
                "position",
                0,
                table,
                "bucket",
                1 - length,
                [Curve(None, bucket.double().tolist())],
            )
    return PositionTable(kind, origin, "position", 0, table, "bias", 1 - length, curves)


def _plain(table: Tensor) -> list[list[float]]:
    return [_round(row) for row in table.tolist()]


def _round(row: list[float]) -> list[float]:
    """Six digits: enough for any picture, and half the bytes. Adding zero makes −0 plain zero."""
    return [float(f"{number:.6g}") + 0.0 for number in row]
