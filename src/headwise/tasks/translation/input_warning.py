"""Warns about texts unlike the training text, whose translations may be wrong.

    warning           condition
    target_language   the text is in the target language of the model
    unknown_words     most of its words or characters did not occur in the training text
    other_language    the text is not in the source language

How the conditions are tested:

    a model with word counts       its words are compared with the counts (`text/known_words.py`)
    a model without word counts    the built-in detector gives the source language a probability
                                   below `DOUBT`. It knows English, German and the scripts of
                                   Chinese, Japanese and Korean; other sources get no warning
    any model                      most characters become bytes or the unknown token

`headwise translate`, `headwise evaluate`, the server and the page use these warnings; the text is
translated in any case. Tested with other languages, made-up words, and the model's own language.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from headwise.tasks.translation.built_in_detector import built_in_detector
from headwise.text.known_words import KnownWords, Reason, find_words
from headwise.text.tokenizer import UNKNOWN, WORD_START, Tokenizer
from headwise.text.tokenizer_pair import TokenizerPair
from headwise.text.word_boundaries import is_unspaced

DOUBT = 0.01
"""A source language of less probability is called another: at most 0.5 % of ordinary lines
(docs/experiments/translation.md)."""
SURE = 0.9
"""A language of at least this probability is named."""
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
        found = (
            self.judge_language(text)
            if self._known is None
            else self._judge_words(self._known, text)
        )
        return found or self._judge_characters(text, ids)

    def _judge_words(self, known: KnownWords, text: str) -> InputWarning | None:
        unlike = known.judge(text)
        if unlike is None:
            return None
        if unlike.reason == "target_language":
            return self._name_language("target_language", self._target)
        noun, noun_zh = _name_units(text)
        return InputWarning(
            "unknown_words",
            f"{_count(unlike.num_unknown, unlike.num_words, noun)} rare or missing in the "
            f"{self._source} text that the model learned from; the translation may be nonsense",
            f"{unlike.num_words} 个{noun_zh}中有 {unlike.num_unknown} 个在该模型的 {self._source} "
            "训练文本中罕见或没有；译文可能毫无意义",
        )

    def judge_language(self, text: str) -> InputWarning | None:
        """For models that were written before there were counts of words."""
        detector = built_in_detector()
        probability = detector.probability_of(text, _base(self._source))
        if probability is None or probability >= DOUBT:
            return None
        best = next((one.language for one in detector.detect(text) if one.confidence >= SURE), None)
        if best is None:
            return InputWarning(
                "other_language",
                f"this does not look like {self._source}, the language that the model reads; "
                "the translation may be nonsense",
                f"这不像是 {self._source}，而该模型只读 {self._source}；译文可能毫无意义",
            )
        if best == _base(self._target):
            return self._name_language("target_language", self._target)
        return self._name_language("other_language", best)

    def _name_language(self, code: Reason, language: str) -> InputWarning:
        return InputWarning(
            code,
            f"this looks like {language}, but the model reads {self._source} and writes "
            f"{self._target}; the translation may be nonsense",
            f"这像是 {language}，而该模型读 {self._source}、写 {self._target}；译文可能毫无意义",
        )

    def _judge_characters(self, text: str, ids: Sequence[int]) -> InputWarning | None:
        outside, count = self._count_outside(text, ids)
        if 2 * outside <= count:
            return None
        return InputWarning(
            "unknown_words",
            f"{_count(outside, count, 'character')} outside the vocabulary of the model; "
            "the translation may be nonsense",
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
    return frozenset(
        {UNKNOWN, *(number for number, piece in enumerate(pieces) if _BYTE.fullmatch(piece))}
    )


def _base(language: str) -> str:
    """`zh` of `zh-Hans` and `zh_CN`."""
    return language.lower().replace("_", "-").split("-")[0]


def _name_units(text: str) -> tuple[str, str]:
    """What `find_words` counts: words, and single characters where a script writes no spaces."""
    words = find_words(text)
    characters = sum(is_unspaced(word) for word in words)
    if characters == len(words):
        return "character", "字"
    return ("word or character", "词或字") if characters else ("word", "词")


def _count(part: int, whole: int, noun: str) -> str:
    """`3 of the 4 words are`, `the only word is`; `part` is more than half of the whole."""
    plural = " or ".join(f"{one}s" for one in noun.split(" or "))
    return f"the only {noun} is" if whole == 1 else f"{part} of the {whole} {plural} are"
