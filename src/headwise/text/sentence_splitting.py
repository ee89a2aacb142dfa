"""Splits a text into sentences and gaps, so that a sentence translator can translate a page.

    "Hi. It rains.\\n\\n再见。好。"  →  Hi. | It rains. | 再见。 | 好。

A sentence ends at the end of a line; at 。！？ and similar characters, closing quotes included; and
at . ! ? … followed by a space, unless the next word begins in lower case or the stop belongs to an
abbreviation, an initial (J. Smith) or a German ordinal (3. Mai). A sentence that is too long for a
model is halved: at a clause, between words, or in the middle. One pass from left to right without
regular expressions: time is linear. Tested: hand-made examples in three languages, the law that
sentences and gaps together are the text, and time on hostile texts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

_FULL_STOPS = frozenset("。！？｡‼⁇⁈⁉")
_STOPS = frozenset(".!?…")
_CLOSERS = frozenset("\"'”’»«)]}）」』】〉》›‹“‘")
_FULL_CLOSERS = frozenset("”’)）」』】〉》")
"""In scripts without spaces between sentences “ opens the next one; in German it closes."""
_AFTER_STOP = _STOPS | _FULL_STOPS | _CLOSERS
_AFTER_FULL_STOP = _STOPS | _FULL_STOPS | _FULL_CLOSERS
_CLAUSES = frozenset(",;:)–—")
_FULL_CLAUSES = frozenset("，；：、")
_UNSPACED = ("zh", "ja")
"""Languages that write no space between sentences."""

_ENGLISH = (
    "mr mrs ms dr prof st sr jr vs etc e.g i.e cf no fig vol pp inc ltd co al approx dept est"
)
_GERMAN = "bzw z.b d.h u.a usw ca hr fr nr str ggf inkl evtl sog vgl abs bd s.o s.u z.t u.s.w"
ABBREVIATIONS = frozenset(f"{_ENGLISH} {_GERMAN}".split())


@dataclass(frozen=True)
class SplitText:
    """`gaps[i]` precedes `sentences[i]`, the last gap follows all of them; gaps are white space."""

    sentences: tuple[str, ...]
    gaps: tuple[str, ...]

    def join(self, translated: Sequence[str], *, target: str) -> str:
        """Put other sentences in the same positions, separated as the target language requires."""
        assert len(translated) == len(self.sentences)
        parts = [self.gaps[0]]
        for number, sentence in enumerate(translated):
            gap = self.gaps[number + 1]
            is_last = number + 1 == len(translated)
            if not is_last and gap.strip(" \u3000") == "":
                gap = "" if target.split("-")[0] in _UNSPACED else " "
            parts += [sentence, gap]
        return "".join(parts)


def split_text(text: str, *, language: str) -> SplitText:
    """Sentences and gaps, which together are the text."""
    sentences: list[str] = []
    gaps: list[str] = []
    start = 0
    while start < len(text):
        begin = start
        while begin < len(text) and text[begin].isspace():
            begin += 1
        if begin == len(text):
            break
        end = _sentence_end(text, begin, is_german=language.split("-")[0] == "de")
        gaps.append(text[start:begin])
        sentences.append(text[begin:end])
        start = end
    return SplitText(tuple(sentences), (*gaps, text[start:]))


def halve(sentence: str) -> tuple[str, str, str]:
    """Two parts and the white space between them: cut after a comma or a similar character in the
    middle half, else at a space, else in the middle.

    The sentence has at least two characters and no white space at its ends.
    """
    middle, reach = len(sentence) // 2, len(sentence) // 4
    nearby = sorted(
        range(max(1, middle - reach), middle + reach + 1), key=lambda place: abs(place - middle)
    )
    clauses = (place for place in nearby if _ends_clause(sentence, place))
    spaces = (place for place in nearby if sentence[place].isspace())
    cut = next(clauses, None) or next(spaces, None) or middle
    left, right = sentence[:cut].rstrip(), sentence[cut:].lstrip()
    return left, sentence[len(left) : len(sentence) - len(right)], right


def _ends_clause(text: str, place: int) -> bool:
    """Whether a clause ends right before this index."""
    return text[place - 1] in _FULL_CLAUSES or (
        text[place - 1] in _CLAUSES and text[place].isspace()
    )


def _sentence_end(text: str, begin: int, *, is_german: bool) -> int:
    """The index after a sentence that begins at `begin`, without the white space that follows."""
    place, word = begin, begin
    while place < len(text):
        letter = text[place]
        if letter in "\n\r\v\f\u0085\u2028\u2029":
            return _without_trailing_space(text, begin, place)
        if letter in _FULL_STOPS or letter in _STOPS:
            after = place + 1
            following = _AFTER_FULL_STOP if letter in _FULL_STOPS else _AFTER_STOP
            while after < len(text) and text[after] in following:
                after += 1
            if letter in _FULL_STOPS or _ends_here(text, word, place, after, is_german=is_german):
                return after
            place = after
            continue
        if letter.isspace():
            word = place + 1
        place += 1
    return _without_trailing_space(text, begin, place)


def _ends_here(text: str, word: int, stop: int, after: int, *, is_german: bool) -> bool:
    """Whether a full stop at `stop`, the last character of the word at `word`, ends the
    sentence.
    """
    if after < len(text) and not text[after].isspace():
        return False
    following = after
    while following < len(text) and text[following] in " \t\u3000":
        following += 1
    if following < len(text) and text[following].islower():
        return False
    if text[stop] != "." or after > stop + 1:
        return True
    before = text[word:stop].lstrip("(\"'„“«»")
    if before.lower() in ABBREVIATIONS or (
        len(before) == 1 and before.isalpha() and before.isupper() and before != "I"
    ):
        return False
    return not (is_german and before.isdigit() and len(before) <= 2)


def _without_trailing_space(text: str, begin: int, end: int) -> int:
    while end > begin and text[end - 1].isspace():
        end -= 1
    return end
