from pathlib import Path
from typing import Annotated, Literal, Self

import pydantic
import pytest

from headwise.errors import SettingsError
from headwise.language import use_language
from headwise.settings import Settings, check_settings


class Square(Settings):
    kind: Literal["square"] = "square"
    side: int = pydantic.Field(default=3, ge=1, le=11, multiple_of=1)


class Circle(Settings):
    kind: Literal["circle"] = "circle"
    radius: float = pydantic.Field(default=2.0, gt=0, lt=5)
    centre: int | Square = 0


class Drawing(Settings):
    title: str = pydantic.Field(default="x", min_length=1, max_length=5)
    filled: bool = True
    place: Literal["left", "right"] = "left"
    path: Path = Path()
    shape: Annotated[Square | Circle, pydantic.Field(discriminator="kind")] = Square()
    shapes: tuple[Annotated[Square | Circle, pydantic.Field(discriminator="kind")], ...] = (
        pydantic.Field(default=(Square(),), min_length=1)
    )
    size: int

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        if self.title == "ugly":
            raise SettingsError(
                "title=ugly is not wanted; choose another", "不要 title=ugly；请换一个"
            )
        if self.title == "plain":
            raise ValueError("a plain error")
        return self


class Frame(Settings):
    """Its key `shape` has only one type, so that no tag stands in a location."""

    shape: Square = Square()


def test_a_key_may_have_the_name_of_the_kind() -> None:
    with pytest.raises(SettingsError) as caught:
        check_settings(Frame, {"shape": {"square": {"side": 3}}})
    assert "shape.square: unknown key" in caught.value.en
    with pytest.raises(SettingsError) as caught:
        check_settings(Drawing, {"size": 1, "shape": {"kind": "square", "square": 3}})
    assert "shape.square: unknown key" in caught.value.en


@pytest.mark.parametrize(
    ("data", "en", "zh"),
    [
        (
            {"size": "ten"},
            "size: must be a whole number, not 'ten'",
            "size：必须是整数，而不是 'ten'",
        ),
        ({"size": 1.5}, "size: must be a whole number, not 1.5", "size：必须是整数"),
        ({}, "size: is required, but not there", "size：必须给出"),
        ({"size": 1, "title": 3}, "title: must be a text, not 3", "title：必须是文本"),
        (
            {"size": 1, "title": ""},
            "title: must have at least 1 characters",
            "title：至少需要 1 个字符",
        ),
        (
            {"size": 1, "title": "toolong"},
            "title: must have at most 5 characters",
            "title：最多 5 个字符",
        ),
        (
            {"size": 1, "filled": "perhaps"},
            "filled: must be true or false, not 'perhaps'",
            "必须是 true 或 false",
        ),
        (
            {"size": 1, "place": "top"},
            "place: must be 'left' or 'right', not 'top'",
            "place：必须是 'left' 或 'right'",
        ),
        ({"size": 1, "path": 7}, "path: must be a path, not 7", "path：必须是路径"),
        (
            {"size": 1, "shape": 7},
            "shape: must be `key: value` parts, not 7",
            "shape：必须由 `键: 值` 组成",
        ),
        (
            {"size": 1, "shape": "circle"},
            "shape: must be `key: value` parts, not 'circle'; did you mean shape.kind=circle?",
            "是否想写 shape.kind=circle？",
        ),
        (
            {"size": 1, "radius": 2},
            "radius: unknown key; did you mean shape.radius or shapes.radius?",
            "radius：未知的键；是否想写 shape.radius 或 shapes.radius？",
        ),
        (
            {"size": 1, "shape": "oval"},
            "shape: must be `key: value` parts, not 'oval'",
            "而不是 'oval'",
        ),
        (
            {"size": 1, "shapes": [{"side": 2}]},
            "shapes.0: its kind is missing",
            "shapes.0：缺少 kind",
        ),
        (
            {"size": 1, "shape": {"kind": "cirle"}},
            "shape: no kind 'cirle'; choose one of 'square', 'circle'; did you mean 'circle'?",
            "shape：没有 'cirle' 这个 kind；可选：'square', 'circle'；是否想写 'circle'？",
        ),
        (
            {"size": 1, "shape": {"kind": "square", "side": 0}},
            "shape.side: must be at least 1, not 0",
            "必须不小于 1",
        ),
        (
            {"size": 1, "shape": {"kind": "square", "side": 12}},
            "shape.side: must be at most 11, not 12",
            "必须不大于 11",
        ),
        (
            {"size": 1, "shape": {"kind": "circle", "radius": 0}},
            "shape.radius: must be greater than 0",
            "必须大于 0",
        ),
        (
            {"size": 1, "shape": {"kind": "circle", "radius": 5}},
            "shape.radius: must be less than 5",
            "必须小于 5",
        ),
        (
            {"size": 1, "shape": {"kind": "circle", "radius": "r"}},
            "shape.radius: must be a number",
            "必须是数字",
        ),
        (
            {"size": 1, "shape": {"kind": "circle", "radius": 1e999}},
            "shape.radius: must be",
            "shape.radius：必须",
        ),
        (
            {"size": 1, "shape": {"kind": "circle", "radus": 1}},
            "shape.radus: unknown key; did you mean 'radius'?",
            "shape.radus：未知的键；是否想写 'radius'？",
        ),
        (
            {"size": 1, "shape": {"kind": "square", "qqq": 1}},
            "shape.qqq: unknown key; known here: kind, side",
            "这里可用：kind、side",
        ),
        (
            {"size": 1, "shape": {"kind": "square", "radius": 1}},
            "shape.radius: unknown key of kind: square; it belongs to kind: circle; known here: "
            "kind, side",
            "shape.radius：kind: square 没有这个键；它属于 kind: circle；这里可用：kind、side",
        ),
        (
            {"size": 1, "shapes": [{"kind": "square", "radius": 1}]},
            "shapes.0.radius: unknown key of kind: square",
            "",
        ),
        (
            {"size": 1, "shape": {"kind": "circle", "centre": {"sid": 1}}},
            "shape.centre.sid: unknown key; did you",
            "",
        ),
        ({"size": 1, "shapes": 3}, "shapes: must be a list, not 3", "shapes：必须是列表"),
        (
            {"size": 1, "shapes": []},
            "shapes: must have at least 1 entries",
            "shapes：至少需要 1 项",
        ),
        (
            {"size": 1, "title": "ugly"},
            "title=ugly is not wanted; choose another",
            "不要 title=ugly；请换一个",
        ),
        ({"size": 1, "title": "plain"}, "a plain error", "a plain error"),
    ],
)
def test_a_problem_is_said_in_our_words(data: dict[str, object], en: str, zh: str) -> None:
    with pytest.raises(SettingsError) as caught:
        check_settings(Drawing, data, file="my.yaml")
    assert en in str(caught.value)
    assert "Input should" not in str(caught.value)
    use_language("zh")
    assert zh in str(caught.value)


def test_all_problems_are_listed_at_once_each_on_a_line() -> None:
    data = {
        "size": "ten",
        "titel": "x",
        "shape": {"kind": "square", "side": 0, "sidee": 1},
        "shapes": [{"kind": "circle", "r": 1}],
    }
    with pytest.raises(SettingsError, match="5 problems in the settings") as caught:
        check_settings(Drawing, data, file="my.yaml")
    lines = str(caught.value).splitlines()
    assert lines[0] == "my.yaml: 5 problems in the settings:"
    paths = [line.removeprefix("  - ").partition(":")[0] for line in lines[1:]]
    assert paths == ["shape.side", "shape.sidee", "shapes.0.r", "size", "titel"]


def test_a_long_value_is_shown_shortened() -> None:
    with pytest.raises(SettingsError) as caught:
        check_settings(Drawing, {"size": "9" * 9000 + "x"})
    assert len(str(caught.value)) < 200
    assert "…" in str(caught.value)


def test_without_a_kind_the_default_one_is_meant() -> None:
    assert check_settings(Drawing, {"size": 5, "shape": {"side": 7}}).shape == Square(side=7)


def test_settings_are_frozen() -> None:
    drawing = check_settings(Drawing, {"size": 5})
    with pytest.raises(pydantic.ValidationError, match="frozen"):
        drawing.size = 6  # type: ignore[misc]


def test_a_flood_of_problems_is_counted() -> None:
    with pytest.raises(SettingsError, match=r"91 problems(?s:.*)… and 61 more$") as caught:
        check_settings(Drawing, {f"key{number}": 1 for number in range(90)})
    assert len(str(caught.value).splitlines()) == 32


def test_true_is_no_number() -> None:
    with pytest.raises(SettingsError, match=r"size: must be a whole number, not 'true'"):
        check_settings(Drawing, {"size": True})
    with pytest.raises(SettingsError, match=r"shape\.radius: must be a number, not 'false'"):
        check_settings(Drawing, {"size": 3, "shape": {"kind": "circle", "radius": False}})
    assert check_settings(Drawing, {"size": 3, "filled": False}).filled is False


class Disc(Settings):
    """A disk, as it is also written."""

    kind: Literal["disc"] = "disc"


class Picture(Settings):
    shape: Annotated[Square | Disc, pydantic.Field(discriminator="kind")] = Square()


def test_bounds_of_a_number_in_a_union_leave_no_tag() -> None:
    class Bounded(Settings):
        share: Square | Annotated[float, pydantic.Field(le=1)] = 1.0

    with pytest.raises(SettingsError) as caught:
        check_settings(Bounded, {"share": 2})
    assert "  - share: must be at most 1.0, not 2" in caught.value.en


def test_another_name_of_a_kind_is_known_by_its_description() -> None:
    """Nearer than any name that looks alike."""
    with pytest.raises(
        SettingsError,
        match=r"no kind 'disk'; choose one of 'square', 'disc'; did you mean 'disc'[?]",
    ):
        check_settings(Picture, {"shape": {"kind": "disk"}})
    with pytest.raises(SettingsError, match=r"no kind 'written'; .* did you mean 'disc'[?]"):
        check_settings(Picture, {"shape": {"kind": "written"}})


def test_a_key_that_looks_like_one_of_another_kind() -> None:
    with pytest.raises(
        SettingsError,
        match=r"shape.raduis: unknown key; did you mean 'radius' of kind: circle[?] known",
    ):
        check_settings(Drawing, {"size": 1, "shape": {"kind": "square", "raduis": 2}})


def test_problems_that_an_override_made_are_told_as_its_own() -> None:
    before = {"size": "ten"}
    with pytest.raises(SettingsError) as caught:
        check_settings(Drawing, {**before, "title": 3}, file="my.yaml", before=before)
    assert str(caught.value).splitlines() == [
        "my.yaml: 2 problems in the settings:",
        "  - in the overrides: title: must be a text, not 3",
        "  - size: must be a whole number, not 'ten'",
    ]
    with pytest.raises(SettingsError, match="1 problem in the settings") as caught:
        check_settings(Drawing, {"size": 1, "title": 3}, file="my.yaml", before={"size": 1})
    assert str(caught.value).startswith("overrides (key.path=value): 1 problem")


class Limit(Settings):
    factor: float = 1.5


class Search(Settings):
    length: int | Limit = 5


@pytest.mark.parametrize(
    ("length", "en", "zh"),
    [
        (
            "abc",
            "length: must be a whole number or `key: value` parts, not 'abc'",
            "必须是整数，或由 `键: 值` 组成，而不是 'abc'",
        ),
        (
            [1],
            "length: must be a whole number or `key: value` parts, not [1]",
            "必须是整数，或由 `键: 值` 组成，而不是 [1]",
        ),
        (
            {"factor": "abc"},
            "length.factor: must be a number, not 'abc'",
            "length.factor：必须是数字，而不是 'abc'",
        ),
        (
            {"faktor": 2},
            "length.faktor: unknown key; did you mean 'factor'?",
            "未知的键；是否想写 'factor'？",
        ),
    ],
)
def test_a_value_of_several_forms_is_wrong_once(length: object, en: str, zh: str) -> None:
    with pytest.raises(SettingsError) as caught:
        check_settings(Search, {"length": length})
    assert caught.value.en == f"1 problem in the settings:\n  - {en}"
    assert zh in caught.value.zh
