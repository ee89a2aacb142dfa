"""What a person sees: live progress and tables by rich on a terminal, plain lines elsewhere.

Results are written to standard output, progress to standard error. On a terminal training shows one live line with a bar, loss,
tokens a second and time left; in a log file, a plain line every ten seconds.
"""

import re
import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from headwise.language import clock, say

if TYPE_CHECKING:
    from headwise.inspecting.findings import Finding
    from headwise.models.describe import ModelDescription
    from headwise.planning.plan import Plan
    from headwise.tasks.run_start import RunSummary
    from headwise.tasks.translation.evaluation import MeasuredScores
    from headwise.training.progress import Progress

PLAIN_SECONDS = 10.0
FIGURE = re.compile(r"$|[-+−–±<≤(]?\s?\d|–$")
"""A cell that stands on the right of its column: a number, with or without its unit; nothing; a dash."""


def print_table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], *, title: str | None = None
) -> None:
    """A table on standard output; tab-separated where no terminal looks at it."""
    if not sys.stdout.isatty():
        if title is not None:
            sys.stdout.write(f"# {title}\n")
        for row in (headings, *rows):
            sys.stdout.write("\t".join(row) + "\n")
        return
    console, table = Console(file=sys.stdout, markup=False, highlight=False, emoji=False), Table()
    for number, heading in enumerate(headings):
        is_figure = number > 0 and all(FIGURE.match(row[number]) for row in rows)
        table.add_column(heading, justify="right" if is_figure else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    if title is not None:  # not the table's own, which would be wrapped to the table's width
        console.print(title, style="bold")
    console.print(table)


class TrainingDisplay:
    """Watches long work (tasks/events.py) and shows it on standard error."""

    def __init__(self) -> None:
        self.console = Console(file=sys.stderr, markup=False, highlight=False, emoji=False)
        self._live: Live | None = None
        self._last_line = -PLAIN_SECONDS
        self._rate = 0.0
        self._printed = ""
        self._counted = ""
        self._began = 0.0
        self._held_back = ""
        """A count that was not printed, because another one came before; the last one of all is."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    def note(self, text: str) -> None:
        self._stop()
        self.console.print(text, soft_wrap=True)

    def count(self, label: str, done: int, total: int | None) -> None:
        self._begin_count(label)
        line = f"{label}: {done:,}"
        if total is not None:
            line += f" / {total:,}" + self._left(done / total if total else 1.0)
        self._held_back = line
        self._show(line, done, total, ended=total is not None and done >= total)

    def share(self, label: str, done: float) -> None:
        self._begin_count(label)
        percent = int(100 * done)
        self._show(f"{label}: {percent} %{self._left(done)}", percent, 100, ended=False)

    def _begin_count(self, label: str) -> None:
        if label != self._counted:
            self._finish_count()
            # What is done within seconds is told once, with its last number.
            self._counted, self._began = label, time.monotonic()
            self._last_line = self._began

    def _left(self, share: float) -> str:
        """The time left, from the share that is done."""
        seconds = time.monotonic() - self._began
        if seconds < 1 or not 0 < share < 1:
            return ""
        return f" · {say('left', '剩余')} {clock(seconds * (1 - share) / share)}"

    def _finish_count(self) -> None:
        if self._held_back and not self.console.is_terminal:
            self.console.print(self._held_back, soft_wrap=True)
        self._held_back, self._counted = "", ""

    def training(self, progress: "Progress") -> None:
        # While it validates or saves nothing is trained: the last rate stays on show.
        self._rate = progress.tokens_per_second or self._rate
        parts = [
            f"{say('step', '步')} {progress.step:,}/{progress.steps:,}",
            f"{say('loss', '损失')} " + ("–" if progress.loss is None else f"{progress.loss:.3f}"),
            *(_validated(name, value) for name, value in (progress.metrics or {}).items()),
            f"{self._rate:,.0f} {say('tokens/s', '词元/秒')}",
            f"{say('time', '用时')} {clock(progress.seconds)}",
            f"{say('left', '剩余')} {clock(progress.seconds_left)}",
        ]
        phases = {
            "compiling": say("compiling", "编译中"),
            "validating": say("validating", "验证中"),
            "saving": say("saving", "保存中"),
        }
        if progress.phase in phases:
            parts.append(phases[progress.phase])
        self._show(
            " · ".join(parts), progress.step, progress.steps, ended=progress.phase == "finished"
        )

    def _show(self, line: str, done: int, total: int | None, *, ended: bool) -> None:
        if not self.console.is_terminal:
            now = time.monotonic()
            if ended or (now - self._last_line >= PLAIN_SECONDS and line != self._printed):
                self._last_line, self._printed = now, line
                self._held_back = ""
                self.console.print(line, soft_wrap=True)
            return
        row = Table.grid(padding=(0, 1))
        if total:
            row.add_row(ProgressBar(total=total, completed=min(done, total), width=24), line)
        else:
            row.add_row(line)
        if self._live is None:
            # rich prints what is written to standard output above the bar. That is right only where both are one terminal:
            # results that were sent to a file belong there.
            above = sys.stdout.isatty()
            self._live = Live(
                row, console=self.console, refresh_per_second=8, redirect_stdout=above
            )
            self._live.start()
        self._live.update(row)

    def _stop(self) -> None:
        self._finish_count()
        if self._live is not None:
            self._live.stop()
            self._live = None


def _validated(name: str, value: float) -> str:
    """A number of the last validation."""
    names = {
        "loss": say("loss", "损失"),
        "perplexity": say("perplexity", "困惑度"),
        "accuracy": say("accuracy", "准确率"),
        "bleu": "BLEU",
        "chrf": "chrF",
    }
    digits = 1 if name in ("bleu", "chrf") else 3
    return f"{say('valid', '验证')} {names.get(name, name)} {value:.{digits}f}"


def print_description(description: "ModelDescription") -> None:
    for title, headings, rows in description.tables():
        print_table(headings, rows, title=title)


def print_plan(plan: "Plan") -> None:
    for title, headings, rows in plan.tables():
        print_table(headings, rows, title=title)
    for line in plan.remarks():
        sys.stdout.write(line + "\n")


def print_findings(findings: "Sequence[Finding]") -> None:
    marks = {"good": "✓", "note": "·", "damaged": "✗"}
    for finding in findings:
        sys.stdout.write(f"{marks[finding.state]} {finding.topic}{say(': ', '：')}{finding.text}\n")


def print_scores(result: "MeasuredScores") -> None:
    headings = (
        say("metric", "指标"),
        say("score", "分数"),
        say("95 % interval", "95% 区间"),
        say("signature", "签名"),
    )
    print_table(headings, result.rows())
    for line in result.remarks():
        sys.stdout.write(line + "\n")


def result_name(key: str) -> str:
    """The name of a result for people; `--json` keeps the key."""
    names = {
        "steps": say("steps", "步数"),
        "stopped_by": say("stopped by", "停止原因"),
        "weights": say("weights kept", "保留的权重"),
        "target_tokens": say("target tokens", "目标词元"),
        "training_seconds": say("seconds of training", "训练秒数"),
        "expected_seconds": say("seconds of training expected on this machine", "本机预计训练秒数"),
        "expected_memory_mib": say("MiB of memory expected", "预计所需内存（MiB）"),
        "counting_seconds": say("seconds of counting", "计数秒数"),
        "parameters": say("parameters", "参数"),
        "pairs": say("pairs", "句对"),
        "examples": say("examples", "样本"),
        "classes": say("classes", "类别"),
        "lines": say("lines", "行数"),
        "tokens": say("tokens", "词元"),
        "vocabulary": say("vocabulary", "词表"),
        "words": say("different words", "词的种数"),
        "text_words": say("words of text", "文本词数"),
        "epochs": say("epochs", "轮数"),
        "words_per_second": say("words a second", "每秒词数"),
        "ngrams": say("n-grams of each order", "各阶 n 元语法数"),
    }
    return names.get(key, key)


def print_summary(summary: "RunSummary") -> None:
    rows = []
    for name, value in summary.results.items():
        if isinstance(value, dict) and "perplexity" in value:
            rows.append(
                (
                    f"{name} {say('perplexity', '困惑度')}",
                    _shown(value["perplexity"]),
                    _predictions(value),
                )
            )
        elif isinstance(value, dict) and "accuracy" in value:
            labels = say(f"{value['labels']:,} labels", f"{value['labels']:,} 个标签")
            rows.append(
                (f"{name} {say('accuracy', '准确率')}", f"{100 * value['accuracy']:.2f} %", labels)
            )
        elif isinstance(value, dict):
            for metric in ("bleu", "chrf", "ter"):
                score = value[metric]
                rows.append(
                    (f"{name} {score['name']}", f"{score['value']:.2f}", score["signature"])
                )
        else:
            rows.append(
                (
                    result_name(name),
                    f"{value:,}" if isinstance(value, int | float) else str(value),
                    "",
                )
            )
    print_table((say("result", "结果"), say("value", "值"), say("signature", "签名")), rows)
    for note in summary.notes:
        sys.stdout.write(f"{say('note', '注意')}{say(': ', '：')}{note}\n")
    if summary.model is not None:
        sys.stdout.write(say(f"the model: {summary.model}\n", f"模型：{summary.model}\n"))
        task, command = summary.recipe.task, summary.recipe.bundle_form.command
        word = " WORD" if command == "nearest" else ""
        use = f"headwise {command}{word} --model {summary.model}"
        if task in ("masked_language", "bidirectional_language"):
            use += say(", or ", "，或 ") + f"model.start_from={summary.model}"
        sys.stdout.write(say("try it: ", "试用：") + use + "\n")


def _shown(perplexity: float | None) -> str:
    """Infinite perplexity is stored as nothing, because JSON has no infinity."""
    return "∞" if perplexity is None else f"{perplexity:.2f}"


def _predictions(value: dict[str, Any]) -> str:
    count, unknown = value["predictions"], value["unknown"]
    return say(
        f"{count:,} predictions, {unknown:,} unknown words",
        f"{count:,} 次预测，未知词 {unknown:,} 个",
    )
