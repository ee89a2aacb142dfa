"""Which language is a text in? First by its script, then, among languages of one script, by its
words and their letters.

    script   kana: Japanese · hangul: Korean · Han without kana: Chinese · Latin: by its words · others: no answer
    words    p(word | language) = ½ · 1/V if the word is among the V words of the samples
                                + ½ · Π p(letter | two letters before), interpolated as Witten & Bell (1991) do
             p(word | other)    = Π p(letter | one letter before), over all samples: any language without samples

The confidence is the posterior probability with equal priors. The sum over words counts at `TEMPER`
of its value, because letters are not independent of each other. A text without letters, and one
that fits "other" best, has no language here: the detector says so and does not name the nearest.
Short texts of a language that shares words with a sampled one (Dutch "het station is") are still
taken for it. The caller hands in the samples. Tested with sentences on other subjects than the
samples', with other languages, and against hand-worked probabilities.
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

MAX_CHARACTERS = 1_000
"""Of a text at most so many are read: more would not change the answer."""
TEMPER = 0.5
ORDER, OTHER_ORDER = 3, 2
KNOWN_SHARE = 0.5
"""Of a text in a language so many words are expected to be among its samples."""
NUM_LETTERS = 128
"""Letters that are assumed to exist: one that was never seen has this share."""
MAX_WORD = 40
SCRIPTS: Mapping[str, str] = {"HIRAGANA": "ja", "KATAKANA": "ja", "HANGUL": "ko", "CJK": "zh"}
"""The first word of a letter's Unicode name, and the language it speaks for."""
LATIN = "LATIN"
_GAPS = re.compile(r"[^\w]+|[\d_]+")


@dataclass(frozen=True)
class Detected:
    """A language and the probability, 0 to 1, that the text is in it."""

    language: str
    confidence: float


class WordModel:
    """The words of one language: those it has seen, and the spelling of those it has not."""

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
        """p(letter | letters before), interpolated with shorter histories down to a uniform choice."""
        shorter = self.probability(before[1:], letter) if before else 1.0 / NUM_LETTERS
        total, kinds = self._totals[before], self._kinds[before]
        return (
            (self._counts[before + letter] + kinds * shorter) / (total + kinds)
            if total
            else shorter
        )


class LanguageDetector:
    """Languages with samples of their text; languages of other scripts need none."""

    def __init__(self, samples: Mapping[str, Sequence[str]]) -> None:
        self._models = {language: WordModel(texts) for language, texts in samples.items()}
        every = (text for texts in samples.values() for text in texts)
        self._other = WordModel(every, order=OTHER_ORDER, knows_words=False)

    def detect(self, text: str) -> list[Detected]:
        """Languages from the most to the least probable; empty where the text tells nothing, or
        none of them fits.
        """
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
        """The probability that a text is in this language, and not in any other; None where that
        cannot be told.

        Of a language with a script of its own it is the share of the letters in that script: a
        Chinese text may name many things in Latin letters. Han characters alone may be Japanese.
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
    """In small letters, without digits and punctuation, none longer than MAX_WORD."""
    return [
        word[:MAX_WORD]
        for word in _GAPS.sub(" ", unicodedata.normalize("NFC", text).lower()).split()
    ]
