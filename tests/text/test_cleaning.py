import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwise.text.cleaning import clean_line, has_control_characters, letters_and_digits


@given(st.text())
def test_cleaning_once_is_enough(text: str) -> None:
    cleaned = clean_line(text)
    assert clean_line(cleaned) == cleaned
    cleaned.encode("utf-8")
    assert not has_control_characters(cleaned)


def test_control_characters_are_those_of_unicode_except_tab() -> None:
    control = [chr(code) for code in range(0x3000) if unicodedata.category(chr(code)) == "Cc"]
    assert [c for c in control if not has_control_characters(f"a{c}b")] == ["\t"]
    assert clean_line("a" + "".join(control) + "b") == "a\tb"
    assert not has_control_characters("a\ufeffb")
    assert clean_line("\ufeffa\ufeffb \ud800") == "ab"


def test_what_two_spellings_share() -> None:
    assert (
        letters_and_digits("It's  10 o'clock!")
        == letters_and_digits("Its １０ o’clock")
        == "its10oclock"
    )
    assert letters_and_digits("你好，世界。") == "你好世界"


@pytest.mark.parametrize("pattern", ["a", " ", "\x00", "e\u0301", "\u200d"])
def test_linear_time(pattern: str) -> None:
    text = pattern * 1_000_000
    begin = time.perf_counter()
    clean_line(text)
    has_control_characters(text)
    assert time.perf_counter() - begin < 2
