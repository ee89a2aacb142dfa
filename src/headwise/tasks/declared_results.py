"""`Result`: what a task declares of a number that it reports: name, unit, which way is better.

    metrics = {"accuracy": Result(("accuracy", "准确率"), "share", better="higher")}
    results = {"examples": Result(("examples", "样本"))}

A recipe type declares both (`AnyRecipe.metrics`, `AnyRecipe.results`). Whoever shows a number of a
run reads the declaration: the table at the end of a training and the model card (result_rows.py),
the line on the terminal, `/v1/runs` and the page, the check of `training.keep.best`, and
comparisons (comparison_metrics.py). So a new task adds its names in its own folder. Nothing here
loads torch.

Tested by `tests/promises`: whatever a run of a task records is declared.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from headwise.language import clock, say
from headwise.settings.kind import Words, by_language

Choose = Callable[[str, str], str]
"""Takes a text in English and in Chinese, and returns one of them."""
Unit = Literal[
    "count",
    "counts",
    "time",
    "memory",
    "switch",
    "share",
    "loss",
    "perplexity",
    "score",
    "word",
]
"""How a value is written, and which metrics share the scale of a figure: a `share` is between 0 and
1, a `score` between 0 and 100."""


@dataclass(frozen=True)
class Result:
    """One number of a run."""

    title: Words
    unit: Unit = "count"
    better: Literal["higher", "lower"] | None = None
    """Which way is better; None where neither is."""
    help: Words | None = None
    """A sentence that explains it, which the page shows below its curve."""
    detail: Words | None = None
    """What is written beside it, with the names of other numbers of the same part in braces."""
    is_validated: bool = True
    """Of a metric: whether each validation of a training measures it."""

    def as_dict(self) -> dict[str, Any]:
        """As plain data in both languages."""
        return {
            "title": by_language(self.title),
            "unit": self.unit,
            "better": self.better,
            "help": None if self.help is None else by_language(self.help),
        }


Results = Mapping[str, Result]
"""Declarations by the keys of `results.json` and of the log."""


def write_value(value: Any, unit: Unit, choose: Choose = say) -> str:
    """A value with its unit; JSON has no infinity, so an infinite value is stored as None."""
    if value is None:
        return "∞"
    match unit:
        case "time":
            # Below ten seconds the clock says nothing.
            return clock(value) if value >= 9.5 else choose(f"{value:.2g} s", f"{value:.2g} 秒")
        case "memory":
            return f"{value:,.0f} MiB" if value < 10240 else f"{value / 1024:,.1f} GiB"
        case "switch":
            return choose("yes", "是") if value else choose("no", "否")
        case "counts":
            return ", ".join(f"{one:,}" for one in value)
        case "count":
            return f"{value:,}"
        case "share":
            return f"{100 * value:.2f} %"
        case "loss":
            return f"{value:,.3f}"
        case "perplexity" | "score":
            return f"{value:,.2f}"
        case "word":
            return str(value)


def mean_loss(title: Words = ("loss", "损失")) -> Result:
    """The mean loss of a token, or of another item."""
    return Result(title, "loss", "lower")


def perplexity(title: Words = ("perplexity", "困惑度"), detail: Words | None = None) -> Result:
    """e to the mean loss of a token."""
    return Result(
        title,
        "perplexity",
        "lower",
        help=(
            "Of the validation set: the model's uncertainty, as a number of equally likely words.",
            "验证集上：模型的不确定程度，以等可能的词的个数表示。",
        ),
        detail=detail,
    )


def accuracy(help: Words, detail: Words | None = None) -> Result:
    """The share of answers that are right."""
    return Result(("accuracy", "准确率"), "share", "higher", help=help, detail=detail)
