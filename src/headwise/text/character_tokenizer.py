"""Character tokenizer: every Unicode character is one token, the space too.

It has the smallest vocabulary and the longest sequences (Lee et al. 2017, "Fully character-level
neural machine translation"); for Chinese it is close to a word vocabulary. It is reversible if
every character is known.

Tested against: decode(encode(x)) == x for texts over the learnt characters.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from headwise.errors import DataError
from headwise.text.tokenizer import NUM_SPECIAL, UNKNOWN, UNKNOWN_TEXT, WORD_START, escape
from headwise.text.vocabulary import Vocabulary, load_vocabulary, most_frequent


class CharacterTokenizer:
    reversible = False  # a character that was never seen becomes the unknown token

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary

    @property
    def size(self) -> int:
        return len(self.vocabulary)

    def encode(self, text: str) -> list[int]:
        return [self.vocabulary.id_of(character) for character in text]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return [self.encode(text) for text in texts]

    def decode(self, ids: Sequence[int]) -> str:
        kept = (number for number in ids if number >= UNKNOWN)
        return "".join(
            UNKNOWN_TEXT if number == UNKNOWN else self.vocabulary.entry_of(number)
            for number in kept
        )

    def pieces(self, ids: Sequence[int]) -> list[str]:
        names = (self.vocabulary.entry_of(number) for number in ids)
        return [WORD_START if name == " " else name for name in names]

    def surfaces(self) -> list[bytes]:
        known = (
            UNKNOWN_TEXT,
            *(self.vocabulary.entry_of(number) for number in range(NUM_SPECIAL, self.size)),
        )
        return [
            b"",
            b"",
            b"",
            *(escape(character).encode("utf-8", "surrogatepass") for character in known),
        ]

    def save(self, directory: Path) -> None:
        self.vocabulary.save(directory, {"kind": "characters"})


def learn_characters(lines: Iterable[str], *, size: int, min_count: int) -> CharacterTokenizer:
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(line)
    if not counts:
        raise DataError(
            "the text to learn the characters from is empty; give a corpus with at least one line",
            "用于学习字表的文本为空；请提供至少一行的语料",
        )
    return CharacterTokenizer(most_frequent(counts, size=size, min_count=min_count))


def load_characters(directory: Path) -> CharacterTokenizer:
    return CharacterTokenizer(load_vocabulary(directory, kind="characters")[0])
