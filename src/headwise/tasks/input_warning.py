"""A text that the model never learned to read: what to say beside its translation, which may be nonsense.

    target_language   the text is in the language that the model writes
    unknown_words     most of its words are not in the training text (`text/known_words.py`), or most of its characters
                      become bytes or the unknown token: this needs nothing but the tokenizer and works for every model

Shared by `headwise translate` and `evaluate`, the server's replies and the page. The text is translated all the same.
Tested with other languages, made-up words, and the model's own language.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from headwise.text.known_words import Reason
from headwise.text.pair import TokenizerPair
from headwise.text.tokenizer import UNKNOWN, WORD_START, Tokenizer

_BYTE = re.compile(r"<0x[0-9A-F]{2}>")


@dataclass(frozen=True)
class InputWarning:
    """A word for programs, and a sentence for people in both languages."""

    code: Reason
    en: str
    zh: str


class InputCheck:
    """Judges texts for one translator."""

    def __init__(self, tokenizers: TokenizerPair, *, source: str, target: str) -> None:
        self._known = tokenizers.known_words
        self._tokenizer = tokenizers.source
        self._strange = find_strange_ids(tokenizers.source)
        self._source, self._target = source, target

    def __call__(self, text: str, ids: Sequence[int]) -> InputWarning | None:
        """What to say of a text with these tokens; None if it looks like the training text."""
        unlike = None if self._known is None else self._known.judge(text)
        if unlike is not None and unlike.reason == "target_language":
            return InputWarning(
                "target_language",
                f"this looks like {self._target}, but the model reads {self._source} and writes {self._target}; "
                "the translation may be nonsense",
                f"这像是 {self._target}，而该模型读 {self._source}、写 {self._target}；译文可能毫无意义",
            )
        if unlike is not None:
            return InputWarning(
                "unknown_words",
                f"{unlike.num_unknown} of the {unlike.num_words} words are rare or missing in the {self._source} text that "
                "the model learned from; the translation may be nonsense",
                f"{unlike.num_words} 个词中有 {unlike.num_unknown} 个在该模型的 {self._source} 训练文本中罕见或没有；"
                "译文可能毫无意义",
            )
        outside, count = self._count_outside(text, ids)
        if 2 * outside <= count:
            return None
        return InputWarning(
            "unknown_words",
            f"{outside} of the {count} characters are outside the vocabulary of the model; the translation may be nonsense",
            f"{count} 个字符中有 {outside} 个不在该模型的词表内；译文可能毫无意义",
        )

    def _count_outside(self, text: str, ids: Sequence[int]) -> tuple[int, int]:
        """Characters that no piece of the text stands for, and all that are no spaces."""
        count = len("".join(text.split()))
        known = self._tokenizer.pieces([number for number in ids if number not in self._strange])
        return max(0, count - len("".join(known).replace(WORD_START, ""))), count


def find_strange_ids(tokenizer: Tokenizer) -> frozenset[int]:
    """The unknown token, and the bytes that stand for characters outside the vocabulary."""
    pieces = tokenizer.pieces(range(tokenizer.size))
    return frozenset({UNKNOWN, *(number for number, piece in enumerate(pieces) if _BYTE.fullmatch(piece))})
