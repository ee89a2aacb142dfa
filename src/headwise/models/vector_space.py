"""Uses word vectors: finds the words nearest to a word, and calculates with words (king - man +
woman).

Nearness is the cosine, the product of vectors of length 1. An expression is the sum of its words'
unit vectors with their signs. The words it names are left out of its answers, as in Mikolov et al.
(2013, "Linguistic regularities").

    nearest(q) = argmax over words w not in q of   q·w / |q||w|

One-hot vectors are the other extreme: any two different words have cosine 0, so no word is nearer
than another.

Tested against: a double loop, gensim's most_similar, the smallest and the largest numbers there
are.
"""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from headwise.errors import UsageError


@dataclass(frozen=True)
class Neighbour:
    """A word and its cosine with the query."""

    word: str
    cosine: float


ANALOGY_WORDS = 100_000_000
"""Fewer words than this are too few for sums such as king - man + woman
(Mikolov et al. 2013, table 2)."""


class VectorSpace:
    """Words with one vector each, in the order of their frequency where that is known.

    `text_words`: how many words of text they were trained on; None where that is not known.
    """

    def __init__(
        self, words: Sequence[str], vectors: np.ndarray, *, text_words: int | None = None
    ) -> None:
        self.text_words = text_words
        assert vectors.shape[:-1] == (len(words),), "one vector a word"
        self.words, self.vectors = tuple(words), np.ascontiguousarray(vectors, dtype=np.float32)
        self.numbers = {word: number for number, word in enumerate(self.words)}
        assert len(self.numbers) == len(self.words), "words must be distinct"

    @cached_property
    def unit_vectors(self) -> np.ndarray:
        """Each vector at length 1; a zero vector stays zero, near to nothing."""
        # In double precision, where the square of no float32 is lost: in single, vectors below
        # 1e-20 or above 1e19 would have no length.
        lengths = np.sqrt(np.einsum("wd,wd->w", self.vectors, self.vectors, dtype=np.float64))[
            :, None
        ]
        return np.divide(
            self.vectors,
            np.where(lengths == 0, 1, lengths),
            out=np.empty_like(self.vectors),
            casting="same_kind",
        )

    @property
    def dim(self) -> int:
        return self.vectors.shape[1]

    def number_of(self, word: str) -> int:
        """The row of a word; an unknown one is an error that names the nearest spelling."""
        number = self.numbers.get(word, self.numbers.get(word.lower()))
        if number is None:
            near = difflib.get_close_matches(word.lower(), self.words, n=3, cutoff=0.6)
            hint_en = f"did you mean {', '.join(near)}? " if near else ""
            hint_zh = f"是否想写 {'、'.join(near)}？" if near else ""
            raise UsageError(
                f"{word!r} is not among the {len(self.words):,} words of this model; "
                f"{hint_en}give a word of its training text",
                f"模型的 {len(self.words):,} 个词中没有 {word!r}；{hint_zh}请给出训练文本中的词",
            )
        return number

    def nearest(self, expression: str, *, num_words: int = 10) -> list[Neighbour]:
        """The words nearest to a word or to an expression such as "king - man + woman"."""
        terms = [(sign, self.number_of(word)) for sign, word in parse_expression(expression)]
        query = sum(sign * self.unit_vectors[number] for sign, number in terms)
        length = float(np.linalg.norm(query))
        cosines = self.unit_vectors @ query / (length or 1.0)
        cosines[[number for _, number in terms]] = -np.inf
        num_words = min(num_words, len(self.words) - len({number for _, number in terms}))
        best = np.argsort(-cosines, kind="stable")[: max(0, num_words)]
        return [Neighbour(self.words[number], float(cosines[number])) for number in best]

    def is_too_small_for(self, expression: str) -> bool:
        """Whether this is a sum of words, and the training text is known to be too short."""
        return (
            self.text_words is not None
            and self.text_words < ANALOGY_WORDS
            and len(parse_expression(expression)) > 1
        )

    def cosine(self, first: str, second: str) -> float:
        """How near two words are."""
        return float(
            self.unit_vectors[self.number_of(first)] @ self.unit_vectors[self.number_of(second)]
        )


def parse_expression(text: str) -> list[tuple[int, str]]:
    """Signs and words: words with + or - between them, each set off by spaces."""
    terms: list[tuple[int, str]] = []
    sign: int | None = 1
    for piece in text.split():
        if piece in ("+", "-", "−"):
            if sign is not None and terms:
                raise _wrong_expression(
                    text, f"{piece!r} follows a sign", f"{piece!r} 前面又是符号"
                )
            sign = 1 if piece == "+" else -1
        elif sign is None:
            raise _wrong_expression(text, f"{piece!r} follows a word", f"{piece!r} 前面又是词")
        else:
            terms.append((sign, piece))
            sign = None
    if sign is not None:
        raise _wrong_expression(text, "it ends without a word", "末尾缺少词")
    return terms


def _wrong_expression(text: str, en: str, zh: str) -> UsageError:
    return UsageError(
        f"{text!r:.80} cannot be read ({en}); give one word, or words with + and - between "
        "spaces: king - man + woman",
        f"无法理解 {text!r:.80}（{zh}）；请给出一个词，或以空格隔开的 + 与 - 连接多个词："
        "king - man + woman",
    )
