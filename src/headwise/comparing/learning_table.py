"""Builds the table of `headwise compare learning`: a row for each model, the baseline first.

Tested with tables made by hand: cells, JSON.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headwise.evaluation.significance import Comparison
from headwise.evaluation.translation import Score
from headwise.language import say


@dataclass(frozen=True)
class LearningRow:
    """One model."""

    model: str
    path: str
    objective: str
    greedy: Score
    own: Score
    own_search: str
    difference: Comparison | None
    """Greedy search against that of the first model; None for the first itself."""
    after_wrong: float
    updates: int | None
    seconds: float | None
    """Of training; None if the bundle does not say."""

    def as_dict(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "path": self.path,
            "objective": self.objective,
            "bleu_greedy": self.greedy.as_dict(),
            "own_search": self.own_search,
            "bleu_own": self.own.as_dict(),
            "difference": None if self.difference is None else self.difference.as_dict(),
            "bleu_after_wrong": self.after_wrong,
            "updates": self.updates,
            "training_seconds": self.seconds,
        }


@dataclass(frozen=True)
class LearningComparison:
    """All models, and on what they were compared."""

    machine: Mapping[str, Any]
    test: str
    num_sentences: int
    rows: tuple[LearningRow, ...]

    def as_dict(self) -> dict[str, Any]:
        return {
            "machine": dict(self.machine),
            "test": self.test,
            "sentences": self.num_sentences,
            "rows": [row.as_dict() for row in self.rows],
        }

    def headings(self) -> tuple[str, ...]:
        return (
            say("model", "模型"),
            say("learnt by", "学习方式"),
            say("BLEU, greedy", "BLEU，贪心"),
            say("difference", "差"),
            "p",
            say("BLEU, own search", "BLEU，配方的搜索"),
            say("after a wrong word", "错词之后"),
            say("updates", "更新次数"),
            say("training", "训练用时"),
        )

    def cells(self) -> list[tuple[str, ...]]:
        return [
            (
                row.model,
                row.objective,
                row.greedy.with_interval,
                "" if row.difference is None else f"{row.difference.difference:+.2f}",
                "" if row.difference is None else f"{row.difference.p_value:.3f}",
                f"{row.own.value:.2f} ({row.own_search})",
                f"{row.after_wrong:.2f}",
                "–" if row.updates is None else f"{row.updates:,}",
                "–" if row.seconds is None else f"{row.seconds:,.0f} s",
            )
            for row in self.rows
        ]

    def remarks(self) -> list[str]:
        """How the numbers were measured."""
        facts = " · ".join(f"{key} {value}" for key, value in self.machine.items())
        return [
            say(
                f"{self.num_sentences:,} sentences of {self.test}; {self.rows[0].greedy.signature}",
                f"{self.test} 的 {self.num_sentences:,} 句；{self.rows[0].greedy.signature}",
            ),
            say(
                f"difference and p: greedy search against that of {self.rows[0].model}, paired "
                "randomization of 1,000 draws. One seed of each model: p says whether these two "
                "models differ, not whether these two ways of learning do.",
                f"差与 p：与 {self.rows[0].model} 的贪心搜索相比，成对随机化检验 1,000 次。"
                "每个模型只有一个种子：p 说明这两个模型是否有差别，而不是这两种学习方式。",
            ),
            say(
                "after a wrong word: greedy search after a wrong first token, drawn among the most "
                "frequent ones at the beginning of the references. Updates and time leave out the "
                "model that a training started from.",
                "错词之后：强制给出一个错误的首词元（取自参考译文开头最常见者）后的贪心搜索。"
                "更新次数与用时不含起始模型的训练。",
            ),
            facts,
        ]
