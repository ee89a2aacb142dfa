"""Languages of texts: scripts, hand-worked probabilities, and what has no answer."""

import pytest

from headwise.text.language_detection import Detected, LanguageDetector, WordModel, count_scripts


def test_a_letters_probability_is_that_of_the_formula() -> None:
    """Words ab and b: after a space come a, b; letters by themselves: a, b, b and two spaces."""
    model = WordModel(["ab b"], order=2)
    uniform = 1 / 128
    single = (2 + 3 * uniform) / (5 + 3)  # b: 2 of 5 letters, of 3 kinds
    assert model.probability("", "b") == pytest.approx(single)
    assert model.probability(" ", "b") == pytest.approx((1 + 2 * single) / (2 + 2))
    assert model.probability("x", "b") == pytest.approx(single), (
        "an unseen history counts for nothing"
    )


def test_what_may_follow_adds_up_to_one() -> None:
    model = WordModel(["ab b abba"], order=3)
    seen = [" ", "a", "b"]
    for before in ("", "a", "b", " a", "ab"):
        unseen = 125 * model.probability(before, "x")
        assert sum(model.probability(before, letter) for letter in seen) + unseen == pytest.approx(
            1.0
        )


@pytest.mark.parametrize(
    ("text", "language", "confidence"),
    [
        ("你好，世界", "zh", 1.0),
        ("漢字とかな", "ja", 1.0),
        ("안녕하세요", "ko", 1.0),
        ("你好 ab", "zh", 0.5),
        ("你", "zh", 1.0),
    ],
)
def test_scripts_of_one_language_need_no_samples(
    text: str, language: str, confidence: float
) -> None:
    detector = LanguageDetector({"en": ["the dog"], "de": ["der Hund"]})
    assert detector.detect(text) == [Detected(language, confidence)]


@pytest.mark.parametrize(
    "text", ["", "  ", "12 + 30 = 42!", "Привет, мир", "Γειά σου", "zq xkcd qqw"]
)
def test_nothing_is_claimed_of_what_tells_nothing(text: str) -> None:
    assert LanguageDetector({"en": ["the old dog"], "de": ["der alte Hund"]}).detect(text) == []


def test_confidences_are_ordered_and_leave_room_for_others() -> None:
    detector = LanguageDetector({"en": ["the old dog sleeps"], "de": ["der alte Hund schläft"]})
    found = detector.detect("the dog")
    assert [one.language for one in found] == ["en", "de"]
    assert found[0].confidence > found[1].confidence
    assert sum(one.confidence for one in found) < 1.0


def test_the_probability_of_one_language_is_that_of_its_words_or_the_share_of_its_script() -> None:
    detector = LanguageDetector({"en": ["the old dog sleeps"], "de": ["der alte Hund schläft"]})
    (english, german) = detector.detect("the dog")
    assert detector.probability_of("the dog", "en") == english.confidence
    assert detector.probability_of("the dog", "de") == german.confidence
    assert detector.probability_of("你好 ab", "zh") == 0.5
    assert detector.probability_of("你好呀 the dog", "zh") == 3 / 9
    assert detector.probability_of("你好呀 ab", "en") == 0.0, "most letters are of another script"
    assert (
        detector.probability_of("漢字とかな", "zh"),
        detector.probability_of("漢字とかな", "ja"),
    ) == (0.0, 1.0)
    assert detector.probability_of("東京", "ja") == 1.0
    assert detector.probability_of("le chien", "fr") is None
    assert detector.probability_of("12 + 3", "en") is None


def test_a_very_long_word_is_no_danger() -> None:
    assert LanguageDetector({"en": ["the dog"]}).detect("a" * 1_000_000) == []


def test_letters_are_counted_by_script() -> None:
    assert count_scripts("aä 你я1") == {"LATIN": 2, "zh": 1, "CYRILLIC": 1}
