"""The result of a comparison of recipes: one row for each variant, the notes that a reader needs,
and the table as markdown.

Tested with hand-made rows: a difference is reported only if it is significant, and a failure has
its reason.
"""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from headwise.evaluation.several_seeds import Estimate
from headwise.language import say

SIGNIFICANT = 0.05
SMALLEST = 0.05
"""A smaller difference is shown as 0.0 and counts as none, even if it is significant."""


@dataclass(frozen=True)
class Yardstick:
    """How a task is measured: the deciding metric, the other metrics, and the unit of speed."""

    metric: Literal["bleu", "accuracy"]
    second: Literal["chrf"] | None
    unit: Literal["sentences", "words"]

    @property
    def title(self) -> str:
        return "BLEU" if self.metric == "bleu" else say("accuracy, %", "准确率 %")


TRANSLATION = Yardstick("bleu", "chrf", "sentences")
LABELS = Yardstick("accuracy", None, "words")


@dataclass(frozen=True)
class VariantResult:
    """One row of the table."""

    name: str
    seeds: tuple[int, ...]
    """The seeds whose runs finished."""
    quality: dict[str, Estimate]
    """BLEU and chrF of the test set, or the accuracy of labels in percent, mean over seeds."""
    spread: dict[str, float | None]
    """The standard deviation over seeds."""
    differences: dict[str, Estimate]
    """Differences from the first variant; empty for the first one and without scores."""
    valid_loss: float | None
    parameters: int | None
    step_seconds: float | None
    peak_memory_mib: float | None
    sentences_per_second: float | None
    """Speed of translating the test set."""
    failures: tuple[str, ...] = ()
    """Why runs of some seeds failed."""
    words_per_second: float | None = None
    """Speed of labelling the test set."""

    def verdict(self, metric: str = "bleu") -> str:
        """Whether the variant differs significantly from the first one, in words."""
        found = self.differences.get(metric)
        if found is None or found.p_value is None:
            return ""
        if abs(found.value) < SMALLEST:
            return say("no difference", "没有差异")
        if found.p_value < SIGNIFICANT:
            better = found.value > 0
            chance = "p < 0.001" if found.p_value < 0.001 else f"p = {found.p_value:.3f}"
            return (
                say("better" if better else "worse", "更好" if better else "更差") + f" ({chance})"
            )
        return say("no significant difference", "差异不显著") + f" (p = {found.p_value:.2f})"


@dataclass(frozen=True)
class ComparisonResult:
    """The table, with everything needed to read it."""

    directory: Path
    variants: tuple[VariantResult, ...]
    signature: str
    jobs: int
    machine: dict[str, Any]
    curves: dict[str, list[dict[str, Any]]]
    """Validations of every run by `variant · seed`: step, loss, seconds."""
    yardstick: Yardstick = TRANSLATION
    notes: tuple[str, ...] = ()
    """Notes on the corpora that were measured on (tasks/measured_corpora.py)."""

    @property
    def failed(self) -> bool:
        return any(variant.failures for variant in self.variants)

    def as_dict(self) -> dict[str, Any]:
        metric = self.yardstick.metric
        rows = [
            {**asdict(variant), "verdict": variant.verdict(metric)} for variant in self.variants
        ]
        return {
            "machine": self.machine,
            "signature": self.signature,
            "jobs": self.jobs,
            "variants": rows,
            "curves": self.curves,
        }

    def headings(self) -> tuple[str, ...]:
        title, second = self.yardstick.title, self.yardstick.second
        return (
            say("variant", "变体"),
            say(f"{title}, 95 % interval", f"{title}，95% 区间"),
            say("difference", "差异"),
            *(["chrF"] if second else []),
            say("valid loss", "验证损失"),
            say("parameters", "参数"),
            say("ms/step", "毫秒/步"),
            say("peak MiB", "峰值 MiB"),
            say("sentences/s", "句/秒")
            if self.yardstick.unit == "sentences"
            else say("words/s", "词/秒"),
        )

    def rows(self) -> list[tuple[str, ...]]:
        return [_row(variant, self.yardstick) for variant in self.variants]

    def remarks(self) -> list[str]:
        """Notes that a reader of the table needs: on what was measured, and on what was not."""
        lines = self._reading() if any(variant.quality for variant in self.variants) else []
        lines += self.notes
        if self.jobs > 1 and any(variant.seeds for variant in self.variants):
            lines.append(
                say(
                    f"{self.jobs} runs shared the machine: times are not those of a run by itself.",
                    f"{self.jobs} 次运行同时占用本机：用时并非单独运行的用时。",
                )
            )
        for variant in self.variants:
            lines += [
                say(f"{variant.name} failed: {why}", f"{variant.name} 失败：{why}")
                for why in variant.failures
            ]
        return lines

    def _reading(self) -> list[str]:
        """How to read the scores and their intervals."""
        first, num_seeds = self.variants[0], max(len(variant.seeds) for variant in self.variants)
        lines = [self.signature] if self.signature else []
        if any(variant.differences for variant in self.variants):
            lines = [
                say(
                    f"Differences are from {first.name!r}. {self.signature}".rstrip(),
                    f"差异相对于 {first.name!r}。{self.signature}",
                )
            ]
        if num_seeds > 1:
            lines.append(
                say(
                    f"Intervals cover the test set and {num_seeds} seeds (± standard deviation "
                    "over seeds in brackets).",
                    f"区间涵盖测试集与 {num_seeds} 个种子（括号内为种子间标准差）。",
                )
            )
        else:
            lines.append(
                say(
                    "One seed: intervals cover the test set only; another seed may turn a small "
                    "difference round (--seeds 1,2,3).",
                    "只有一个种子：区间仅涵盖测试集；换一个种子，小差异可能反转（--seeds 1,2,3）。",
                )
            )
        if any(found.is_cut for variant in self.variants for found in variant.quality.values()):
            lines.append(
                say(
                    f"Intervals are cut at 0 and 100, where scores end: {num_seeds} seeds tell "
                    "little of how much seeds differ; give three or more (--seeds 1,2,3).",
                    f"区间在 0 与 100 处截断，分数到此为止：{num_seeds} 个种子难以说明种子间差异；"
                    "请给三个或更多（--seeds 1,2,3）。",
                )
            )
        return lines


def _signed(number: float) -> str:
    """The value with its sign; a value that rounds to zero is +0.0."""
    return f"{round(number, 1) + 0.0:+.1f}"


def _row(variant: VariantResult, yardstick: Yardstick) -> tuple[str, ...]:
    def text(value: float | None, form: str) -> str:
        return "–" if value is None else format(value, form)

    metric = yardstick.metric

    def interval() -> str:
        found, spread = variant.quality.get(metric), variant.spread.get(metric)
        if found is None:
            return say("failed", "失败") if variant.failures else "–"
        return f"{found.value:.1f} [{found.low:.1f}, {found.high:.1f}]" + (
            "" if spread is None else f" (±{spread:.2f})"
        )

    found = variant.differences.get(metric)
    difference = (
        "–"
        if found is None
        else f"{_signed(found.value)} [{_signed(found.low)}, {_signed(found.high)}] "
        f"{variant.verdict(metric)}"
    )
    second = variant.quality.get(yardstick.second) if yardstick.second else None
    speed = (
        variant.sentences_per_second if yardstick.unit == "sentences" else variant.words_per_second
    )
    return (
        variant.name,
        interval(),
        difference,
        *([text(None if second is None else second.value, ".1f")] if yardstick.second else []),
        text(variant.valid_loss, ".3f"),
        text(variant.parameters, ","),
        text(None if variant.step_seconds is None else 1000 * variant.step_seconds, ".1f"),
        text(variant.peak_memory_mib, ",.0f"),
        text(speed, ",.0f"),
    )


def as_markdown(result: ComparisonResult) -> str:
    """The table for a report."""
    machine = " · ".join(f"{key} {value}" for key, value in result.machine.items())
    lines = [f"| {' | '.join(row)} |" for row in (result.headings(), *result.rows())]
    lines.insert(1, "|" + "---|" * len(result.headings()))
    return "\n".join(
        [*lines, "", *(f"- {remark}" for remark in result.remarks()), f"- {machine}", ""]
    )
