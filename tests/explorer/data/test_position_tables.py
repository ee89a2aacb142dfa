"""Tables and curves of positions against the formulas and the parts themselves."""

import math

import pytest
import torch

from headwise.explorer.data.position_tables import (
    PositionTable,
    build_modules,
    modules_of,
    show_positions,
)
from headwise.models.choices import EncoderDecoderSettings, build_model
from headwise.positions.alibi import alibi_slopes
from headwise.positions.choices import (
    Alibi,
    Buckets,
    Continuous,
    Learned,
    PositionSettings,
    Relative,
    Rotary,
    Sinusoidal,
    TransformerXL,
)
from headwise.settings import check_settings

LENGTH, DIM, HEADS = 13, 24, 3
ALL = (
    Sinusoidal(),
    Learned(max_length=17),
    Rotary(),
    Alibi(),
    Buckets(num_buckets=8, max_distance=11),
    Relative(limit=5),
    TransformerXL(),
    Continuous(),
)


def show(settings: PositionSettings) -> PositionTable:
    parts = build_modules(settings, dim=DIM, num_heads=HEADS)
    return show_positions(settings, parts, length=LENGTH, dim=DIM, num_heads=HEADS)


@pytest.mark.parametrize("settings", ALL, ids=lambda settings: settings.kind)
def test_every_encoding_can_be_shown(settings: PositionSettings) -> None:
    shown = show(settings)
    assert shown.as_dict()["formula"] == settings.formula
    assert all(len(curve.values) == 2 * LENGTH - 1 for curve in shown.curves)
    assert shown.first_distance == 1 - LENGTH
    rows = {"position": LENGTH, "distance": 2 * LENGTH - 1}[shown.rows]
    assert shown.table is None or len(shown.table) == rows
    numbers = [number for curve in shown.curves for number in curve.values] + [
        n for row in shown.table or [] for n in row
    ]
    assert all(map(math.isfinite, numbers))
    assert shown == show(settings), "the same every time"


def test_sines_and_cosines() -> None:
    shown = show(Sinusoidal())
    assert shown.table is not None
    for position, pair in ((5, 2), (11, 7)):
        angle = position / 10000 ** (2 * pair / DIM)
        assert shown.table[position][2 * pair : 2 * pair + 2] == pytest.approx(
            [math.sin(angle), math.cos(angle)], abs=1e-5
        )
    # PE(p) · PE(p + d) = Σ cos(d θ_i), whatever p.
    distance = 4
    expected = sum(math.cos(distance / 10000 ** (2 * pair / DIM)) for pair in range(DIM // 2))
    assert shown.curves[0].values[LENGTH - 1 + distance] == pytest.approx(expected, abs=1e-4)
    assert shown.origin == "formula"


def test_rotary_products_fall_from_one_and_know_distance_only() -> None:
    values = show(Rotary()).curves[0].values
    expected = [
        sum(math.cos(d * 10000 ** (-2 * i / (DIM // HEADS))) for i in range(DIM // HEADS // 2))
        * 2
        / (DIM // HEADS)
        for d in range(1 - LENGTH, LENGTH)
    ]
    assert values == pytest.approx(expected, abs=1e-5)


def test_alibi_falls_by_its_slope() -> None:
    shown = show(Alibi())
    assert shown.table is None
    for curve, slope in zip(shown.curves, alibi_slopes(HEADS).tolist(), strict=True):
        assert curve.values == pytest.approx(
            [-slope * abs(d) for d in range(1 - LENGTH, LENGTH)], abs=1e-5
        )


def test_buckets_are_shown_by_number_where_nobody_learned_them() -> None:
    shown = show(Buckets(num_buckets=8, max_distance=11))
    assert (shown.origin, shown.curve) == ("formula", "bucket")
    assert shown.table is not None
    assert shown.table[0][:3] == [0, 5, 6], "ahead: half of eight, then one by one"
    assert shown.curves[0].values[LENGTH - 1] == 0


def test_shaw_holds_distances_at_its_limit() -> None:
    shown = show(Relative(limit=5))
    assert shown.table is not None
    assert (shown.first_row, shown.origin) == (1 - LENGTH, "drawn")
    assert shown.table[0] == shown.table[LENGTH - 1 - 5]
    assert shown.table[LENGTH - 1 - 5] != shown.table[LENGTH - 1 - 4]


@pytest.mark.parametrize(
    ("position", "origin"),
    [
        ({"kind": "learned", "max_length": 19}, "model"),
        ({"kind": "t5"}, "model"),
        ({"kind": "sinusoidal"}, "formula"),
    ],
)
def test_a_models_own_table_is_shown(
    position: dict[str, object], origin: str, generator: torch.Generator
) -> None:
    stack = {"layers": 1, "heads": 3}
    settings = check_settings(
        EncoderDecoderSettings,
        {"dim": DIM, "encoder": stack, "decoder": stack, "position": position},
    )
    model = build_model(settings, source_size=29, target_size=29, generator=generator)
    parts = modules_of(model)
    shown = show_positions(settings.position, parts, length=LENGTH, dim=DIM, num_heads=HEADS)
    assert shown.origin == parts.origin == origin
    if position["kind"] == "learned":
        own = model.source_embedding.positions.table.weight[7].tolist()
        assert shown.table is not None
        assert shown.table[7] == pytest.approx(own, rel=1e-5)
    if position["kind"] == "t5":
        assert (shown.curve, len(shown.curves)) == ("bias", 3)


def test_an_encoder_without_layers_leaves_the_decoders(generator: torch.Generator) -> None:
    stack = {"layers": 1, "heads": HEADS}
    decoder = stack | {"attention": {"kind": "full"}}
    whole = {
        "dim": DIM,
        "encoder": stack | {"layers": 0},
        "decoder": decoder,
        "position": {"kind": "relative"},
    }
    settings = check_settings(EncoderDecoderSettings, whole)
    model = build_model(settings, source_size=29, target_size=29, generator=generator)
    assert modules_of(model).relation is model.decoder[0].self_attention.relation
