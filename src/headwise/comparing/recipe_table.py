"""Makes the table of `headwise compare`: one row for each variant, notes for the reader, and
markdown.

Tested with hand-made rows: a difference is reported only if it is significant, and a failure has
its reason.
"""

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from headwise.evaluation.several_seeds import Estimate
from headwise.language import say
from headwise.tasks.comparison_metrics import ComparisonMetrics, Metric

SIGNIFICANT = 0.05


@dataclass(frozen=True)
class VariantResult:
    """One row of the table."""

    name: str
    seeds: tuple[int, ...]
    """The seeds whose runs finished."""
    quality: dict[str, Estimate]
    """The metrics of the task on the test set, mean over seeds: BLEU and chrF, an accuracy in
    percent, a perplexity."""
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
    training_seconds: float | None = None
    """Time of training; given where a variant is learnt in a single pass, which has no steps."""

    def verdict(self, metric: Metric) -> str:
        """Whether the variant differs significantly from the first one, in words."""
        found = self.differences.get(metric.key)
        if found is None or found.p_value is None:
            return ""
        if abs(found.value) < metric.smallest:
            return say("no difference", "没有差异")
        if found.p_value < SIGNIFICANT:
            better = (found.value > 0) == metric.higher_is_better
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
    comparison_metrics: ComparisonMetrics
    notes: tuple[str, ...] = ()
    """Notes on the corpora that were measured on (tasks/measured_corpora.py)."""

    @property
    def failed(self) -> bool:
        return any(variant.failures for variant in self.variants)

    def as_dict(self) -> dict[str, Any]:
        metrics = self.comparison_metrics.metrics
        rows = [
            {**asdict(variant), "verdict": variant.verdict(metrics[0]) if metrics else ""}
            for variant in self.variants
        ]
        if not self._has_seconds:
            for row in rows:
                del row["training_seconds"]
        return {
            "machine": self.machine,
            "signature": self.signature,
            "jobs": self.jobs,
            "variants": rows,
            "curves": self.curves,
        }

    @property
    def _has_seconds(self) -> bool:
        return any(variant.training_seconds is not None for variant in self.variants)

    def _is_filled(self, column: str) -> bool:
        """A column without a number is left out, as of n-grams, which have neither steps nor a loss
        of their own. While nothing has finished, the usual columns stand there."""
        return any(getattr(variant, column) is not None for variant in self.variants) or not any(
            variant.seeds for variant in self.variants
        )

    def headings(self) -> tuple[str, ...]:
        titles = [say(*metric.title) for metric in self.comparison_metrics.metrics]
        quality = [
            *(say(f"{title}, 95 % interval", f"{title}，95% 区间") for title in titles[:1]),
            *(say("difference", "差异") for _ in titles[:1]),
            *titles[1:],
        ]
        units = {"sentences": ("sentences/s", "句/秒"), "words": ("words/s", "词/秒")}
        unit = self.comparison_metrics.unit
        return (
            say("variant", "变体"),
            *quality,
            *([say("valid loss", "验证损失")] if self._is_filled("valid_loss") else []),
            say("parameters", "参数"),
            *([say("ms/step", "毫秒/步")] if self._is_filled("step_seconds") else []),
            *([say("seconds", "秒")] if self._has_seconds else []),
            say("peak MiB", "峰值 MiB"),
            *([] if unit is None else [say(*units[unit])]),
        )

    def rows(self) -> list[tuple[str, ...]]:
        return [self._row(variant) for variant in self.variants]

    def _row(self, variant: VariantResult) -> tuple[str, ...]:
        def text(value: float | None, form: str) -> str:
            return "–" if value is None else format(value, form)

        def value(metric: Metric) -> str:
            found = variant.quality.get(metric.key)
            return text(None if found is None else found.value, f".{metric.digits}f")

        metrics, unit = self.comparison_metrics.metrics, self.comparison_metrics.unit
        speeds = {
            "sentences": variant.sentences_per_second,
            "words": variant.words_per_second,
        }
        step = None if variant.step_seconds is None else 1000 * variant.step_seconds
        return (
            variant.name,
            *(_interval(variant, metric) for metric in metrics[:1]),
            *(_difference(variant, metric) for metric in metrics[:1]),
            *(value(metric) for metric in metrics[1:]),
            *([text(variant.valid_loss, ".3f")] if self._is_filled("valid_loss") else []),
            text(variant.parameters, ","),
            *([text(step, ".1f")] if self._is_filled("step_seconds") else []),
            *([text(variant.training_seconds, ".1f")] if self._has_seconds else []),
            text(variant.peak_memory_mib, ",.0f"),
            *([] if unit is None else [text(speeds[unit], ",.0f")]),
        )

    def remarks(self) -> list[str]:
        """Notes that a reader of the table needs: on what was measured, and on what was not."""
        lines = self._reading() if any(variant.quality for variant in self.variants) else []
        if self.comparison_metrics.remark is not None:
            lines.append(say(*self.comparison_metrics.remark))
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
        data, data_zh = self.comparison_metrics.scored_on
        if num_seeds > 1:
            lines.append(
                say(
                    f"Intervals cover the {data} and {num_seeds} seeds (± standard deviation "
                    "over seeds in brackets).",
                    f"区间涵盖{data_zh}与 {num_seeds} 个种子（括号内为种子间标准差）。",
                )
            )
        else:
            lines.append(
                say(
                    f"One seed: intervals cover the {data} only; another seed may reverse a "
                    "small difference (--seeds 1,2,3).",
                    f"只有一个种子：区间仅涵盖{data_zh}；换一个种子，较小的差异可能反过来（--seeds "
                    "1,2,3）。",
                )
            )
        if any(found.is_cut for variant in self.variants for found in variant.quality.values()):
            low, high = self.comparison_metrics.metrics[0].ends
            en, zh = (f"{low:g}", f"{low:g}")
            if math.isfinite(high):
                en, zh = f"{low:g} and {high:g}", f"{low:g} 与 {high:g}"
            cut = f"Intervals are cut at {en}, where scores end", f"区间在分数的界限 {zh} 处截断"
            lines.append(
                say(
                    f"{cut[0]}: {num_seeds} seeds tell little of how much seeds differ; give three "
                    "or more (--seeds 1,2,3).",
                    f"{cut[1]}：{num_seeds} 个种子难以说明种子间的差异；请给三个或更多（--seeds "
                    "1,2,3）。",
                )
                if num_seeds > 1
                else say(
                    f"{cut[0]}: the {data} is too small for a narrower interval.",
                    f"{cut[1]}：{data_zh}太小，无法得到更窄的区间。",
                )
            )
        return lines


def _signed(number: float, digits: int = 1) -> str:
    """The value with its sign; a value that rounds to zero is +0.0."""
    return f"{round(number, digits) + 0.0:+.{digits}f}"


def _interval(variant: VariantResult, metric: Metric) -> str:
    """A score with its interval, and the standard deviation over seeds."""
    found, spread, digits = (
        variant.quality.get(metric.key),
        variant.spread.get(metric.key),
        metric.digits,
    )
    if found is None:
        return say("failed", "失败") if variant.failures else "–"
    return f"{found.value:.{digits}f} [{found.low:.{digits}f}, {found.high:.{digits}f}]" + (
        "" if spread is None else f" (±{spread:.{digits + 1}f})"
    )


def _difference(variant: VariantResult, metric: Metric) -> str:
    """The difference from the first variant with its interval, and whether it is significant."""
    found = variant.differences.get(metric.key)
    if found is None:
        return "–"
    value, low, high = (
        _signed(number, metric.digits) for number in (found.value, found.low, found.high)
    )
    return f"{value} [{low}, {high}] {variant.verdict(metric)}"


def as_markdown(result: ComparisonResult) -> str:
    """The table for a report."""
    machine = " · ".join(f"{key} {value}" for key, value in result.machine.items())
    lines = [f"| {' | '.join(row)} |" for row in (result.headings(), *result.rows())]
    lines.insert(1, "|" + "---|" * len(result.headings()))
    return "\n".join(
        [*lines, "", *(f"- {remark}" for remark in result.remarks()), f"- {machine}", ""]
    )
