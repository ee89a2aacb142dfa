"""Detects the language of a text: by script, then, among languages of one script, by words and
their letters.

    script   kana: Japanese · hangul: Korean · Han without kana: Chinese · Latin: by words
    words    p(word | language) = ½ · 1/V if the word is among the V words of the samples
                                + ½ · Π p(letter | two letters before), interpolated
                                  (Witten & Bell 1991)
             p(word | other)    = Π p(letter | one letter before), over all samples

The confidence is the posterior probability with equal priors. The sum over words is multiplied by
`TEMPER`, because letters are not independent. A text without letters, or one that fits "other"
best, gets no language. Short texts of a language that shares words with a sampled one (Dutch "het
station is") are still confused with it. The caller provides the samples. Tested with sentences on
other subjects than the samples, with other languages, and against hand-computed probabilities.
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

MAX_CHARACTERS = 1_000
"""At most this many characters of a text are read; more would not change the result."""
TEMPER = 0.5
ORDER, OTHER_ORDER = 3, 2
KNOWN_SHARE = 0.5
"""The share of the words of a text that are expected among the samples."""
NUM_LETTERS = 128
"""The assumed number of letters; one that was never seen has this share."""
MAX_WORD = 40
SCRIPTS: Mapping[str, str] = {"HIRAGANA": "ja", "KATAKANA": "ja", "HANGUL": "ko", "CJK": "zh"}
"""The first word of the Unicode name of a letter, and the language it indicates."""
LATIN = "LATIN"
_GAPS = re.compile(r"[^\w]+|[\d_]+")


@dataclass(frozen=True)
class Detected:
    """A language and the probability, 0 to 1, that the text is in it."""

    language: str
    confidence: float


class WordModel:
    """The words of one language: those of the samples, and the spelling of others."""

    def __init__(
        self, texts: Iterable[str], *, order: int = ORDER, knows_words: bool = True
    ) -> None:
        self.order = order
        # Each word once: how words are spelt distinguishes languages; how often a corpus says "dog"
        # does not.
        seen = {word for text in texts for word in _words(text)}
        self.words = seen if knows_words else set()
        self._counts: Counter[str] = Counter()
        for word in seen:
            letters = f" {word} "
            for place in range(1, len(letters)):
                for size in range(1, min(order, place + 1) + 1):
                    self._counts[letters[place - size + 1 : place + 1]] += 1
        self._totals: Counter[str] = Counter()
        self._kinds: Counter[str] = Counter()
        for gram, count in self._counts.items():
            self._totals[gram[:-1]] += count
            self._kinds[gram[:-1]] += 1

    def score(self, word: str) -> float:
        """Natural log-probability of a word with the space after it."""
        letters = f" {word} "
        spelling = math.fsum(
            math.log(
                self.probability(letters[max(0, place - self.order + 1) : place], letters[place])
            )
            for place in range(1, len(letters))
        )
        if not self.words:
            return spelling
        known = KNOWN_SHARE / len(self.words) if word in self.words else 0.0
        return math.log(known + (1 - KNOWN_SHARE) * math.exp(spelling))

    def probability(self, before: str, letter: str) -> float:
        """p(letter | letters before), interpolated with shorter histories down to uniform."""
        shorter = self.probability(before[1:], letter) if before else 1.0 / NUM_LETTERS
        total, kinds = self._totals[before], self._kinds[before]
        return (
            (self._counts[before + letter] + kinds * shorter) / (total + kinds)
            if total
            else shorter
        )


class LanguageDetector:
    """Languages with samples of text; languages with a script of their own need none."""

    def __init__(self, samples: Mapping[str, Sequence[str]]) -> None:
        self._models = {language: WordModel(texts) for language, texts in samples.items()}
        every = (text for texts in samples.values() for text in texts)
        self._other = WordModel(every, order=OTHER_ORDER, knows_words=False)

    def detect(self, text: str) -> list[Detected]:
        """Languages from the most to the least probable; empty if none fits."""
        text = text[:MAX_CHARACTERS]
        scripts = count_scripts(text)
        if not scripts:
            return []
        if scripts["ja"]:  # Japanese is written with Han characters between the kana
            scripts["ja"] += scripts.pop("zh", 0)
        script, count = scripts.most_common(1)[0]
        share = count / scripts.total()
        if script != LATIN:
            return [Detected(script, share)] if script in SCRIPTS.values() else []
        posteriors = self._weigh_words(text)
        if posteriors[None] == max(posteriors.values()):
            return []
        found = [
            Detected(name, share * value) for name, value in posteriors.items() if name is not None
        ]
        return sorted(found, key=lambda one: -one.confidence)

    def probability_of(self, text: str, language: str) -> float | None:
        """The probability that a text is in this language; None if unknown.

        For a language with a script of its own it is the share of letters in that script: a Chinese
        text may contain names in Latin letters. Han characters alone may be Japanese.
        """
        text = text[:MAX_CHARACTERS]
        scripts = count_scripts(text)
        if not scripts:
            return None
        if language in SCRIPTS.values():
            own = scripts[language] + (scripts["zh"] if language == "ja" else 0)
            return 0.0 if language == "zh" and scripts["ja"] else own / scripts.total()
        if language not in self._models:
            return None
        return self._weigh_words(text)[language] if scripts.most_common(1)[0][0] == LATIN else 0.0

    def _weigh_words(self, text: str) -> dict[str | None, float]:
        """The posterior of each language with samples, and of any other (None)."""
        words = _words(text)
        totals: dict[str | None, float] = {None: TEMPER * sum(map(self._other.score, words))}
        totals |= {
            name: TEMPER * sum(map(model.score, words)) for name, model in self._models.items()
        }
        highest = max(totals.values())
        weights = {name: math.exp(total - highest) for name, total in totals.items()}
        whole = sum(weights.values())
        return {name: weight / whole for name, weight in weights.items()}


def count_scripts(text: str) -> Counter[str]:
    """Letters by language (scripts of one language) or by script (LATIN, CYRILLIC …)."""
    names = (
        unicodedata.name(letter, "").split(" ")[0].split("-")[0]
        for letter in text
        if letter.isalpha()
    )
    return Counter(SCRIPTS.get(name, name) for name in names if name)


def _words(text: str) -> list[str]:
    """In lower case, without digits and punctuation, none longer than MAX_WORD."""
    return [
        word[:MAX_WORD]
        for word in _GAPS.sub(" ", unicodedata.normalize("NFC", text).lower()).split()
    ]
