"""Every word: tagged, aligned, linked to its antecedent; and the notes' sentences to the letter."""

from __future__ import annotations

from itertools import permutations

import pytest

from headwise.pocket import (
    LANGUAGES,
    NOTES_EXAMPLES,
    Sentence,
    pronoun_words,
    pronouns_correct,
    sentences,
)

CONTENT = {"NOUN", "VERB", "ADJ", "PROPN", "NUM"}
TAGS = {
    "NOUN",
    "VERB",
    "ADJ",
    "DET",
    "PRON",
    "ADP",
    "AUX",
    "ADV",
    "NUM",
    "PART",
    "CCONJ",
    "SCONJ",
    "PUNCT",
    "PROPN",
}


@pytest.fixture(scope="module")
def sample() -> list[Sentence]:
    return list(sentences("train", 4000, seed=1))


@pytest.mark.parametrize("language", LANGUAGES)
def test_one_tag_per_word(sample: list[Sentence], language: str) -> None:
    for one in sample:
        assert len(one.tags(language)) == len(one.words(language))
        assert set(one.tags(language)) <= TAGS
        assert all(one.words(language))


@pytest.mark.parametrize(("source", "target"), list(permutations(LANGUAGES, 2)))
def test_alignments_are_in_range_and_cover_content(
    sample: list[Sentence], source: str, target: str
) -> None:
    content = covered = 0
    for one in sample:
        pairs = one.alignment(source, target)
        assert all(
            here < len(one.words(source)) and there < len(one.words(target))
            for here, there in pairs
        )
        assert {(there, here) for here, there in pairs} == set(one.alignment(target, source))
        aligned = {here for here, _ in pairs}
        for position, tag in enumerate(one.tags(source)):
            content += tag in CONTENT
            covered += tag in CONTENT and position in aligned
    assert covered / content > 0.97


def test_text_is_written_as_natives_write(sample: list[Sentence]) -> None:
    for one in sample:
        english, chinese, german = (one.text(language) for language in LANGUAGES)
        assert " " not in chinese
        for text in (english, german):
            assert not any(wrong in text for wrong in ("  ", " .", " ,", " ?", " n't", " 's"))
            assert text[0].isupper() or text[0] in "„“"
        assert english.endswith((".", "?", "!", "”"))
        assert chinese.endswith(("。", "？", "！", "”"))


def test_the_notes_examples_to_the_letter() -> None:
    tired, wide = NOTES_EXAMPLES
    assert tired.text("en") == "The animal didn't cross the street because it was too tired."
    assert tired.text("de") == "Das Tier überquerte die Straße nicht, weil es zu müde war."
    assert tired.text("zh") == "那只动物没有过马路，因为它太累了。"
    assert wide.text("en") == "The animal didn't cross the street because it was too wide."
    assert wide.text("de") == "Das Tier überquerte die Straße nicht, weil sie zu breit war."
    assert wide.text("zh") == "那只动物没有过马路，因为它太宽了。"


@pytest.mark.parametrize(
    ("index", "antecedents"), [(0, ("animal", "动物", "Tier")), (1, ("street", "马路", "Straße"))]
)
def test_the_notes_pronoun_points_to_its_antecedent(
    index: int, antecedents: tuple[str, ...]
) -> None:
    example = NOTES_EXAMPLES[index]
    for language, word in zip(LANGUAGES, antecedents, strict=True):
        ((pronoun, antecedent),) = example.pronouns(language)
        assert example.tags(language)[pronoun] == "PRON"
        assert example.words(language)[antecedent] == word


def test_the_notes_alignment_by_hand() -> None:
    tired = NOTES_EXAMPLES[0]
    english, german = tired.words("en"), tired.words("de")
    pairs = {(english[here], german[there]) for here, there in tired.alignment("en", "de")}
    assert {
        ("animal", "Tier"),
        ("n't", "nicht"),
        ("cross", "überquerte"),
        ("it", "es"),
        ("was", "war"),
    } <= pairs
    assert ("it", "Tier") not in pairs


def test_pronouns_are_judged_alone() -> None:
    tired, wide = NOTES_EXAMPLES
    assert pronouns_correct(tired, "de", "Das Tier ging nicht, weil Es zu müde war.") is True
    assert pronouns_correct(tired, "de", wide.text("de")) is False
    assert pronouns_correct(tired, "de", "Das Tier überquerte die Straße nicht.") is False
    assert pronouns_correct(tired, "zh", "动物没过马路，因为它累。") is True
    assert pronouns_correct(tired, "zh", "动物没过马路，因为他累。") is False
    assert pronoun_words("Er gab ihr ihren Ring, und sie dankte ihm.", "de") == (
        "er",
        "ihr",
        "ihren",
        "sie",
        "ihm",
    )
    assert pronoun_words("她们看见了它们。", "zh") == ("她们", "它们")


def test_sentences_without_pronouns_are_not_judged(sample: list[Sentence]) -> None:
    plain = next(one for one in sample if not one.pronouns("de"))
    assert pronouns_correct(plain, "de", plain.text("de")) is None
    for one in sample:
        if one.pronouns("de"):
            assert all(
                pronouns_correct(one, language, one.text(language)) for language in LANGUAGES
            )


def test_every_scene_has_a_right_answer(sample: list[Sentence]) -> None:
    """In the it-scenes the two antecedents differ in German gender, so the pronoun gives the
    meaning away.
    """
    scenes = [
        one
        for one in sample
        if one.pattern in ("it-crossing", "it-fitting", "it-lying", "it-eating")
    ]
    assert len(scenes) > 50
    for one in scenes:
        ((pronoun, antecedent),) = one.pronouns("de")
        assert one.words("de")[pronoun] in ("er", "sie", "es")
        assert one.tags("de")[antecedent] == "NOUN"


def test_words_spell_the_text() -> None:
    """What aligns pieces with words relies on it: spaces aside, words and text are the same
    letters.
    """
    for one in sentences("train", 3000):
        for language in LANGUAGES:
            assert "".join(one.words(language)) == "".join(one.text(language).split()), one.text(
                language
            )
