"""Two right wordings: which sentences have them, how often each is drawn, and every mixture of the
two is found.
"""

from collections.abc import Iterator
from itertools import islice, product

import pytest

from headwise.pocket import LANGUAGES, LanguageError, mixes, patterns, right_texts, sentence, texts
from headwise.pocket.second_wording import put_time_first

COUNT = 1999
PAIRS = [("en", "de"), ("de", "en"), ("en", "zh"), ("zh", "de")]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_first_wording_is_that_of_the_default_corpus(language: str) -> None:
    for index in range(97):
        assert right_texts("valid", index, language, seed=3)[0] == sentence(
            "valid", index, seed=3
        ).text(language)


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_sources_stay_and_each_wording_takes_half(source: str, target: str) -> None:
    usual = list(texts("train", COUNT, (source, target)))
    drawn = list(texts("train", COUNT, (source, target), second_wording=0.5))
    assert drawn == list(texts("train", COUNT, (source, target), second_wording=0.5))
    assert [left for left, _ in drawn] == [left for left, _ in usual]
    seconds = 0
    with_two = 0
    for index, ((_, right), (_, first)) in enumerate(zip(drawn, usual, strict=True)):
        both = right_texts("train", index, target)
        assert right in both
        with_two += len(both) == 2
        seconds += right != first
    assert 0.25 < with_two / COUNT < 0.4
    # Four standard deviations of a fair coin.
    assert abs(seconds - with_two / 2) < 4 * (with_two / 4) ** 0.5


def test_the_chance_is_that_of_the_setting() -> None:
    shares = {}
    for chance in (0.0, 0.2, 1.0):
        drawn = texts("train", COUNT, ("en", "de"), second_wording=chance)
        found = [
            right == both[1]
            for index, (_, right) in enumerate(drawn)
            if len(both := right_texts("train", index, "de")) == 2
        ]
        shares[chance] = sum(found) / len(found)
    assert shares[0.0] == 0
    assert shares[1.0] == 1
    assert abs(shares[0.2] - 0.2) < 4 * (0.2 * 0.8 / (COUNT / 4)) ** 0.5


def test_another_seed_draws_other_wordings() -> None:
    kept = [list(texts("train", 53, ("en", "de"), seed=7, second_wording=0.5)) for _ in range(2)]
    assert kept[0] == kept[1] != list(texts("train", 53, ("en", "de"), seed=7))


def mixtures(one: str, other: str) -> Iterator[str]:
    """Every choice of a word of one of the two at each position."""
    pairs = list(zip(one.rstrip(".").split(), other.rstrip(".").split(), strict=True))
    choices = [dict.fromkeys(pair) for pair in pairs]
    return (" ".join(words) + "." for words in product(*choices))


@pytest.mark.parametrize("language", ["en", "de"])
def test_every_mixture_by_positions_is_found_and_both_wordings_are_right(language: str) -> None:
    found = 0
    for index in range(401):
        both = right_texts("test", index, language)
        assert not any(mixes(one, both) for one in both)
        if len(both) == 1:
            continue
        lowered = {one.casefold() for one in both}
        for mixed in islice(mixtures(*both), 257):
            if mixed.casefold() not in lowered:
                assert mixes(mixed, both), mixed
                found += 1
    assert found > 1000


def test_every_mixture_of_chinese_words_is_found() -> None:
    index = next(i for i in range(99) if len(right_texts("test", i, "zh")) == 2)
    first, second = right_texts("test", index, "zh")
    words = sentence("test", index).words("zh")
    time = second[: len(second) - len(second.lstrip(first[0]))] or second[:2]
    assert not mixes(first, (first, second))
    assert not mixes(second, (first, second))
    assert mixes(words[0] + first, (first, second)), "a word twice"
    assert mixes(time + first, (first, second))


def test_the_examples_of_the_header() -> None:
    both = ("Der Lehrer kaufte gestern ein Buch.", "Gestern kaufte der Lehrer ein Buch.")
    for wrong in (
        "Gestern kaufte gestern ein Buch.",
        "Der Lehrer kaufte der Lehrer ein Buch.",
        "Gestern Lehrer kaufte gestern ein Buch.",
        "Der kaufte Lehrer gestern ein Buch.",
    ):
        assert mixes(wrong, both), wrong
    for other in (
        "Der Lehrer kaufte ein Buch.",
        "Der Lehrer kaufte gestern ein Haus.",
        "",
        "Gestern kaufte gestern ein Haus.",
    ):
        assert not mixes(other, both), other
    assert mixes("Gestern kaufte gestern ein Buch.", both[:1]) is True


def test_only_statements_that_say_their_time_last_have_a_second_wording() -> None:
    with_second = {
        pattern.name
        for pattern in patterns()
        for wording in pattern.wordings
        if put_time_first(wording, "de") is not None
    }
    assert {"past", "future", "giving", "did-not", "went", "wants"} <= with_second
    assert not {"past-time-first", "frequency", "liking", "that-past", "it-crossing"} & with_second
    for pattern in patterns():
        for wording in pattern.wordings:
            seconds = [put_time_first(wording, language) for language in LANGUAGES]
            assert [one is None for one in seconds] in ([True] * 3, [False] * 3), pattern.name


def test_the_german_verb_stays_in_second_place() -> None:
    for index in range(199):
        both = right_texts("train", index, "de")
        if len(both) == 2:
            assert sorted(both[0].casefold()) == sorted(both[1].casefold())
            assert both[1].split()[0].istitle() or both[1][0].isupper()


def test_wrong_names_are_refused() -> None:
    with pytest.raises(LanguageError, match="got language 'fr'"):
        right_texts("train", 0, "fr")
