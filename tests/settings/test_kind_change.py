"""What a choice keeps when its kind is changed."""

import logging
from typing import Annotated, Any, Literal

import pydantic
import pytest

from headwise.settings import Settings, apply_overrides
from headwise.settings.kind_change import find_kind, keep_known


class _Small(Settings):
    kind: Literal["small"] = "small"
    dim: int = pydantic.Field(default=3, le=7)
    rate: float = 0.1


class _Large(Settings):
    kind: Literal["large", "huge"] = "large"
    dim: int = 11
    rate: float | None = None
    layers: int = 2
    letters: int = 0

    @pydantic.model_validator(mode="after")
    def _check(self) -> "_Large":
        if self.kind == "huge" and self.letters:
            raise ValueError("no letters for huge")
        return self


Size = Annotated[_Small | _Large, pydantic.Field(discriminator="kind")]


class _Outer(Settings):
    kind: Literal["outer"] = "outer"
    inner: Size = _Small()


class _Other(Settings):
    kind: Literal["other"] = "other"
    inner: int = 5


class _Recipe(Settings):
    model: Size = _Large()
    nested: Annotated[_Outer | _Other, pydantic.Field(discriminator="kind")] = _Outer()
    several: tuple[Size, ...] = ()
    maybe: Size | None = None


def _changed(data: dict[str, Any], *overrides: str) -> dict[str, Any]:
    return apply_overrides(data, overrides, settings=_Recipe)


def test_keys_that_both_kinds_have_are_kept_and_the_others_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    given = {"model": {"kind": "large", "dim": 5, "rate": 0.3, "layers": 4}}
    with caplog.at_level(logging.WARNING):
        found = _changed(given, "model.kind=small")
    assert found == {"model": {"kind": "small", "dim": 5, "rate": 0.3}}
    assert [record.getMessage() for record in caplog.records] == [
        "model.kind=small does not have layers as the recipe sets it; left out"
    ]
    assert given["model"]["layers"] == 4
    caplog.clear()
    assert _changed(given, "model.kind=large") == given
    assert not caplog.records


def test_a_value_that_the_new_kind_does_not_take_is_dropped() -> None:
    assert _changed({"model": {"kind": "large", "dim": 13}}, "model.kind=small") == {
        "model": {"kind": "small"}
    }
    both = {"kind": "large", "dim": 13, "letters": 9, "layers": 3}
    assert _changed({"model": both}, "model.kind=huge") == {
        "model": {"kind": "huge", "dim": 13, "layers": 3}
    }


def test_a_kind_that_the_recipe_leaves_to_its_default_loses_nothing() -> None:
    assert _changed({"model": {"dim": 13}}, "model.kind=large") == {
        "model": {"kind": "large", "dim": 13}
    }


def test_every_place_a_choice_may_stand() -> None:
    small = {"kind": "small", "dim": 2, "rate": 0.5}
    large = {"kind": "large", "dim": 2, "rate": 0.5}
    assert (
        _changed({"nested": {"kind": "outer", "inner": small}}, "nested.inner.kind=large")[
            "nested"
        ]["inner"]
        == large
    )
    assert _changed({"several": [small, small]}, "several.1.kind=large") == {
        "several": [small, large]
    }
    assert _changed({"maybe": small}, "maybe.kind=large") == {"maybe": large}
    assert _changed({}, "maybe.kind=large") == {"maybe": {"kind": "large"}}
    assert _changed({"nested": {"kind": "outer", "inner": small}}, "nested.kind=other") == {
        "nested": {"kind": "other"}
    }


def test_an_unheard_of_kind_starts_afresh_and_is_left_to_the_check() -> None:
    assert find_kind(_Recipe, {}, ["model"], "unheard") is None
    assert find_kind(_Recipe, {}, ["nowhere"], "small") is None
    assert _changed({"model": {"kind": "large", "dim": 2}}, "model.kind=unheard") == {
        "model": {"kind": "unheard"}
    }


def test_what_is_wrong_whatever_is_left_out_is_kept_for_the_check_to_tell() -> None:
    class Needs(Settings):
        kind: Literal["needs"] = "needs"
        path: str
        dim: int = 1

    assert keep_known({"kind": "large", "dim": 2}, Needs, "needs") == ({"dim": 2}, ())


def test_keys_of_the_new_kind_still_win() -> None:
    found = _changed(
        {"model": {"kind": "large", "dim": 5, "rate": 0.3}}, "model.dim=6", "model.kind=small"
    )
    assert found == {"model": {"kind": "small", "dim": 6, "rate": 0.3}}
