"""Makes the table of `headwise compare lineage`, which compares language models from n-grams to
GPT: the questions that all models answer, their answers, and the table as markdown.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwise.language import say
from headwise.tasks.language.language_model import check_sentences, cut_gap

MIN_UNITS = 5


@dataclass(frozen=True)
class Questions:
    """Two sentences of which one is more natural, and a beginning to continue."""

    natural: str
    odd: str
    beginning: str


def is_spaced(lines: Sequence[str]) -> bool:
    """Whether a text has spaces between its words. Chinese mostly has none and is treated character
    by character.
    """
    return 2 * sum(" " in line for line in lines) >= len(lines)


def choose_questions(
    lines: Sequence[str], *, sentences: tuple[str, str] | None = None, beginning: str | None = None
) -> Questions:
    """The caller's questions, or else a line of the text, the same line with its two middle words
    exchanged, and its first half.
    """
    spaced = is_spaced(lines)
    natural = next(
        (line for line in lines if len(_units(line, spaced=spaced)) >= MIN_UNITS), lines[0]
    )
    units = _units(natural, spaced=spaced)
    half = (" " if spaced else "").join(units[: max(1, len(units) // 2)])
    odd = exchange_neighbours(natural, spaced=spaced)
    if sentences is not None:
        natural, odd = check_sentences(sentences)
    return Questions(natural, odd, half if beginning is None else cut_gap(beginning))


def exchange_neighbours(line: str, *, spaced: bool) -> str:
    """The line with its two middle words (characters) exchanged."""
    units = _units(line, spaced=spaced)
    middle = max(0, len(units) // 2 - 1)
    units[middle : middle + 2] = reversed(units[middle : middle + 2])
    return (" " if spaced else "").join(units)


def _units(line: str, *, spaced: bool) -> list[str]:
    return line.split() if spaced else list(line)


@dataclass(frozen=True)
class LineageModel:
    """One model with its measurements and answers."""

    name: str
    perplexity: float | None
    parameters: int
    training_seconds: float
    training_words_per_second: float | None
    """None if no time could be measured."""
    asking_words_per_second: float
    told_apart: float
    """The share of test lines that are more probable than the same line with two neighbouring words
    exchanged."""
    preferred: bool
    next_words: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        return {**self.__dict__, "next_words": list(self.next_words)}


@dataclass(frozen=True)
class Lineage:
    """The table with its questions and settings."""

    directory: Path
    machine: Mapping[str, Any]
    budget: str
    questions: Questions
    models: tuple[LineageModel, ...]

    def as_dict(self) -> dict[str, Any]:
        facts = {"machine": self.machine, "budget": self.budget, **self.questions.__dict__}
        return {**facts, "rungs": [model.as_dict() for model in self.models]}

    def headings(self) -> tuple[str, ...]:
        return (
            say("model", "模型"),
            say("test perplexity", "测试困惑度"),
            say("parameters", "参数"),
            say("seconds of training", "训练秒数"),
            say("words/s learning", "学习 词/秒"),
            say("words/s asked", "提问 词/秒"),
            say("lines told apart", "分辨语句"),
            say("next word", "下一个词"),
        )

    def rows(self) -> list[tuple[str, ...]]:
        return [
            (
                model.name,
                "∞" if model.perplexity is None else f"{model.perplexity:.1f}",
                f"{model.parameters:,}",
                show_seconds(model.training_seconds),
                "–"
                if model.training_words_per_second is None
                else f"{model.training_words_per_second:,.0f}",
                f"{model.asking_words_per_second:,.0f}",
                f"{100 * model.told_apart:.1f} %",
                " · ".join(model.next_words),
            )
            for model in self.models
        ]

    def remarks(self) -> list[str]:
        liked = [model.name for model in self.models if model.preferred]
        names = ", ".join(liked) or say("none", "无")
        natural, odd, beginning = (
            self.questions.natural,
            self.questions.odd,
            self.questions.beginning,
        )
        return [
            self.budget,
            say(
                f"{natural!r} before {odd!r}: {names}", f"认为 {natural!r} 比 {odd!r} 自然：{names}"
            ),
            say(f"next word after {beginning!r}", f"{beginning!r} 的下一个词"),
        ]


def show_seconds(seconds: float) -> str:
    """Seconds with two digits below 10: counting takes hundredths of a second, training minutes."""
    return f"{seconds:,.1f}" if seconds >= 10 else f"{seconds:.2g}"


def as_markdown(lineage: Lineage) -> str:
    table = (lineage.headings(), tuple("---" for _ in lineage.headings()), *lineage.rows())
    facts = " · ".join(f"{name} {value}" for name, value in lineage.machine.items())
    rows = [f"| {' | '.join(cell.replace('|', '¦') for cell in row)} |" for row in table]
    return "\n".join([*rows, "", *(f"- {line}" for line in (*lineage.remarks(), facts))]) + "\n"
