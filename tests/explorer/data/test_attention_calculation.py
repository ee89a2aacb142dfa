"""The notes' examples, worked by hand; numbers as people write them; parameters given and drawn."""

import math
from pathlib import Path

import pytest
import torch
from matplotlib.transforms import Bbox

from headwise.errors import DataError, UsageError
from headwise.explorer.data.attention_calculation import (
    EXAMPLES,
    AttentionCalculation,
    calculate_attention,
    choose_settings,
    output_curve,
)
from headwise.explorer.data.calculation_tables import describe_weights, make_tables
from headwise.explorer.data.number_input import MAX_FILE_BYTES, NumberTable, arrange, read_numbers
from headwise.explorer.pictures import calculation_picture
from headwise.explorer.pictures.calculation_picture import draw_calculation
from headwise.explorer.pictures.matplotlib_figure import Fonts
from headwise.language import use_language
from tests.explorer.pictures.test_heat_maps import assert_drawn, warnings_are_errors

__all__ = ["warnings_are_errors"]


def work(
    name: str, score: str | None = None, weights: str = "softmax", *overrides: str
) -> AttentionCalculation:
    example = EXAMPLES[name]
    score = score or example.score
    parameters = example.parameters.get(score, {})
    keys, values, queries = arrange(example.keys, example.values, example.queries)
    settings = choose_settings(score, weights, overrides, num_keys=len(keys), parameters=parameters)
    return calculate_attention(keys, values, queries, settings=settings, parameters=parameters)


def test_waist() -> None:
    """−6²/2, −1²/2, −1²/2; e^−17.5 is what is left for the first key beside two ones."""
    worked = work("waist")
    assert worked.scores.tolist() == [[-18.0, -0.5, -0.5]]
    small = math.exp(-17.5)
    expected = [small / (2 + small), 1 / (2 + small), 1 / (2 + small)]
    assert worked.weights[0].tolist() == pytest.approx(expected, abs=1e-15)
    assert worked.outputs[0, 0].item() == pytest.approx(
        (40 * small + 43 + 48) / (2 + small), abs=1e-12
    )
    assert round(worked.outputs[0, 0].item(), 6) == 45.5


def test_two_columns_by_dot_products() -> None:
    """57·51 + 83·70 = 2907 + 5810 = 8717, 3192 + 6806 = 9998, 3306 + 7304 = 10610; the largest
    takes all."""
    worked = work("two-column")
    assert worked.scores.tolist() == [[8717.0, 9998.0, 10610.0], [8195.0, 9394.0, 9966.0]]
    assert worked.outputs.tolist() == [[48.0, 162.0], [48.0, 162.0]]
    scaled = work("two-column", "scaled_dot")
    torch.testing.assert_close(scaled.scores, worked.scores / math.sqrt(2))


def test_two_columns_by_the_additive_score() -> None:
    """tanh(0.57 + 0.51) + tanh(0.83 + 0.70) = 0.79320 + 0.91042, and so on."""
    worked = work("two-column", "additive")
    by_hand = [
        [
            math.tanh(1.08) + math.tanh(1.53),
            math.tanh(1.13) + math.tanh(1.65),
            math.tanh(1.15) + math.tanh(1.71),
        ],
        [
            math.tanh(1.06) + math.tanh(1.47),
            math.tanh(1.11) + math.tanh(1.59),
            math.tanh(1.13) + math.tanh(1.65),
        ],
    ]
    torch.testing.assert_close(
        worked.scores, torch.tensor(by_hand, dtype=torch.float64), rtol=0, atol=1e-7
    )
    assert worked.scores[0].tolist() == pytest.approx([1.70362, 1.73988, 1.75440], abs=1e-5)
    assert worked.weights.tolist()[0] == pytest.approx([0.3237, 0.3357, 0.3406], abs=1e-4)
    assert worked.outputs.tolist()[0] == pytest.approx([43.7318, 158.727], abs=1e-3)
    assert worked.seed is None


def test_two_columns_by_nearness() -> None:
    """6² + 13² = 205, 1 + 1 = 2, 1 + 25 = 26, each halved."""
    assert work("two-column", "gaussian").scores[0].tolist() == [-102.5, -1.0, -13.0]


@pytest.mark.parametrize("score", ["concat", "bilinear", "general", "cosine", "location"])
@pytest.mark.parametrize("weights", ["softmax", "sparsemax", "entmax", "hard"])
def test_any_score_with_any_weights(score: str, weights: str) -> None:
    worked = work("two-column", score, weights)
    assert worked.weights.sum(-1).allclose(torch.ones(2).double())
    torch.testing.assert_close(worked.outputs, worked.weights @ worked.values)
    assert (worked.seed is None) == (score not in ("concat", "location"))


def test_a_predicted_window_can_be_followed_by_hand() -> None:
    """v_p · tanh(W_p q) = 2 tanh(0) = 0, so the centre is 3 · ½; key 0 is 1.5 away and outside,
    keys 1 and 2 have e^(−½ (½ / ½)²)."""
    keys, values, queries = ((0.0,), (0.0,), (0.0,)), ((10.0,), (20.0,), (40.0,)), ((5.0,),)
    overrides = ["window.kind=local_p", "window.half_width=1"]
    given = {"W_p": NumberTable(((0.0,),)), "v_p": NumberTable(((2.0,),))}
    settings = choose_settings("dot", "softmax", overrides, num_keys=3, parameters={})
    worked = calculate_attention(keys, values, queries, settings=settings, parameters=given)
    assert worked.centres is not None
    assert (worked.centres.tolist(), worked.seed) == ([1.5], None)
    nearness = math.exp(-0.5)
    assert worked.weights[0].tolist() == pytest.approx([0, nearness / 2, nearness / 2])
    assert worked.outputs.item() == pytest.approx(30 * nearness)
    parameters, _, (title, _, (row,)), (weights, *_), _ = make_tables(worked)
    assert parameters[0] == "parameters: as given; a model learns them"
    assert title == "window: centre = S · sigmoid(v_p · tanh(W_p q)), S = 3, D = 1, σ = 0.5"
    assert row == ("5", "1.5000", "1, 2")
    assert weights.endswith(
        "softmax over the keys, only keys within 1 of the centre, times exp(−(j − centre)² / 2σ²)"
    )
    drawn = calculate_attention(keys, values, queries, settings=settings)
    assert drawn.seed is not None
    assert set(drawn.parameters) == {"W_p", "v_p"}
    monotonic = choose_settings(
        "dot", "softmax", ["window.kind=local_m", "window.half_width=0"], num_keys=3, parameters={}
    )
    steps = calculate_attention(keys, values, ((1.0,),) * 4, settings=monotonic)
    assert steps.centres is not None
    assert steps.centres.tolist() == [0, 1, 2, 2]
    assert steps.outputs[:, 0].tolist() == [10, 20, 40, 40]


def test_drawn_parameters_follow_the_seed_and_given_ones_stand() -> None:
    rows = (((1.0, 0.0), (0.0, 1.0)),) * 3
    given = {"w_v": NumberTable(((1.0, 2.0, 3.0),))}
    settings = choose_settings("additive", "softmax", [], num_keys=2, parameters=given)
    first, again, other = (
        calculate_attention(*rows, settings=settings, parameters=given, seed=seed)
        for seed in (3, 3, 4)
    )
    assert first.scores.equal(again.scores)
    assert not first.scores.equal(other.scores)
    assert first.parameters["w_v"].tolist() == [[1.0, 2.0, 3.0]]
    assert first.seed == 3


def test_wrong_parameters_are_refused() -> None:
    rows = (((1.0, 0.0), (0.0, 1.0)),) * 3
    plain = choose_settings("dot", "softmax", [], num_keys=2, parameters={})
    with pytest.raises(UsageError, match="score dot has no parameter 'W'; it has none"):
        calculate_attention(*rows, settings=plain, parameters={"W": NumberTable(((1.0,),))})
    form = choose_settings("bilinear", "softmax", [], num_keys=2, parameters={})
    with pytest.raises(UsageError, match="parameter W is 1 × 3, but 2 × 2 is needed"):
        calculate_attention(*rows, settings=form, parameters={"W": NumberTable(((1.0, 2.0, 3.0),))})


def test_lists_are_columns_or_rows_by_what_they_stand_beside() -> None:
    def read(*texts: str) -> tuple[object, ...]:
        keys, values, queries = (read_numbers(text, name="x") for text in texts)
        return arrange(keys, values, queries)

    assert read("1,2", "3,4", "5") == (((1,), (2,)), ((3,), (4,)), ((5,),))
    assert read("1,2;3,4", "5,6", "7,8") == (((1, 2), (3, 4)), ((5,), (6,)), ((7, 8),))
    assert read("1,2;", "3,4", "-5e0,+.5") == (((1, 2),), ((3, 4),), ((-5, 0.5),))
    with pytest.raises(UsageError, match="2 keys and 3 values were given"):
        read("1,2", "3,4,5", "6")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "'' is not a number"),
        ("1,x", "'x' is not a number"),
        ("nan", "'nan' is not"),
        ("1e300", "'1e300' is not"),
        ("1,2;3", "a row of 1 numbers after rows of 2"),
        (",".join("1" * 1025), "1 × 1,025 numbers"),
    ],
)
def test_what_is_no_table_is_refused(text: str, problem: str) -> None:
    with pytest.raises(UsageError, match=f"^--keys: {problem}"):
        read_numbers(text, name="--keys")


def test_files(tmp_path: Path) -> None:
    file = tmp_path / "keys.csv"
    file.write_text("\ufeffwaist,chest\n51,70\n\n56,82\n", encoding="utf-8")
    assert read_numbers(str(file), name="x") == NumberTable(
        ((51, 70), (56, 82)), heading="waist,chest"
    )
    for text in (
        '"51","70"\n"56","82"\n',
        "51;70\n56;82\n",
        "51\t70\n56\t82\n",
        "51, 70\n 56 ,82\n",
    ):
        file.write_text(text, encoding="utf-8")
        table = read_numbers(str(file), name="x")
        assert (table.rows, table.heading) == (((51, 70), (56, 82)), "")
    for text, line, problem in (
        ("5l,70\n56,82\n", ":1", "'5l' is not a number"),
        ("-x\n56\n", ":1", "'-x' is not a number"),
        ("nan\n56\n", ":1", "'nan' is not a number"),
        ("51;70,5\n", ":1", "several marks between its numbers"),
        ("waist\nchest\n1\n", ":2", "'chest' is not a number"),
        ("1,2\n3,cat\n", ":2", "'cat' is not"),
        ("1,2\n3\n", ":2", "a row of 1"),
        ("", "", "no numbers"),
        ("waist\n", "", "no numbers"),
        ("1\nnan\n", ":2", "'nan'"),
        ("NA,NA\n1,2\n", ":1", "'NA' is not a number"),
        (
            "1,2\n" + "1" * 140_000 + ",2\n",
            ":2",
            r"cannot be read as CSV \(field larger than field limit",
        ),
        ("1\n" * 1025, "", "1,025 × 1 numbers"),
    ):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(DataError, match=f"keys\\.csv{line}: .*{problem}"):
            read_numbers(str(file), name="x")
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="not UTF-8 text"):
        read_numbers(str(file), name="x")
    file.write_bytes(b"1\n" * (MAX_FILE_BYTES // 2 + 1))
    with pytest.raises(DataError, match="at most 1,048,576 bytes"):
        read_numbers(str(file), name="x")
    with pytest.raises(DataError, match="at most 1,048,576 bytes"):
        read_numbers("/dev/zero", name="x")  # without a size, and without an end


def test_tables_in_both_languages() -> None:
    titles = {}
    for language in ("en", "zh"):
        use_language(language)  # type: ignore[arg-type]
        titles[language] = [title for title, _, _ in make_tables(work("two-column", "additive"))]
    assert len(titles["en"]) == len(titles["zh"]) == 4
    assert not set(titles["en"]) & set(titles["zh"])
    wide = calculate_attention(
        ((1.0,),) * 7, ((2.0,),) * 7, ((3.0,),), settings=work("waist").settings
    )
    assert make_tables(wide)[-1][2] == [("3", "2")]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_pictures(tmp_path: Path, language: str) -> None:
    use_language(language)  # type: ignore[arg-type]
    for number, worked in enumerate(
        (work("waist"), work("two-column", "additive"), work("waist", "location"))
    ):
        draw_calculation(worked, tmp_path / f"{number}.png")
        assert_drawn(tmp_path / f"{number}.png")


def test_the_curve_passes_through_the_answers() -> None:
    assert output_curve(work("waist"), [57.0]) == pytest.approx([45.5], abs=1e-5)


def test_no_curve_where_places_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Under a window that goes along with the place of a query, a sample of the line has no
    place."""

    def never(worked: AttentionCalculation, queries: list[float]) -> list[float]:
        raise AssertionError

    monkeypatch.setattr("headwise.explorer.pictures.calculation_picture.output_curve", never)
    draw_calculation(
        work("waist", None, "softmax", "window={kind: local_m, half_width: 1}"), tmp_path / "a.png"
    )
    with pytest.raises(AssertionError):
        draw_calculation(work("waist"), tmp_path / "b.png")


def test_without_a_chinese_font_the_title_stays_whole_in_english() -> None:
    worked, fonts = work("waist"), Fonts(families=(), characters=frozenset(range(32, 0x2FFF)))
    use_language("zh")
    assert describe_weights(worked) == "对各键做 softmax"
    assert describe_weights(worked, tell=fonts.say) == "softmax over the keys"


@pytest.mark.parametrize("queries", ["52,55,57", "51,58", "57", "55,55.6,56.2", "57.5"])
def test_what_is_written_beside_a_query_stays_inside_the_frame_and_covers_nothing(
    queries: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = []
    monkeypatch.setattr(
        calculation_picture, "save_figure", lambda figure, path: drawn.append(figure)
    )
    plain = work("waist")
    asked = [[float(number)] for number in queries.split(",")]
    worked = calculate_attention(
        plain.keys.tolist(), plain.values.tolist(), asked, settings=plain.settings
    )
    draw_calculation(worked, "x.png")
    (figure,) = drawn
    figure.draw_without_rendering()
    axes = figure.subfigs[1].axes[0]
    frame = axes.get_window_extent()
    assert len(axes.texts) == len(asked)
    for text in axes.texts:
        box = text.get_window_extent()
        assert frame.x0 < box.x0 < box.x1 < frame.x1
        assert frame.y0 < box.y0 < box.y1 < frame.y1
        others = [other.get_window_extent() for other in axes.texts if other is not text]
        assert not any(box.overlaps(other) for other in others)
        for points in axes.collections:  # circles, then diamonds
            for (x, y), area in zip(
                axes.transData.transform(points.get_offsets()), points.get_sizes(), strict=False
            ):
                radius = math.sqrt(area) / 2 * figure.dpi / 72
                assert not box.overlaps(
                    Bbox.from_extents(x - radius, y - radius, x + radius, y + radius)
                )
