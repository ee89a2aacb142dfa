"""German, English and Chinese forms against paradigms worked out by hand."""

from __future__ import annotations

import pytest

from headwise.pocket import english, german
from headwise.pocket.lexicon import adjective, noun, nouns, places, verb, verbs
from headwise.pocket.noun_phrases import NounPhrase
from headwise.pocket.phrases import VerbPhrase, prepositional


def words(phrase: NounPhrase, case: str) -> str:
    return " ".join(token.word for token in phrase.de(case))


@pytest.mark.parametrize(
    ("concept", "determiner", "quality", "plural", "forms"),
    [
        ("apple", "the", "red", False, "der rote Apfel, den roten Apfel, dem roten Apfel, des "
            "roten Apfels"),
        ("apple", "a", "red", False, "ein roter Apfel, einen roten Apfel, einem roten Apfel, "
            "eines roten Apfels"),
        ("cat", "this", "oldliving", False, "diese alte Katze, diese alte Katze, dieser alten "
            "Katze, dieser alten Katze"),
        ("house", "my", "new", False, "mein neues Haus, mein neues Haus, meinem neuen Haus, "
            "meines neuen Hauses"),
        ("boy", "the", "tall", False, "der große Junge, den großen Jungen, dem großen Jungen, "
            "des großen Jungen"),
        ("child", "the", None, True, "die Kinder, die Kinder, den Kindern, der Kinder"),
        ("car", 3, "expensive", False, "drei teure Autos, drei teure Autos, drei teuren Autos, "
            "drei teurer Autos"),
        ("tower", "the", "high", False, "der hohe Turm, den hohen Turm, dem hohen Turm, des "
            "hohen Turmes"),
        ("neighbour", "the", None, False, "der Nachbar, den Nachbarn, dem Nachbarn, des Nachbarn"),
        ("student", "a", None, False, "ein Student, einen Studenten, einem Studenten, eines "
            "Studenten"),
        ("book", "many", "interesting", False,
         "viele interessante Bücher, viele interessante Bücher, vielen interessanten Büchern, "
         "viele interessanter Bücher"),
    ],
)  # fmt: skip
def test_german_noun_phrases(
    concept: str, determiner: str | int, quality: str | None, plural: bool, forms: str
) -> None:
    phrase = NounPhrase(
        "x", noun(concept), determiner, adjective(quality) if quality else None, plural=plural
    )
    assert [words(phrase, case) for case in "nad"] == forms.split(", ")[:3]
    if isinstance(determiner, str) and determiner != "many":
        assert words(phrase, "g") == forms.split(", ")[3]


def test_german_definite_articles() -> None:
    table = {
        gender: " ".join(german.determiner("der", gender, case) for case in "nadg")
        for gender in "mfnp"
    }
    assert table == {
        "m": "der den dem des",
        "f": "die die der der",
        "n": "das das dem des",
        "p": "die die den der",
    }


@pytest.mark.parametrize(
    ("preposition", "concept", "case", "expected"),
    [
        ("in", "drawer", "d", "in der Schublade"),
        ("in", "suitcase", "d", "im Koffer"),
        ("in", "house", "a", "ins Haus"),
        ("zu", "tower", "d", "zum Turm"),
        ("zu", "bridge", "d", "zur Brücke"),
        ("von", "doctor", "d", "vom Arzt"),
        ("auf", "table", "a", "auf den Tisch"),
    ],
)
def test_german_prepositions_contract(
    preposition: str, concept: str, case: str, expected: str
) -> None:
    assert (
        " ".join(token.word for token in prepositional("x", preposition, noun(concept), case))
        == expected
    )


@pytest.mark.parametrize(
    ("concept", "form", "agreement", "expected"),
    [
        ("eat", "pres", 0, "isst"),
        ("eat", "pres", 2, "esse"),
        ("read", "past", 1, "lasen"),
        ("buy", "past", 1, "kauften"),
        ("feed", "pres", 2, "füttere"),
        ("pickup", "pastend", 0, "abholte"),
        ("pickup", "inf", 0, "abholen"),
        ("pickup", "zu", 0, "abzuholen"),
        ("buy", "zu", 0, "zu kaufen"),
        ("run", "aux", 0, "ist"),
        ("read", "aux", 1, "haben"),
        ("invite", "part", 0, "eingeladen"),
        ("invite", "prefix", 0, "ein"),
    ],
)
def test_german_verbs(concept: str, form: str, agreement: int, expected: str) -> None:
    assert (
        " ".join(token.word for token in VerbPhrase("v", verb(concept), agreement).de(form))
        == expected
    )


@pytest.mark.parametrize(
    ("concept", "determiner", "expected"),
    [
        ("book", "a", "一本书"),
        ("dog", "this", "这只狗"),
        ("car", 2, "两辆汽车"),
        ("letter", "the", "那封信"),
        ("teacher", "the", "老师"),
        ("doctor", 3, "三位医生"),
        ("mother", "my", "我妈妈"),
        ("umbrella", "my", "我的雨伞"),
        ("shirt", "some", "几件衬衫"),
    ],
)
def test_chinese_measure_words(concept: str, determiner: str | int, expected: str) -> None:
    phrase = NounPhrase("x", noun(concept), determiner)
    assert "".join(token.word for token in phrase.zh("")) == expected


def test_english_spelling() -> None:
    assert [english.article(word) for word in ("apple", "old", "university", "book")] == [
        "an",
        "an",
        "a",
        "a",
    ]
    assert [english.plural(word) for word in ("box", "lorry", "boy", "tomato", "peach")] == [
        "boxes", "lorries", "boys", "tomatoes", "peaches",
    ]  # fmt: skip
    assert [english.ing(word) for word in ("write", "swim", "cut", "read", "open", "visit")] == [
        "writing", "swimming", "cutting", "reading", "opening", "visiting",
    ]  # fmt: skip
    assert english.comparison("big", "er") == ("bigger",)
    assert english.comparison("heavy", "er") == ("heavier",)
    assert english.comparison("expensive", "est") == ("most", "expensive")
    assert english.comparison("large", "er") == ("larger",)


def test_the_lexicon_is_complete() -> None:
    everything = nouns() + tuple(place.noun for place in places())
    assert len({one.concept for one in everything}) == len(everything)
    assert len({one.en for one in everything}) == len(everything)
    for one in everything:
        assert one.mass or one.measure
        assert one.de[0].isupper()
    for item in verbs():
        assert item.subjects, item.concept
