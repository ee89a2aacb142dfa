import pytest

from headwise.errors import SettingsError
from headwise.settings import apply_overrides

DATA = {
    "training": {"steps": 7, "schedule": {"kind": "noam", "dim": 8}},
    "data": {"train": ["a", {"path": "b"}]},
    "x": None,
}


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("training.steps=100", {**DATA, "training": {**DATA["training"], "steps": 100}}),  # type: ignore[dict-item]
        ("training.clip=1e-2", {**DATA, "training": {**DATA["training"], "clip": 0.01}}),  # type: ignore[dict-item]
        ("data.train.1.weight=2", {**DATA, "data": {"train": ["a", {"path": "b", "weight": 2}]}}),
        ("data.train.0={path: c}", {**DATA, "data": {"train": [{"path": "c"}, {"path": "b"}]}}),
        ("new.key.path='a = b'", {**DATA, "new": {"key": {"path": "a = b"}}}),
        ("x.y=1", {**DATA, "x": {"y": 1}}),
        ("x=", DATA),
    ],
)
def test_one_value_is_changed_and_nothing_else(override: str, expected: object) -> None:
    before = repr(DATA)
    assert apply_overrides(DATA, [override]) == expected
    assert repr(DATA) == before, "the data given is left alone"


def test_a_new_kind_starts_the_choice_afresh() -> None:
    changed = apply_overrides(
        DATA, ["training.schedule.kind=cosine", "training.schedule.peak=1e-3"]
    )
    assert changed["training"]["schedule"] == {"kind": "cosine", "peak": 0.001}
    same = apply_overrides(DATA, ["training.schedule.kind=noam"])
    assert same["training"]["schedule"] == {"kind": "noam", "dim": 8}


def test_the_later_override_wins() -> None:
    assert apply_overrides({}, ["a=1", "a=2"]) == {"a": 2}


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("training.steps", "'training.steps' is not an override; write key.path=value"),
        ("=3", "'=3' is not an override"),
        ("training..steps=3", "is not an override"),
        ("--steps=3", "is not an override"),
        ("training.steps.more=3", "there is no place for 'more'"),
        (
            "training.steps.more.still=3",
            "there is no place for 'still'|there is no place for 'more'",
        ),
        ("data.train.7=3", "there is no place for '7'"),
        ("data.train.7.path=3", "there is no place for '7'"),
        ("a=[1", r"'a=\[1': not readable as YAML"),
        ("a=*b", "'a=\\*b': not readable as YAML: aliases"),
    ],
)
def test_what_is_no_override_is_refused(override: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        apply_overrides(DATA, [override])


def test_a_key_given_before_its_kind_is_not_lost() -> None:
    changed = apply_overrides(DATA, ["training.schedule.warmup=3", "training.schedule.kind=linear"])
    assert changed["training"]["schedule"] == {"kind": "linear", "warmup": 3}
    whole = [
        "training.schedule={kind: cosine, peak: 1}",
        "training.schedule.warmup=3",
        "training.schedule.kind=linear",
    ]
    assert apply_overrides(DATA, whole)["training"]["schedule"] == {"kind": "linear", "warmup": 3}
    # A choice by itself, as `translate --set` changes it, has its kind at the top.
    assert apply_overrides({"kind": "greedy"}, ["max_length=3", "kind=beam"]) == {
        "kind": "beam",
        "max_length": 3,
    }


def test_of_two_kinds_the_later_one_wins() -> None:
    data = {"search": {"kind": "beam", "size": 5}}
    found = apply_overrides(data, ["search.kind=a", "search.size=8", "search.kind=b"])
    assert found == {"search": {"kind": "b", "size": 8}}
    found = apply_overrides(data, ["search.size=8", "search.kind=a", "search.kind=b"])
    assert found == {"search": {"kind": "b", "size": 8}}
