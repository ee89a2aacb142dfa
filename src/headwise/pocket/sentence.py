"""A generated sentence of the pocket corpus: one meaning in three languages, with words, tags and
links.

Text and word alignments follow from these. Nothing is estimated: two words are aligned if they were
generated from the same part of the meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headwise.errors import UsageError
from headwise.pocket.template import Token

LANGUAGES = ("en", "zh", "de")
CLOSING = frozenset(",.?!:;”")
ENDS = frozenset(".?!")


class LanguageError(UsageError):
    """A language name that is not one of the three."""

    def __init__(self, language: str) -> None:
        super().__init__(
            f"got language {language!r}; the pocket corpus is in {', '.join(LANGUAGES)}; pass one "
            "of these names",
            f"给出的语言是 {language!r}；袖珍语料只有 {'、'.join(LANGUAGES)}；请用其中之一",
        )


SHORTENED = {"can": "ca", "will": "wo"}
"""Verbs that lose letters before n't: can't and won't are written ca + n't and wo + n't, as
treebanks do."""


def detokenise(words: Sequence[str], language: str) -> str:
    """Join words as a native writer would."""
    if language == "zh":
        return "".join(words)
    opening, closing = ("“", "”") if language == "en" else ("„", "“")
    text = ""
    for word in words:
        if (
            not text
            or (text.endswith(opening) and word != opening)
            or word in ("n't", "'s", closing)
            or (word in CLOSING and word != opening)
        ):
            text += word
        else:
            text += " " + word
    return text


def capitalise(tokens: list[Token]) -> tuple[Token, ...]:
    """A capital for the first word of each sentence, and the verbs that n't shortens."""
    start = True
    finished = []
    for token in tokens:
        if start and token.tag != "PUNCT":
            word = token.word[0].upper() + token.word[1:]
            finished.append(Token(word, token.tag, token.links))
            start = False
        elif token.word == "n't" and finished[-1].word == "am":
            finished.append(Token("not", token.tag, token.links))
        elif token.word == "n't":
            verb = finished[-1]
            finished[-1] = Token(SHORTENED.get(verb.word, verb.word), verb.tag, verb.links)
            finished.append(token)
        else:
            finished.append(token)
            start = start or token.word in ENDS or (token.word in "„“" and token.tag == "PUNCT")
    return tuple(finished)


@dataclass(frozen=True)
class Sentence:
    """One meaning in English, Chinese and German."""

    pattern: str
    pairs: tuple[tuple[str, str], ...]
    en: tuple[Token, ...]
    zh: tuple[Token, ...]
    de: tuple[Token, ...]

    def tokens(self, language: str) -> tuple[Token, ...]:
        """Words with tags and links."""
        if language not in LANGUAGES:
            raise LanguageError(language)
        found: tuple[Token, ...] = getattr(self, language)
        return found

    def words(self, language: str) -> tuple[str, ...]:
        """The words; punctuation marks are words, Chinese is segmented."""
        return tuple(token.word for token in self.tokens(language))

    def tags(self, language: str) -> tuple[str, ...]:
        """One universal part-of-speech tag per word."""
        return tuple(token.tag for token in self.tokens(language))

    def text(self, language: str) -> str:
        """The sentence as a native would write it."""
        return detokenise(self.words(language), language)

    def alignment(self, source: str, target: str) -> frozenset[tuple[int, int]]:
        """Pairs of word positions that mean the same."""
        positions: dict[str, list[int]] = {}
        for position, token in enumerate(self.tokens(target)):
            if token.tag != "PUNCT":
                for link in token.links.split():
                    positions.setdefault(link, []).append(position)
        found = {
            (here, there)
            for here, token in enumerate(self.tokens(source))
            if token.tag != "PUNCT"
            for link in token.links.split()
            for there in positions.get(link, ())
        }
        return frozenset(found | self._punctuation(source, target))

    def _punctuation(self, source: str, target: str) -> set[tuple[int, int]]:
        """The final mark of each language belongs to the final mark of the other."""
        last_source, last_target = len(self.tokens(source)) - 1, len(self.tokens(target)) - 1
        return {(last_source, last_target)}

    def pronouns(self, language: str) -> tuple[tuple[int, int], ...]:
        """(position of the pronoun, position of its antecedent) for pronouns that depend on a
        distant word.
        """
        tokens = self.tokens(language)
        found = []
        for position, token in enumerate(tokens):
            if ">" in token.links:
                antecedent = token.links.partition(">")[2]
                places = [
                    index for index, other in enumerate(tokens) if antecedent in other.links.split()
                ]
                if places:
                    found.append((position, places[-1]))
        return tuple(found)
