"""Reads lists of candidate translations, as `headwise translate --n-best N --json` writes them.

    {"source": "…", "n_best": [{"text": "…", "score": -0.41, …}, …], …}        one line a sentence

Other keys are not read. A line of another form is an error with its number.
Tested: what the command writes; every missing or wrong key.
"""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwise.errors import DataError
from headwise.tasks.text_input import STANDARD_INPUT, read_text_lines

MAX_CANDIDATES = 1024


@dataclass(frozen=True)
class CandidateList:
    """A sentence and its candidates, best first, with the scores of the search."""

    source: str
    texts: tuple[str, ...]
    scores: tuple[float, ...]


def read_nbest(path: Path | None) -> Iterator[CandidateList]:
    """The lists of a file; None: of standard input."""
    number = 0
    for number, line in enumerate(read_text_lines(path, once=True), start=1):
        found = _parse(line)
        if found is None:
            raise DataError(
                f"line {number:,} is no list of candidates (an object with source, and n_best of "
                f"1 to {MAX_CANDIDATES:,} objects with text and score); write the lists with "
                "`headwise translate --n-best 10 --json`",
                f"第 {number:,} 行不是候选列表（应含 source，以及 1 至 {MAX_CANDIDATES:,} 个带有 "
                "text 与 score 的 n_best）；请用 `headwise translate --n-best 10 --json` 生成",
                file=path or STANDARD_INPUT,
            )
        yield found
    if number == 0:
        raise DataError(
            "is empty; write lists with `headwise translate --n-best 10 --json`",
            "是空的；请用 `headwise translate --n-best 10 --json` 生成候选列表",
            file=path or STANDARD_INPUT,
        )


def _parse(line: str) -> CandidateList | None:
    try:
        given = json.loads(line)
    except (ValueError, RecursionError):
        return None
    source = given.get("source") if isinstance(given, dict) else None
    listed = given.get("n_best") if isinstance(given, dict) else None
    if not isinstance(source, str) or not isinstance(listed, list):
        return None
    if not 0 < len(listed) <= MAX_CANDIDATES or not all(map(_is_candidate, listed)):
        return None
    texts = tuple(str(one["text"]) for one in listed)
    return CandidateList(source, texts, tuple(float(one["score"]) for one in listed))


def _is_candidate(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("text"), str):
        return False
    score = value.get("score")
    return isinstance(score, int | float) and not isinstance(score, bool) and math.isfinite(score)
