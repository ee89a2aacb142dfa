"""Translates a file line by line, with a rule for lines that are too long for the model.

    split     translate its sentences one by one and join them again; a sentence that is too long
              itself is halved at clauses or between words, until each half is no longer than the
              model's training rows (data.row_tokens)
    empty     leave its translation empty
    refuse    stop with an error that names file and line

The translation of line n is always on line n. Warnings name the lines that were not translated as a
whole, and the lines unlike the training text (input_warning.py). The first `MAX_TOLD` are named by
file and line, the others only counted. Where a test set is measured, lines unlike the training text
are counted in one sentence at most (`unlike`), because nobody reads such notes one by one. A line
with more bytes than are held in memory (`data/text_lines.py`) cannot be split; it is left empty or
refused.

Tested against: the same sentences on lines of their own; lines that fit equal the translator's.
"""

import logging
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

from headwise.data.text_lines import MAX_LINE_BYTES, find_text_file
from headwise.decoding.choices import DecodingSettings
from headwise.language import say
from headwise.tasks.text_input import STANDARD_INPUT, line_too_long, read_lines_or_none
from headwise.tasks.translation.drafting_speed import DraftingSpeed
from headwise.tasks.translation.input_warning import InputWarning
from headwise.tasks.translation.source_sentences import (
    SourceSentence,
    explain_length,
    join_candidates,
)
from headwise.tasks.translation.translator import Translation, Translator
from headwise.text.phrase_matching import on_one_line
from headwise.text.sentence_splitting import SplitText, halve, split_text

logger = logging.getLogger(__name__)

TooLong = Literal["split", "empty", "refuse"]
TellUnlike = Literal["each", "counted", "never"]
"""How the lines unlike the training text are told: one by one, in one sentence, or not at all."""
MAX_TOLD = 10


class Line(NamedTuple):
    """A line, its file and its number; no text if it is too long to be read at all."""

    text: str | None
    file: str
    number: int


def read_places(path: Path | None, *, once: bool = False) -> Iterator[Line]:
    """The lines of a file, or of standard input, with their places. `once`: it may be a pipe."""
    found = None if path is None else find_text_file(path)
    lines = read_lines_or_none(found, once=once)
    name = str(found or STANDARD_INPUT)
    return (Line(text, name, number) for number, text in enumerate(lines, start=1))


class _Waiting(NamedTuple):
    """A line whose sentences are being translated."""

    line: Line
    split: SplitText | None
    num_sentences: int
    change: Literal["split", "empty"] | None


def translate_lines(
    translator: Translator,
    lines: Iterable[Line],
    decoding: DecodingSettings | None = None,
    *,
    too_long: TooLong = "split",
    unlike: TellUnlike = "each",
    alignment: bool = False,
    attention: bool = False,
    votes: bool = False,
) -> Iterator[Translation]:
    """One translation for each line, in order, with the memory of one window."""
    waiting: deque[_Waiting] = deque()
    notes = _Notes(translator.longest_source.tokens, unlike)

    def sentences() -> Iterator[SourceSentence]:
        for line in lines:
            found, split, change = _prepare(translator, line, too_long, notes)
            waiting.append(_Waiting(line, split, len(found), change))
            yield from found

    parts: list[Translation] = []
    for part in translator.stream_sentences(
        sentences(), decoding, alignment=alignment, attention=attention, votes=votes
    ):
        parts.append(part)
        if len(parts) == waiting[0].num_sentences:
            done = waiting.popleft()
            notes.num_lines += 1
            joined = _join(translator, done, parts)
            if joined.warning is not None:
                notes.tell_unlike(done.line, joined.warning)
            yield replace(joined, parts=tuple(parts), too_long=done.change)
            parts = []
    notes.tell_rest()


_Prepared = tuple[list[SourceSentence], SplitText | None, Literal["split", "empty"] | None]


def _prepare(translator: Translator, line: Line, too_long: TooLong, notes: "_Notes") -> _Prepared:
    """What is translated for a line: the whole line, its sentences, or nothing."""
    limit = translator.longest_source
    if line.text is None:
        if too_long == "refuse":
            raise line_too_long(line.file, line.number)
        notes.tell_unreadable(line)
        return [SourceSentence("", ())], None, "empty"
    tokens = translator.encode(line.text)
    if len(tokens) < limit.tokens:
        return [SourceSentence(line.text, tokens)], None, None
    match too_long:
        case "refuse":
            raise explain_length(len(tokens) + 1, limit, file=line.file, line=line.number)
        case "empty":
            notes.tell_empty(line, len(tokens) + 1)
            return [SourceSentence("", ())], None, "empty"
        case "split":
            sentences = split_text(line.text, language=translator.source_language)
            pieces = _halve_until_they_fit(translator, sentences)
            notes.tell_split(line, len(tokens) + 1, sentences=sentences, pieces=pieces)
            return (
                [
                    SourceSentence(piece, translator.encode(piece), is_continued=number > 0)
                    for number, piece in enumerate(pieces.sentences)
                ],
                pieces,
                "split",
            )


def _halve_until_they_fit(translator: Translator, split: SplitText) -> SplitText:
    short = min(translator.longest_source.tokens, translator.recipe.data.row_tokens)
    pieces: list[str] = []
    gaps = [split.gaps[0]]
    for sentence, gap in zip(split.sentences, split.gaps[1:], strict=True):
        todo = [(sentence, gap)]
        is_whole = translator.fits(sentence)
        while todo:
            piece, after = todo.pop()
            if is_whole or len(piece) == 1 or len(translator.encode(piece)) < short:
                pieces.append(piece)
                gaps.append(after)
            else:
                left, between, right = halve(piece)
                todo += [(right, after), (left, between)]
    return SplitText(tuple(pieces), tuple(gaps))


def _join(translator: Translator, waiting: _Waiting, parts: Sequence[Translation]) -> Translation:
    text, split = waiting.line.text or "", waiting.split
    if split is None:
        return replace(parts[0], source=text)
    ranks = zip(*(part.n_best for part in parts), strict=False)  # as many as every part has
    n_best = (join_candidates(split, rank, target=translator.target_language) for rank in ranks)
    links: list[tuple[int, int]] = []
    sources: list[str] = []
    targets: list[str] = []
    for part in parts:
        links += [
            (source + len(sources), target + len(targets))
            for source, target in part.alignment or ()
        ]
        sources += part.source_pieces
        targets += part.target_pieces
    return Translation(
        text,
        tuple(replace(one, text=on_one_line(one.text).strip()) for one in n_best),
        None if parts[0].alignment is None else tuple(links),
        source_pieces=tuple(sources),
        target_pieces=tuple(targets),
        warning=translator.check_input(text, translator.encode(text)),
        speed=DraftingSpeed.sum_of(part.speed for part in parts),
        votes=None
        if parts[0].votes is None
        else tuple(one for part in parts for one in part.votes or ()),
    )


class _Notes:
    """Warnings about lines that are too long or unlike the training text."""

    def __init__(self, limit: int, unlike: TellUnlike) -> None:
        self._limit = limit
        self._unlike = unlike
        self._untold: Counter[str] = Counter()
        self._num_told = 0
        self.num_lines = 0

    def tell_split(
        self, line: Line, num_tokens: int, *, sentences: SplitText, pieces: SplitText
    ) -> None:
        count, cut = len(pieces.sentences), len(pieces.sentences) - len(sentences.sentences)
        more = (
            (f", {cut:,} of them cut inside a sentence", f"，其中 {cut:,} 处切在句内")
            if cut
            else ("", "")
        )
        self._tell(
            line,
            "split",
            f"has {num_tokens:,} tokens, at most {self._limit:,} are read at once; translated in "
            f"{count:,} pieces{more[0]}",
            f"有 {num_tokens:,} 个词元，一次最多读 {self._limit:,} 个；"
            f"已分 {count:,} 段翻译{more[1]}",
        )

    def tell_empty(self, line: Line, num_tokens: int) -> None:
        self._tell(
            line,
            "empty",
            f"has {num_tokens:,} tokens, at most {self._limit:,} are read at once; its translation "
            "is left empty",
            f"有 {num_tokens:,} 个词元，一次最多读 {self._limit:,} 个；译文留空",
        )

    def tell_unreadable(self, line: Line) -> None:
        self._tell(
            line,
            "empty",
            f"is longer than {MAX_LINE_BYTES:,} bytes and is not read; its translation is left "
            "empty: put one sentence on a line",
            f"超过 {MAX_LINE_BYTES:,} 字节，未读入；译文留空：请每行只放一句",
        )

    def tell_unlike(self, line: Line, warning: InputWarning) -> None:
        match self._unlike:
            case "each":
                self._tell(line, "unlike", warning.en, warning.zh)
            case "counted":
                self._untold["unlike"] += 1
            case "never":
                pass

    def _tell(self, line: Line, change: str, en: str, zh: str) -> None:
        if self._num_told == MAX_TOLD:
            self._untold[change] += 1
            return
        self._num_told += 1
        logger.warning("%s", f"{line.file}:{line.number}: {say(en, zh)}")

    def tell_rest(self) -> None:
        for change, count in self._untold.items():
            was = "line was" if count == 1 else "lines were"
            match change:
                case "split":
                    en, zh = f"{was} too long: translated in pieces", "行过长：分段翻译"
                case "empty":
                    en, zh = f"{was} too long: left empty", "行过长：译文留空"
                case _ if self._unlike == "counted":
                    self._tell_count_of_unlike(count)
                    continue
                case _:
                    en = (
                        f"{was} unlike the text that this model learned from: the translation may "
                        "be nonsense"
                    )
                    zh = "行与该模型的训练文本不相像：译文可能毫无意义"
            logger.warning("%s", say(f"{count:,} more {en}", f"另有 {count:,} {zh}"))

    def _tell_count_of_unlike(self, count: int) -> None:
        are = "line is" if self.num_lines == 1 else "lines are" if count > 1 else "lines is"
        logger.warning(
            "%s",
            say(
                f"{count:,} of the {self.num_lines:,} {are} unlike the text that this model "
                "learned from: the translation may be nonsense",
                f"{self.num_lines:,} 行中有 {count:,} 行与该模型的训练文本不相像：译文可能毫无意义",
            ),
        )
