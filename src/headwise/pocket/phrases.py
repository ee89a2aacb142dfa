"""Phrases of the pocket corpus other than noun phrases: verbs, places, times, qualities and
numbers.

Each renders itself in the three languages and names the meaning of each word, from which word
alignments follow.
"""

from __future__ import annotations

from functools import cache

from headwise.pocket import chinese, english, german
from headwise.pocket.lexicon import Adjective, Noun, Place, Time, Verb
from headwise.pocket.noun_phrases import NUMBER_WORDS, NounPhrase, contracted
from headwise.pocket.template import Token, parse_words


class VerbPhrase:
    """A verb that agrees with its subject."""

    __slots__ = ("agreement", "name", "verb")

    def __init__(self, name: str, verb: Verb, agreement: int = 0) -> None:
        self.name = name
        self.verb = verb
        self.agreement = agreement

    def en(self, form: str) -> list[Token]:
        """Form base, pres, past, part or ing."""
        verb = self.verb
        if form == "past":
            words = verb.en_past
        elif form == "part":
            words = verb.en_participle
        elif form == "ing":
            words = (english.ing(verb.en_base[0]), *verb.en_base[1:])
        elif form == "pres" and self.agreement == 0:
            words = (english.third_person(verb.en_base[0]), *verb.en_base[1:])
        else:
            words = verb.en_base
        head = Token(words[0], "VERB", self.name)
        return [head] + [Token(word, "ADP", self.name) for word in words[1:]]

    def zh(self, form: str) -> list[Token]:
        return [Token(self.verb.zh, "VERB", self.name)]

    def de(self, form: str) -> list[Token]:
        """Form pres, past (verb second), prefix, inf, zu, part, aux, presend, pastend (verb
        final).
        """
        verb, name = self.verb, self.name
        if form == "prefix":
            return [Token(verb.de_prefix, "ADP", name)] if verb.de_prefix else []
        if form == "aux":
            words = (
                ("ist", "sind", "bin", "bist") if verb.moves else ("hat", "haben", "habe", "hast")
            )
            return [Token(words[self.agreement], "AUX", name)]
        if form == "zu":
            if verb.de_prefix:
                return [Token(f"{verb.de_prefix}zu{verb.de_infinitive}", "VERB", name)]
            return [Token("zu", "PART", name), Token(verb.de_infinitive, "VERB", name)]
        if form == "inf":
            word = verb.de_prefix + verb.de_infinitive
        elif form == "part":
            word = verb.de_participle
        else:
            if form.startswith("pres"):
                word = german.finite(verb.de_present, verb.de_infinitive, self.agreement)
            else:
                word = german.past(verb.de_past, self.agreement)
            if form.endswith("end"):
                word = verb.de_prefix + word
        return [Token(word, "VERB", name)]


class PlacePhrase:
    """Where (form at) or where to (form to): the preposition, the article and the place."""

    __slots__ = ("agreement", "name", "place")

    def __init__(self, name: str, place: Place) -> None:
        self.name = name
        self.place = place
        self.agreement = 0

    def en(self, form: str) -> list[Token]:
        words = [Token(word, "NOUN", self.name) for word in self.place.noun.en.split(" ")]
        the = Token("the", "DET", self.name + ".d")
        if form == "np":
            return [the, *words]
        preposition = "to" if form == "to" else self.place.en_at
        return [Token(preposition, "ADP", self.name + ".p"), the, *words]

    def zh(self, form: str) -> list[Token]:
        noun = Token(self.place.noun.zh, "NOUN", self.name)
        if form in ("to", "np"):
            return [noun]
        tokens = [Token("在", "ADP", self.name + ".p"), noun]
        if self.place.zh_inside:
            tokens.append(Token(self.place.zh_inside, "ADP", self.name + ".p"))
        return tokens

    def de(self, form: str) -> list[Token]:
        place = self.place
        if form == "to":
            return prepositional(
                self.name, place.de_to, place.noun, "d" if place.de_to == "zu" else "a"
            )
        if form == "at":
            return prepositional(self.name, place.de_at, place.noun, "d")
        if form in ("von", "zu"):
            return prepositional(self.name, form, place.noun, "d")
        return NounPhrase(self.name, place.noun).de(form[0])


def prepositional(name: str, preposition: str, noun: Noun, case: str) -> list[Token]:
    """A German preposition with a definite noun."""
    return contracted(preposition, NounPhrase(name, noun).de(case), name)


RELATIONS = {
    "on": (("on",), "上", "auf"),
    "in": (("in",), "里", "in"),
    "under": (("under",), "下面", "unter"),
    "beside": (("next", "to"), "旁边", "neben"),
    "behind": (("behind",), "后面", "hinter"),
    "before": (("in", "front", "of"), "前面", "vor"),
}


class Location:
    """Where something lies or is put: on the table, auf dem Tisch or auf den Tisch, 在桌子上."""

    __slots__ = ("agreement", "name", "noun", "relation")

    def __init__(self, name: str, noun: NounPhrase, relation: str) -> None:
        self.name = name
        self.noun = noun
        self.relation = RELATIONS[relation]
        self.agreement = 0

    def en(self, form: str) -> list[Token]:
        return [Token(word, "ADP", self.name + ".p") for word in self.relation[0]] + self.noun.en(
            ""
        )

    def zh(self, form: str) -> list[Token]:
        """Form at with 在, form loc without."""
        here = [Token("在", "ADP", self.name + ".p")] if form == "at" else []
        known = self.noun.determiner == "the" and self.noun.noun.classes & {
            "furniture",
            "door",
            "drawer",
        }
        return (
            here
            + self.noun.zh("bare" if known else "")
            + [Token(self.relation[1], "ADP", self.name + ".p")]
        )

    def de(self, form: str) -> list[Token]:
        """Form at takes the dative, form to the accusative."""
        return contracted(self.relation[2], self.noun.de("d" if form == "at" else "a"), self.name)


@cache
def _with_name(name: str, tokens: tuple[Token, ...]) -> tuple[Token, ...]:
    """Fixed phrases are few and occur often, so they are cached."""
    return tuple(
        Token(word, tag, " ".join(name + link for link in links.split()))
        for word, tag, links in tokens
    )


class TimePhrase:
    """A fixed phrase, mostly of time; its links are prefixed with the slot's name."""

    __slots__ = ("agreement", "name", "time")

    def __init__(self, name: str, time: Time) -> None:
        self.name = name
        self.time = time
        self.agreement = 0

    def _named(self, tokens: tuple[Token, ...]) -> list[Token]:
        return list(_with_name(self.name, tokens))

    def en(self, form: str) -> list[Token]:
        return self._named(self.time.en)

    def zh(self, form: str) -> list[Token]:
        return self._named(self.time.zh)

    def de(self, form: str) -> list[Token]:
        return self._named(self.time.de)


class Quality:
    """An adjective as a predicate, or in a higher degree (forms er and est)."""

    __slots__ = ("adjective", "agreement", "name")

    def __init__(self, name: str, adjective: Adjective) -> None:
        self.name = name
        self.adjective = adjective
        self.agreement = 0

    def en(self, form: str) -> list[Token]:
        if not form:
            return [Token(self.adjective.en, "ADJ", self.name)]
        words = english.comparison(self.adjective.en, form)
        more = [Token(word, "ADV", self.name) for word in words[:-1]]
        return [*more, Token(words[-1], "ADJ", self.name)]

    def zh(self, form: str) -> list[Token]:
        return [Token(self.adjective.zh, "ADJ", self.name)]

    def de(self, form: str) -> list[Token]:
        """Form "" or er; an inflected superlative is written est plus gender and case, as in
        ``estmn``.
        """
        adjective = self.adjective
        if not form:
            return [Token(adjective.de, "ADJ", self.name)]
        if form == "er":
            return [Token(adjective.de_comparative, "ADJ", self.name)]
        return [
            Token(
                adjective.de_superlative + german.WEAK_ENDING[form[-2]][form[-1]], "ADJ", self.name
            )
        ]


class NumberPhrase:
    """A number: digits, or a counted word with form ``word``."""

    __slots__ = ("agreement", "name", "value")

    def __init__(self, name: str, value: int) -> None:
        self.name = name
        self.value = value
        self.agreement = 0 if value == 1 else 1

    def en(self, form: str) -> list[Token]:
        return [
            Token(NUMBER_WORDS["en"][self.value] if form else str(self.value), "NUM", self.name)
        ]

    def zh(self, form: str) -> list[Token]:
        return [Token(chinese.numeral(self.value) if form else str(self.value), "NUM", self.name)]

    def de(self, form: str) -> list[Token]:
        if form == "th":
            return [Token(f"{self.value}.", "ADJ", self.name)]
        return [
            Token(NUMBER_WORDS["de"][self.value] if form else str(self.value), "NUM", self.name)
        ]


@cache
def fixed(name: str, en: str, zh: str, de: str) -> TimePhrase:
    """A fixed phrase written out in the three languages, in template notation."""
    return TimePhrase(name, Time("fixed", parse_words(en), parse_words(zh), parse_words(de)))
