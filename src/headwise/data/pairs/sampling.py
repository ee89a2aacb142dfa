"""Draws uniform samples of the training pairs in one pass over the corpora.

They are used to learn a vocabulary, to plan row lengths and to count words. Tested through
`preparation.py`.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from headwise.data.pairs.choices import DataSettings, read_pairs
from headwise.data.pairs.filtering import FilterSettings, check_text
from headwise.data.pairs.parallel_files import Pair
from headwise.text.choices import Reservoir, SentencePieceSettings, TextSettings

Progress = Callable[[str, int], None]
"""Called with (stage, pairs so far)."""
_BLOCK = 8192
_PLANNED_PAIRS = 20_000
_SURVEY_REPORT = 1 << 20

_Seen = tuple[str, str, str | None]
"""A pair without file and line: Python does not garbage-collect plain tuples of text, and there are
millions."""


@dataclass(frozen=True)
class Survey:
    """The samples: one for learning sub-words, one for planning rows and counting words."""

    learnt: list[tuple[str, str]]
    planned: list[tuple[str, str]]


def survey_corpora(
    data: DataSettings, text: TextSettings, *, seed: int, progress: Progress | None = None
) -> Survey:
    """One pass over the training corpora; memory is bounded by `text.sample`."""
    learnt = Reservoir[_Seen](
        text.sample if isinstance(text, SentencePieceSettings) else 0, seed=seed
    )
    planned = Reservoir[_Seen](_PLANNED_PAIRS, seed=seed)
    done = 0
    for corpus in data.train:
        for block in cut_blocks(read_pairs(data, corpus)):
            seen = [(pair.source, pair.target, pair.problem) for pair in block]
            learnt.add(seen)
            planned.add(seen)
            done += len(block)
            if progress is not None and done >= _SURVEY_REPORT and done % _SURVEY_REPORT < _BLOCK:
                progress("survey", done)
    return Survey(_usable(learnt.kept, data.filter), _usable(planned.kept, data.filter))


def _usable(pairs: Iterable[_Seen], settings: FilterSettings) -> list[tuple[str, str]]:
    checked = (
        check_text(Pair(source, target, "", 0, problem), settings)
        for source, target, problem in pairs
    )
    return [(clean.source, clean.target) for reason, clean in checked if reason is None]


def cut_blocks(pairs: Iterator[Pair]) -> Iterator[list[Pair]]:
    while block := list(islice(pairs, _BLOCK)):
        yield block
