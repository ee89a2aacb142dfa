"""Heat maps: the pixels say where the weight is, and nothing is printed or warned about on the
way."""

import dataclasses
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from headwise.explorer import draw_grid, draw_heat_map
from headwise.explorer.data.attention_maps import AttentionMap, Trace
from headwise.explorer.pictures import heat_maps, matplotlib_figure
from headwise.language import use_language
from tests.explorer.examples import CHINESE, ENGLISH, GERMAN, HOSTILE, make_trace, random_weights


@pytest.fixture(autouse=True)
def warnings_are_errors() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.fixture
def no_wide_font(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine without any font for Chinese, whatever this one has."""
    monkeypatch.setattr(matplotlib_figure, "WIDE_FONTS", ())


def read_picture(path: Path) -> NDArray[np.uint8]:
    from matplotlib.image import imread

    assert path.read_bytes().startswith(b"\x89PNG")
    return (imread(path)[..., :3] * 255).round().astype(np.uint8)


def assert_drawn(path: Path) -> None:
    picture = read_picture(path)
    assert picture.shape[1] == 1200
    assert 300 < picture.shape[0] < 2600
    assert len(np.unique(picture[::3, ::3].astype(int) @ (65536, 256, 1))) > 50
    border = np.concatenate(
        [picture[:2].reshape(-1, 3), picture[-2:].reshape(-1, 3), picture[:, :2].reshape(-1, 3)]
    )
    assert (border == 255).all(), "something touches the edge of the picture"


@pytest.mark.parametrize(
    ("kind", "level"), [("encoder_self", "piece"), ("decoder_self", "word"), ("cross", "word")]
)
def test_heat_map_is_drawn(tmp_path: Path, kind: str, level: str) -> None:
    path = tmp_path / "new" / "map.png"
    draw_heat_map(make_trace(), path, kind=kind, layer=1, head="max", level=level)  # type: ignore[arg-type]
    assert_drawn(path)


@pytest.mark.parametrize(("row", "column"), [(1, 8), (7, 2)])
def test_brightest_place_is_the_largest_weight(tmp_path: Path, row: int, column: int) -> None:
    weights = np.zeros((1, len(GERMAN), len(ENGLISH)))
    weights[0, row, column] = 1.0
    trace = dataclasses.replace(make_trace(), maps=(AttentionMap("cross.0", "cross", 0, weights),))
    draw_heat_map(trace, tmp_path / "a.png", kind="cross", head=0, level="piece")
    picture = read_picture(tmp_path / "a.png")
    table = picture[:, : int(0.88 * picture.shape[1])]  # without the value scale on the right
    (dark_y, dark_x), (bright_y, bright_x) = (
        np.nonzero((np.abs(table.astype(int) - colour) < 3).all(axis=-1))
        for colour in ((68, 1, 84), (253, 231, 37))
    )
    rows, columns = (
        (values.mean() - low.min()) / (low.max() + 1 - low.min())
        for values, low in ((bright_y, dark_y), (bright_x, dark_x))
    )
    assert int(rows * len(GERMAN)) == row
    assert int(columns * len(ENGLISH)) == column


def test_chinese_without_a_font_draws_numbers_and_no_warning(
    tmp_path: Path, no_wide_font: None
) -> None:
    trace = make_trace(CHINESE, CHINESE, title="中文")
    use_language("zh")
    draw_heat_map(trace, tmp_path / "a.png", kind="cross")
    draw_grid(trace, tmp_path / "b.png", kind="decoder_self")
    assert_drawn(tmp_path / "a.png")
    assert_drawn(tmp_path / "b.png")


def test_chinese_with_whatever_fonts_there_are(tmp_path: Path) -> None:
    draw_heat_map(make_trace(ENGLISH, CHINESE), tmp_path / "a.png", kind="decoder_self")
    assert_drawn(tmp_path / "a.png")


def test_chinese_columns_stand_upright() -> None:
    fonts = matplotlib_figure.Fonts((matplotlib_figure.BASE_FONT,), frozenset(range(0x20000)))
    axes = matplotlib_figure.new_figure(height=3.0).add_subplot()
    heat_maps._name_cells(
        axes,
        matplotlib_figure.make_labels(GERMAN, fonts),
        matplotlib_figure.make_labels(("动物", "Tier", "累"), fonts),
    )
    labels = axes.get_xticklabels()
    assert [label.get_text() for label in labels] == ["动\n物", "Tier", "累"]
    assert {label.get_rotation() for label in labels} == {0.0}


def test_hostile_tokens_are_plain_text(tmp_path: Path) -> None:
    trace = make_trace(HOSTILE, HOSTILE, title="$\\frac$ </svg>")
    draw_heat_map(trace, tmp_path / "a.png", kind="cross", level="piece")
    assert_drawn(tmp_path / "a.png")


def test_grid_has_room_for_layers_of_different_width(tmp_path: Path) -> None:
    narrow = AttentionMap(
        "cross.5", "cross", 5, random_weights(2, len(GERMAN), len(ENGLISH), key="narrow")
    )
    trace = make_trace()
    draw_grid(
        dataclasses.replace(trace, maps=(*trace.maps, narrow)), tmp_path / "grid.png", kind="cross"
    )
    assert_drawn(tmp_path / "grid.png")


def test_long_sentences_are_drawn_with_fewer_labels(tmp_path: Path) -> None:
    pieces = tuple(f"▁w{number}" for number in range(131))
    weights = random_weights(1, 131, 131, key="long")
    maps = (AttentionMap("encoder.0", "encoder_self", 0, weights),)
    draw_heat_map(
        Trace("", "", pieces, (), (), maps, "long"), tmp_path / "a.png", kind="encoder_self"
    )
    assert_drawn(tmp_path / "a.png")


def signed_trace() -> Trace:
    trace = make_trace()
    maps = [
        dataclasses.replace(one, weights=one.weights - 0.1 * (one.kind != "decoder_self"))
        for one in trace.maps
    ]
    return dataclasses.replace(trace, maps=tuple(maps))


def test_negative_weights_are_another_hue(tmp_path: Path) -> None:
    weights = np.zeros((1, len(GERMAN), len(ENGLISH)))
    weights[0, 1, 8], weights[0, 7, 2] = 0.5, -0.5
    trace = dataclasses.replace(make_trace(), maps=(AttentionMap("cross.0", "cross", 0, weights),))
    draw_heat_map(trace, tmp_path / "a.png", kind="cross", head=0, level="piece")
    picture = read_picture(tmp_path / "a.png").astype(int)
    table = picture[:, : int(0.85 * picture.shape[1])]
    red, blue = (table[..., 0] - table[..., 2] > 60), (table[..., 2] - table[..., 0] > 60)
    assert red.sum() > 400 < blue.sum()
    (red_y, red_x), (blue_y, blue_x) = (np.nonzero(hue) for hue in (red, blue))
    assert np.median(red_y) < np.median(blue_y)
    assert np.median(red_x) > np.median(blue_x)


@pytest.mark.parametrize(
    "trace",
    [make_trace(), signed_trace(), make_trace(CHINESE, HOSTILE)],
    ids=["plain", "signed", "hostile"],
)
def test_everything_in_one_picture(tmp_path: Path, trace: Trace) -> None:
    heat_maps.draw_all(trace, tmp_path / "all.png")
    picture = read_picture(tmp_path / "all.png")
    assert picture.shape[1] == 1200
    assert picture.shape[0] > 1.5 * 1200 / 2
    draw_grid(trace, tmp_path / "one.png", kind="cross")
    assert picture.shape[0] > read_picture(tmp_path / "one.png").shape[0]
