import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwise.data.pairs.filtering import (
    KEEP_ALL,
    REASONS,
    FilterReport,
    FilterSettings,
    LengthLimits,
    SeenHashes,
    check_lengths,
    check_text,
    hash_pair,
)
from headwise.data.pairs.parallel_files import Pair
from headwise.language import use_language


def pair(source: str, target: str, problem: str | None = None) -> Pair:
    return Pair(source, target, "file", 7, problem)


@pytest.mark.parametrize(
    ("given_pair", "reason", "kept_by_all"),
    [
        (pair("a", "b"), None, True),
        (pair("", "b"), "empty", False),
        (pair("a", " \u3000"), "empty", False),
        (pair("a\x00", "b"), "control_characters", False),
        (pair("a", "a"), "identical", True),
        (pair("a" * 2001, "b"), "max_characters", False),
        (pair("", "", "long_line"), "long_line", False),
    ],
)
def test_rules_on_text(given_pair: Pair, reason: str | None, kept_by_all: bool) -> None:
    assert check_text(given_pair, FilterSettings())[0] == reason
    assert (check_text(given_pair, KEEP_ALL)[0] is None) == kept_by_all


def test_pairs_are_cleaned() -> None:
    assert check_text(pair(" \ufeffa b ", "c\u00a0"), FilterSettings())[1][:2] == ("a b", "c")


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        (31, 37, None),
        (32, 5, "max_tokens"),
        (5, 38, "max_tokens"),
        (0, 5, "empty"),
        (1, 16, None),
        (1, 17, "max_ratio"),
    ],
)
def test_rules_on_lengths(source: int, target: int, reason: str | None) -> None:
    assert check_lengths(source, target, limits=LengthLimits(31, 37), max_ratio=4.0) == reason


def test_the_ratio_can_be_left_alone() -> None:
    assert check_lengths(1, 37, limits=LengthLimits(31, 37), max_ratio=None) is None


@given(st.lists(st.lists(st.integers(0, 300), max_size=40), max_size=30))
def test_seen_is_a_set(blocks: list[list[int]]) -> None:
    seen, expected = SeenHashes(), set()
    for block in blocks:
        new = []
        for number in block:
            new.append(number not in expected)
            expected.add(number)
        assert seen.add(block).tolist() == new
    assert sum(len(run) for run in seen._runs) == len(expected)


def test_hashes_tell_sides_apart() -> None:
    assert hash_pair(pair("ab", "c")) != hash_pair(pair("a", "bc"))
    assert hash_pair(pair("ab", "c")) == hash_pair(pair("ab", "c"))


def test_the_report_counts_and_shows_places() -> None:
    report = FilterReport(read=9, kept=4)
    for _ in range(5):
        report.drop("empty", pair("left", "x" * 1000))
    assert report.dropped == {"empty": 5}
    assert len(report.examples["empty"]) == 3
    assert (
        "read 9 pairs, kept 4\n  5 dropped: one side is empty\n    file:7: 'left' | 'xxx"
        in report.describe()
    )
    assert report.to_json()["examples"]["empty"][0]["line"] == 7
    use_language("zh")
    assert "去除 5 对：一侧为空" in report.describe()
    assert all(len(names) == 2 for names in REASONS.values())
