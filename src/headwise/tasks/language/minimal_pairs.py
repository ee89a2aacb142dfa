"""Measures how often a language model prefers a correct sentence to the same sentence with a
spelling error.

The pairs are those of SIGHAN 2015: a learner's Chinese sentence and its correction. Most errors
replace a character by another of the same sound. Even an n-gram model prefers most corrections.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from headwise.data.known.corpora import find_known_text
from headwise.data.text.choices import read_whole_lines
from headwise.data.text_lines import find_text_file
from headwise.errors import DataError
from headwise.tasks.language.answers import judge
from headwise.tasks.language.language_model import LanguageModel

BLOCK = 1024


@dataclass(frozen=True)
class PairScores:
    """Of so many pairs of different sentences, so many were decided rightly; a tie is not."""

    num_pairs: int
    num_right: int
    num_equal: int
    """Pairs of equal sentences, left out."""
    num_unknown: int = 0
    """Pairs with a sentence of mostly unknown words, left out: they cannot be decided."""

    @property
    def accuracy(self) -> float | None:
        """None if no pair could be decided."""
        return self.num_right / self.num_pairs if self.num_pairs else None

    def as_dict(self) -> dict[str, Any]:
        return {
            "accuracy": self.accuracy,
            "pairs": self.num_pairs,
            "right": self.num_right,
            "equal_left_out": self.num_equal,
            "unknown_left_out": self.num_unknown,
        }


def score_pairs(model: LanguageModel, name: str | Path) -> PairScores:
    """Of a tab-separated file (or known:NAME): column 0 as written, column 1 corrected."""
    path = find_text_file(Path(name)) if not str(name).startswith("known:") else _known(str(name))
    equal = 0
    verdicts: Counter[int | str | None] = Counter()
    rows = _read(path)
    while block := list(islice(rows, BLOCK)):
        different = [row for row in block if row[0] != row[1]]
        equal += len(block) - len(different)
        written = model.score([row[0] for row in different])
        corrected = model.score([row[1] for row in different])
        judged = (judge(pair) for pair in zip(written, corrected, strict=True))
        verdicts.update(
            verdict.best if verdict.reason is None else verdict.reason for verdict in judged
        )
    if not verdicts:
        raise DataError(
            "has no pair of two different sentences; give a file with one",
            "没有两句不同的句对；请换一个文件",
            file=path,
        )
    unknown = verdicts.pop("unknown_words", 0)
    return PairScores(verdicts.total(), verdicts[1], equal, unknown)


def _known(name: str) -> Path:
    return find_known_text(name.removeprefix("known:"), "zh").path


def _read(path: Path) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(read_whole_lines(path), start=1):
        cells = line.split("\t")
        if len(cells) != 2:
            raise DataError(
                f"the line has {len(cells)} column(s), two separated by a tab are needed: as "
                "written, corrected",
                f"该行有 {len(cells)} 列，需要以制表符分隔的两列：原句、改正",
                file=path,
                line=number,
            )
        yield cells[0].strip(), cells[1].strip()
