"""Noun phrases, names and pronouns of the pocket corpus: everything that can be a subject or an
object of its sentences.

Each renders itself in the three languages and names the meaning of each word, from which word
alignments follow.
"""

from __future__ import annotations

from headwise.pocket import chinese, english, german
from headwise.pocket.lexicon import Adjective, Name, Noun
from headwise.pocket.template import Token

NUMBER_WORDS = {
    "en": [
        "zero",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
    ],
    "de": [
        "null",
        "eins",
        "zwei",
        "drei",
        "vier",
        "fünf",
        "sechs",
        "sieben",
        "acht",
        "neun",
        "zehn",
        "elf",
        "zwölf",
    ],
}
POSSESSIVES = {
    "my": ("my", "我", "mein"),
    "his": ("his", "他", "sein"),
    "her": ("her", "她", "ihr"),
    "our": ("our", "我们", "unser"),
    "your": ("your", "你", "dein"),
    "their": ("their", "他们", "ihr"),
}
GERMAN_STEMS = {"the": "der", "a": "ein", "this": "dies", "every": "jed", "no": "kein"}
QUANTITIES = {
    "many": ("many", "很多", "viele", "vielen"),
    "some": ("some", "几", "einige", "einigen"),
}


class NounPhrase:
    """Determiner, adjective and noun. The determiner is the, a, this, no, every, my ..., many,
    some, ``bare`` (none) or a number."""

    __slots__ = ("adjective", "agreement", "determiner", "name", "noun", "plural")

    def __init__(
        self,
        name: str,
        noun: Noun,
        determiner: str | int = "the",
        adjective: Adjective | None = None,
        *,
        plural: bool = False,
    ) -> None:
        self.name = name
        self.noun = noun
        self.determiner = determiner
        self.adjective = adjective
        self.plural = plural or isinstance(determiner, int) or determiner in QUANTITIES
        self.agreement = 1 if self.plural else 0

    def en(self, form: str) -> list[Token]:
        name, noun, determiner = self.name, self.noun, self.determiner
        words = (noun.en_plural if self.plural else noun.en).split(" ")
        tail = [Token(word, "NOUN", name) for word in words]
        if self.adjective is not None:
            tail.insert(0, Token(self.adjective.en, "ADJ", name + ".a"))
        if form == "bare" or determiner == "bare":
            return tail
        link = name + ".d"
        if isinstance(determiner, int):
            return [Token(NUMBER_WORDS["en"][determiner], "NUM", link), *tail]
        if determiner == "a":
            return [Token(english.article(tail[0].word), "DET", link), *tail]
        if determiner == "this" and self.plural:
            determiner = "these"
        tag = "PRON" if determiner in POSSESSIVES else "ADJ" if determiner == "many" else "DET"
        return [Token(determiner, tag, link), *tail]

    def zh(self, form: str) -> list[Token]:
        name, noun = self.name, self.noun
        role = noun.zh_bare and "person" in noun.classes
        if role and self.plural and self.adjective is None and self.determiner == "the":
            return [Token(noun.zh + "们", "NOUN", name)]
        tail = [Token(noun.zh, "NOUN", name)]
        if self.adjective is not None:
            adjective = [Token(self.adjective.zh_before, "ADJ", name + ".a")]
            if self._zh_needs_particle():
                adjective.append(Token("的", "PART", name + ".a"))
            tail = adjective + tail
        if form == "measured":
            return [Token(noun.measure, "NOUN", name + ".d"), *tail]
        return tail if form == "bare" else self._zh_determiner() + tail

    def _zh_needs_particle(self) -> bool:
        """的 after a long adjective, and after any of two characters before a noun of one:
        红色的球.
        """
        adjective = self.adjective
        if adjective is None:
            return False
        return adjective.zh_particle or (len(adjective.zh_before) > 1 and len(self.noun.zh) == 1)

    def _zh_determiner(self) -> list[Token]:
        name, noun, determiner = self.name, self.noun, self.determiner
        link = name + ".d"
        if determiner in ("bare", "no"):
            return []
        if isinstance(determiner, int):
            return [
                Token(chinese.numeral(determiner), "NUM", link),
                Token(noun.measure, "NOUN", link),
            ]
        if determiner in POSSESSIVES:
            owner = Token(POSSESSIVES[determiner][1], "PRON", link)
            if self._zh_needs_particle():  # 你那把干净的勺子 rather than 你的干净的勺子
                return [owner, Token("那", "DET", link), Token(noun.measure, "NOUN", link)]
            return [owner] if "kin" in noun.classes else [owner, Token("的", "PART", link)]
        if determiner == "many":
            return [Token("很多", "ADJ", link)]
        if self.plural and determiner in ("the", "this"):
            return [Token("那些" if determiner == "the" else "这些", "DET", link)]
        if determiner == "the" and noun.zh_bare and (self.adjective is None or noun.mass):
            return []
        word = {"the": "那", "this": "这", "a": "一", "every": "每", "some": "几"}[determiner]
        tag = "NUM" if determiner in ("a", "some") else "DET"
        return [Token(word, tag, link), Token(noun.measure, "NOUN", link)]

    def de(self, form: str) -> list[Token]:
        """The phrase in case n, a, d or g; ``bare`` leaves the determiner out."""
        if len(form) == 3:  # a preposition with the dative: von, mit
            return contracted(form, self.de("d"), self.name)
        name, noun, determiner, case = self.name, self.noun, self.determiner, form[0]
        gender = "p" if self.plural else noun.gender
        word = german.noun_form(
            noun.de, noun.de_plural, noun.gender, case, weak=noun.weak, plural=self.plural
        )
        tokens: list[Token] = []
        stem: str | None = None
        if form.endswith("bare") or determiner == "bare":
            pass
        elif isinstance(determiner, int):
            tokens.append(Token(NUMBER_WORDS["de"][determiner], "NUM", name + ".d"))
        elif determiner in QUANTITIES:
            quantity = QUANTITIES[determiner][3 if case == "d" else 2]
            tokens.append(Token(quantity, "ADJ" if determiner == "many" else "DET", name + ".d"))
        else:
            possessive = POSSESSIVES.get(determiner)
            stem = possessive[2] if possessive else GERMAN_STEMS[determiner]
            article = german.determiner(stem, gender, case)
            tokens.append(Token(article, "PRON" if possessive else "DET", name + ".d"))
        if self.adjective is not None:
            inflected = self.adjective.de_stem + german.adjective_ending(stem, gender, case)
            tokens.append(Token(inflected, "ADJ", name + ".a"))
        tokens.append(Token(word, "NOUN", name))
        return tokens


class NamePhrase:
    """A person, city or country by name."""

    __slots__ = ("agreement", "name", "proper")

    def __init__(self, name: str, proper: Name) -> None:
        self.name = name
        self.proper = proper
        self.agreement = 0

    def en(self, form: str) -> list[Token]:
        return [Token(self.proper.en, "PROPN", self.name)]

    def zh(self, form: str) -> list[Token]:
        return [Token(self.proper.zh, "PROPN", self.name)]

    def de(self, form: str) -> list[Token]:
        return [Token(self.proper.de, "PROPN", self.name)]


SPEAKERS = {
    "i": (("I", "me"), "我", ("ich", "mich", "mir"), 2),
    "we": (("we", "us"), "我们", ("wir", "uns", "uns"), 1),
    "he": (("he", "him"), "他", ("er", "ihn", "ihm"), 0),
    "she": (("she", "her"), "她", ("sie", "sie", "ihr"), 0),
    "they": (("they", "them"), "他们", ("sie", "sie", "ihnen"), 1),
    "you": (("you", "you"), "你", ("du", "dich", "dir"), 3),
}


class Speaker:
    """A personal pronoun that stands for itself: I, we, you, and he, she, they without an
    antecedent.
    """

    __slots__ = ("agreement", "forms", "name", "person")

    def __init__(self, name: str, person: str) -> None:
        self.name = name
        self.person = person
        self.forms = SPEAKERS[person]
        self.agreement = self.forms[3]

    def en(self, form: str) -> list[Token]:
        return [Token(self.forms[0][1 if form == "o" else 0], "PRON", self.name)]

    def zh(self, form: str) -> list[Token]:
        return [Token(self.forms[1], "PRON", self.name)]

    def de(self, form: str) -> list[Token]:
        return [Token(self.forms[2]["nad".index(form[0])], "PRON", self.name)]


ENGLISH_PRONOUN = {
    "he": ("he", "him"),
    "she": ("she", "her"),
    "it": ("it", "it"),
    "they": ("they", "them"),
}
CHINESE_PRONOUN = {"he": "他", "she": "她", "it": "它"}


class Reference:
    """A pronoun whose form follows a far word: the antecedent's gender in German, its kind in
    Chinese.
    """

    __slots__ = ("agreement", "antecedent", "name")

    def __init__(self, name: str, antecedent: NounPhrase | NamePhrase) -> None:
        self.antecedent = antecedent
        self.name = f"{name}>{antecedent.name}"
        self.agreement = antecedent.agreement

    @property
    def kind(self) -> str:
        """he, she or it."""
        if isinstance(self.antecedent, NamePhrase):
            return self.antecedent.proper.kind
        classes = self.antecedent.noun.classes
        return "he" if "he" in classes else "she" if "she" in classes else "it"

    def en(self, form: str) -> list[Token]:
        kind = "they" if self.agreement else self.kind
        return [Token(ENGLISH_PRONOUN[kind][1 if form == "o" else 0], "PRON", self.name)]

    def zh(self, form: str) -> list[Token]:
        if self.agreement:
            assert isinstance(self.antecedent, NounPhrase)
            people = "她们" if self.kind == "she" else "他们"
            return [
                Token(
                    people if "person" in self.antecedent.noun.classes else "它们",
                    "PRON",
                    self.name,
                )
            ]
        return [Token(CHINESE_PRONOUN[self.kind], "PRON", self.name)]

    def de(self, form: str) -> list[Token]:
        if isinstance(self.antecedent, NamePhrase):
            gender = "m" if self.kind == "he" else "f"
        else:
            gender = "p" if self.agreement else self.antecedent.noun.gender
        return [Token(german.PRONOUN[gender][form[0]], "PRON", self.name)]


class RelativeClause:
    """The relative pronoun of a German clause, and English who or that; Chinese uses 的 instead."""

    __slots__ = ("agreement", "antecedent", "name")

    def __init__(self, name: str, antecedent: NounPhrase) -> None:
        self.name = name
        self.antecedent = antecedent
        self.agreement = antecedent.agreement

    def en(self, form: str) -> list[Token]:
        person = self.antecedent.noun.classes & {"person", "kin"}
        return [Token("who" if person else "that", "PRON", self.name)]

    def zh(self, form: str) -> list[Token]:
        return [Token("的", "PART", self.name)]

    def de(self, form: str) -> list[Token]:
        gender = "p" if self.agreement else self.antecedent.noun.gender
        return [Token(german.RELATIVE[gender][form[0]], "PRON", self.name)]


class Possessed(NounPhrase):
    """His or her thing: the possessive's stem follows the owner, its ending the thing."""

    __slots__ = ("owner",)

    def __init__(self, name: str, noun: Noun, owner: NounPhrase | NamePhrase) -> None:
        super().__init__(name, noun, "his" if Reference("w", owner).kind == "he" else "her")
        self.owner = owner.name

    def _linked(self, tokens: list[Token]) -> list[Token]:
        link = self.name + ".d"
        return [
            Token(word, tag, f"{link}>{self.owner}" if links == link else links)
            for word, tag, links in tokens
        ]

    def en(self, form: str) -> list[Token]:
        return self._linked(super().en(form))

    def zh(self, form: str) -> list[Token]:
        return self._linked(super().zh(form))

    def de(self, form: str) -> list[Token]:
        return self._linked(super().de(form))


def contracted(preposition: str, phrase: list[Token], name: str) -> list[Token]:
    """A German preposition before a phrase, contracted where German contracts."""
    short = german.contract(preposition, phrase[0].word)
    if short is not None:
        return [Token(short, "ADP", f"{name}.p {name}.d"), *phrase[1:]]
    return [Token(preposition, "ADP", name + ".p"), *phrase]


Subject = NounPhrase | NamePhrase | Speaker | Reference
