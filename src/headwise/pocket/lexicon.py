"""The lexicon of the pocket corpus, from which its grammar makes sentences: tables of words in
three languages, which a native speaker can review.

Classes in the tables (person, food, portable …) say which words make sense together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources

from headwise.pocket import english
from headwise.pocket.template import Token, parse_words


@dataclass(frozen=True, eq=False)
class Noun:
    """A thing or person: its words, measure word, German gender and classes."""

    concept: str
    en: str
    en_plural: str
    zh: str
    measure: str
    zh_bare: bool
    de: str
    de_plural: str
    gender: str
    weak: bool
    classes: frozenset[str]

    @property
    def mass(self) -> bool:
        return self.measure == "-"


@dataclass(frozen=True, eq=False)
class Place:
    """A noun with the prepositions that say where one is and where one goes."""

    noun: Noun
    en_at: str
    zh_inside: str
    de_at: str
    de_to: str
    classes: frozenset[str]


@dataclass(frozen=True, eq=False)
class Verb:
    """A verb with its principal parts; ``subjects`` and ``objects`` are the nouns it makes sense
    with.
    """

    concept: str
    en_base: tuple[str, ...]
    en_past: tuple[str, ...]
    en_participle: tuple[str, ...]
    zh: str
    de_infinitive: str
    de_present: str
    de_past: str
    de_participle: str
    de_prefix: str
    moves: bool
    subjects: tuple[Noun, ...]
    objects: tuple[Noun, ...]
    kinds: frozenset[str]


@dataclass(frozen=True, eq=False)
class Adjective:
    """An adjective with its German stem and degrees, and the nouns it fits."""

    concept: str
    en: str
    zh: str
    zh_before: str
    zh_particle: bool
    de: str
    de_stem: str
    de_comparative: str
    de_superlative: str
    fits: frozenset[str]
    kinds: frozenset[str]


@dataclass(frozen=True, eq=False)
class Name:
    """A proper name."""

    kind: str
    en: str
    zh: str
    de: str


@dataclass(frozen=True, eq=False)
class Time:
    """A time phrase, the same moment in three languages."""

    kind: str
    en: tuple[Token, ...]
    zh: tuple[Token, ...]
    de: tuple[Token, ...]


def table_rows(name: str) -> Iterator[list[str]]:
    """The rows of one table file, as stripped fields."""
    text = (
        resources.files("headwise.pocket")
        .joinpath("lexicon")
        .joinpath(name)
        .read_text(encoding="utf-8")
    )
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            yield [field.strip() for field in line.split(" | ")]


def read_noun(concept: str, en: str, zh: str, de: str, classes: str) -> Noun:
    """Build a noun from its table fields."""
    singular, _, irregular = en.partition("/")
    chinese = zh.split()
    german, plural = de.split(", ")
    article, word = german.split(" ")
    last = singular.split(" ")[-1]
    regular = singular[: len(singular) - len(last)] + english.plural(last)
    return Noun(
        concept=concept,
        en=singular,
        en_plural=irregular or regular,
        zh=chinese[0],
        measure=chinese[1],
        zh_bare="bare" in chinese or chinese[1] == "-",
        de=word.rstrip("*"),
        de_plural=plural,
        gender={"der": "m", "die": "f", "das": "n"}[article],
        weak=word.endswith("*"),
        classes=frozenset([concept, *classes.split()]),
    )


@cache
def nouns() -> tuple[Noun, ...]:
    """All nouns except places."""
    return tuple(read_noun(*fields) for fields in table_rows("nouns.txt"))


@cache
def noun(concept: str) -> Noun:
    """The noun of that concept."""
    return next(item for item in nouns() if item.concept == concept)


@cache
def nouns_of(classes: str) -> tuple[Noun, ...]:
    """The nouns that belong to any of the blank-separated classes, in table order."""
    wanted = frozenset(classes.split())
    return tuple(item for item in nouns() if item.classes & wanted)


@cache
def places() -> tuple[Place, ...]:
    """All places."""
    found = []
    for concept, en, zh, de, prepositions, classes in table_rows("places.txt"):
        singular, _, en_at = en.rpartition(" ")
        word, measure, inside = zh.split()
        de_at, de_to = prepositions.split()
        item = read_noun(concept, singular, f"{word} {measure} bare", de, "place")
        found.append(
            Place(
                item,
                en_at,
                "" if inside == "-" else inside,
                de_at,
                de_to,
                frozenset([concept, *classes.split()]),
            )
        )
    return tuple(found)


@cache
def places_of(classes: str) -> tuple[Place, ...]:
    """The places that belong to any of the blank-separated classes."""
    wanted = frozenset(classes.split())
    return tuple(item for item in places() if item.classes & wanted)


@cache
def verbs() -> tuple[Verb, ...]:
    """All verbs."""
    found = []
    for concept, en, zh, de, frame, kinds in table_rows("verbs.txt"):
        words = en.split()
        size = len(words) // 3
        german = de.split()
        third, _, prefix = german[1].partition("/")
        subjects, _, objects = frame.partition(">")
        found.append(
            Verb(
                concept=concept,
                en_base=tuple(words[:size]),
                en_past=tuple(words[size : 2 * size]),
                en_participle=tuple(words[2 * size :]),
                zh=zh,
                de_infinitive=german[0][len(prefix) :],
                de_present=third,
                de_past=german[2].partition("/")[0],
                de_participle=german[3],
                de_prefix=prefix,
                moves="ist" in german[4:],
                subjects=nouns_of(subjects.strip()),
                objects=nouns_of(objects.strip()),
                kinds=frozenset(kinds.split()),
            )
        )
    return tuple(found)


@cache
def verbs_of(kind: str, *, transitive: bool = True) -> tuple[Verb, ...]:
    """The verbs of a kind, with or without an object."""
    return tuple(
        item for item in verbs() if kind in item.kinds and bool(item.objects) == transitive
    )


@cache
def verb(concept: str) -> Verb:
    """The verb of that concept."""
    return next(item for item in verbs() if item.concept == concept)


@cache
def adjectives() -> tuple[Adjective, ...]:
    """All adjectives."""
    found = []
    for concept, en, zh, de, classes, kinds in table_rows("adjectives.txt"):
        base, comparative, superlative = de.split()
        word, _, stem = base.partition(":")
        found.append(
            Adjective(
                concept=concept,
                en=en,
                zh=zh.rstrip("+").partition("/")[0],
                zh_before=zh.rstrip("+").rpartition("/")[2],
                zh_particle=zh.endswith("+"),
                de=word,
                de_stem=stem or word,
                de_comparative=comparative,
                de_superlative=superlative,
                fits=frozenset(classes.split()),
                kinds=frozenset(kinds.split()),
            )
        )
    return tuple(found)


@cache
def adjectives_for(item: Noun, kind: str) -> tuple[Adjective, ...]:
    """The adjectives of a kind (attr, pred, compared) that make sense with a noun."""
    wanted = "pred" if kind == "compared" else kind
    return tuple(
        one
        for one in adjectives()
        if wanted in one.kinds
        and one.fits & item.classes
        and (kind != "compared" or one.de_comparative != "x")
    )


@cache
def adjective(concept: str) -> Adjective:
    """The adjective of that concept."""
    return next(item for item in adjectives() if item.concept == concept)


@cache
def names(kind: str) -> tuple[Name, ...]:
    """The proper names of a kind: he, she, city, country, language, month, weekday."""
    return tuple(Name(*fields) for fields in table_rows("names.txt") if fields[0] == kind)


TIME_KINDS = {"past": ("recent", "long"), "future": ("soon", "later"), "habit": ("every", "part")}


@cache
def times(kind: str) -> tuple[Time, ...]:
    """The time phrases of a kind: past (recent or long ago), future (soon or later), habit,
    often.
    """
    return tuple(
        Time(fields[0], parse_words(fields[1]), parse_words(fields[2]), parse_words(fields[3]))
        for fields in table_rows("times.txt")
        if fields[0] in TIME_KINDS.get(kind, (kind,))
    )
