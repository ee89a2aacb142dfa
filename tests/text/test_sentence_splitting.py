"""Sentences and gaps: hand-worked cases, the law that nothing is lost, and time that grows with the
length alone.
"""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwise.text.sentence_splitting import halve, split_text


@pytest.mark.parametrize(
    ("language", "text", "sentences"),
    [
        ("en", "Hi. It rains.", ["Hi.", "It rains."]),
        (
            "en",
            "Mr. Smith met Dr. Jones. They talked.",
            ["Mr. Smith met Dr. Jones.", "They talked."],
        ),
        ("en", "J. R. Smith left.", ["J. R. Smith left."]),
        ("en", "It costs 3.50 now. Why?", ["It costs 3.50 now.", "Why?"]),
        ("en", 'He said "No." She left.', ['He said "No."', "She left."]),
        ("en", "Wait... what? See e.g. this.", ["Wait... what?", "See e.g. this."]),
        ("en", '"Really?" he asked.', ['"Really?" he asked.']),
        ("en", "So do I. He left.", ["So do I.", "He left."]),
        ("en", "See example.com for more", ["See example.com for more"]),
        ("de", "Am 3. Mai war es z.B. kalt. Ja!", ["Am 3. Mai war es z.B. kalt.", "Ja!"]),
        ("de", "Es war 1999. Dann kam er.", ["Es war 1999.", "Dann kam er."]),
        ("zh", "你好。再见！“走吧。”他说。", ["你好。", "再见！", "“走吧。”", "他说。"]),
        ("zh", "一\n\n二。三", ["一", "二。", "三"]),
        ("en", "", []),
        ("en", " \n\t ", []),
    ],
)
def test_sentences_by_hand(language: str, text: str, sentences: list[str]) -> None:
    assert list(split_text(text, language=language).sentences) == sentences


def test_paragraphs_stay_and_spaces_follow_the_language_written() -> None:
    english = split_text("  Hi. It rains.\n\n\nBye. ", language="en")
    assert (
        english.join(["嗨。", "下雨了。", "再见。"], target="zh") == "  嗨。下雨了。\n\n\n再见。 "
    )
    chinese = split_text("你好。再见。\n好。", language="zh")
    assert chinese.join(["Hello.", "Bye.", "Good."], target="en") == "Hello. Bye.\nGood."
    assert split_text(" \n ", language="en").join([], target="de") == " \n "


@settings(max_examples=200, deadline=None)
@given(
    st.text(alphabet=st.sampled_from("aB1 .!?…。！\"'”)\n\r\t\u3000Mr")),
    st.sampled_from(["en", "de", "zh"]),
)
def test_sentences_and_gaps_are_the_text(text: str, language: str) -> None:
    split = split_text(text, language=language)
    gaps = split.gaps
    whole = gaps[0] + "".join(a + b for a, b in zip(split.sentences, gaps[1:], strict=True))
    assert whole == text
    assert all(gap.strip() == "" for gap in gaps)
    assert all(sentence and sentence == sentence.strip() for sentence in split.sentences)


@pytest.mark.parametrize(
    ("sentence", "halves"),
    [
        ("one two three four", ("one two", " ", "three four")),
        (
            "he came at noon, and she had already left",
            ("he came at noon,", " ", "and she had already left"),
        ),
        ("a, bbbbbbbbb cccccccc dddddddd", ("a, bbbbbbbbb", " ", "cccccccc dddddddd")),
        ("costs 1,000,000 euros", ("costs", " ", "1,000,000 euros")),
        ("他昨天来了，她已经走了", ("他昨天来了，", "", "她已经走了")),
        ("abcdefg", ("abc", "", "defg")),
        ("ab", ("a", "", "b")),
    ],
)
def test_halves_by_hand(sentence: str, halves: tuple[str, str, str]) -> None:
    assert halve(sentence) == halves


@settings(max_examples=200, deadline=None)
@given(
    st.text(alphabet=st.sampled_from("aB, ;，\t\u3000—"), min_size=2).map(lambda text: f"x{text}y")
)
def test_halves_and_the_gap_are_the_sentence(sentence: str) -> None:
    left, gap, right = halve(sentence)
    assert left + gap + right == sentence
    assert gap.strip() == ""
    assert left == left.strip() != ""
    assert right == right.strip() != ""


ATTACKS = [
    "a",
    ".",
    "a.",
    "Mr. ",
    "(((",
    "))) ",
    "e\u0301",
    "👨\u200d",
    " ",
    "\n",
    "。",
    "1. ",
    '."',
]


@pytest.mark.parametrize("unit", ATTACKS)
def test_time_grows_with_the_length_and_nothing_else(unit: str) -> None:
    def cost(count: int) -> float:
        text = unit * count
        best = float("inf")
        for _ in range(3):
            start = time.process_time()
            split_text(text, language="de")
            best = min(best, time.process_time() - start)
        return best

    cost(100)
    small = 8_000 // len(unit)
    assert cost(4 * small) < 4 * 2.5 * cost(small) + 0.02
