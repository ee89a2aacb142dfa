"""Progress and results on the terminal: a live display on a terminal, plain lines elsewhere.

Results are written to standard output, progress to standard error. On a terminal, training shows
one live line with a bar, loss, tokens per second and time left; in a log file, a plain line every
ten seconds.
"""

import sys
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from headwise.cli.terminal.tables import print_table
from headwise.cli.terminal.wrapping import join_parts, terminal_width, wrap_text, write_line
from headwise.language import clock, say
from headwise.tasks.declared_results import Result, Results, write_value
from headwise.tasks.result_rows import result_rows
from headwise.tasks.table import find_entry

if TYPE_CHECKING:
    from headwise.inspecting.description import Description
    from headwise.inspecting.findings import Finding
    from headwise.planning.plan import Plan
    from headwise.planning.single_pass_plan import SinglePassPlan
    from headwise.tasks.run_start import RunSummary
    from headwise.tasks.translation.evaluation import MeasuredScores
    from headwise.training.progress import Progress

PLAIN_SECONDS = 10.0
NARROW, USUAL = 72, 100
"""The columns of a terminal that are needed for a short bar and for a long one."""


class TrainingDisplay:
    """Receives the events of long work (tasks/events.py) and shows them on standard error."""

    def __init__(self) -> None:
        self.console = Console(file=sys.stderr, markup=False, highlight=False, emoji=False)
        self._live: Live | None = None
        self._last_line = -PLAIN_SECONDS
        self._rate = 0.0
        self._printed = ""
        self._metrics: Results = {}
        self._counted = ""
        self._began = 0.0
        self._held_back = ""
        """The last count that was not printed because the one before it was recent."""

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
        self.console.print(
            wrap_text(text, terminal_width()) if self.console.is_terminal else text, soft_wrap=True
        )

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
            # Work that takes only seconds is reported once, with its last count.
            self._counted, self._began = label, time.monotonic()
            self._last_line = self._began

    def _left(self, share: float) -> str:
        """The time left, estimated from the share that is done."""
        seconds = time.monotonic() - self._began
        if seconds < 1 or not 0 < share < 1:
            return ""
        return f" · {say('left', '剩余')} {clock(seconds * (1 - share) / share)}"

    def _finish_count(self) -> None:
        if self._held_back and not self.console.is_terminal:
            self.console.print(self._held_back, soft_wrap=True)
        self._held_back, self._counted = "", ""

    def learn_metrics(self, metrics: Results) -> None:
        self._metrics = metrics

    def training(self, progress: "Progress") -> None:
        # During validation and saving there is no training; the last rate stays visible.
        self._rate = progress.tokens_per_second or self._rate
        parts = [
            f"{say('step', '步')} {progress.step:,}/{progress.steps:,}",
            f"{say('loss', '损失')} " + ("–" if progress.loss is None else f"{progress.loss:.3f}"),
            *(self._validated(name, value) for name, value in self._known(progress.metrics)),
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
        ended = progress.phase == "finished"
        if progress.step == progress.steps and not ended and not self.console.is_terminal:
            return  # the same line follows at once, when the training is finished
        self._show(" · ".join(parts), progress.step, progress.steps, ended=ended)

    def _known(self, metrics: Mapping[str, float] | None) -> list[tuple[str, float]]:
        """Those that the task declares; the log has also those of each direction."""
        return [
            (name, value)
            for name, value in (metrics or {}).items()
            if not self._metrics or name in self._metrics
        ]

    def _validated(self, key: str, value: float) -> str:
        """A number of the last validation."""
        declared = self._metrics.get(key, Result((key, key), "loss"))
        written = write_value(value, declared.unit)
        return f"{say('valid', '验证')} {say(*declared.title)} {written}"

    def _show(self, line: str, done: int, total: int | None, *, ended: bool) -> None:
        if not self.console.is_terminal:
            now = time.monotonic()
            if ended or (now - self._last_line >= PLAIN_SECONDS and line != self._printed):
                self._last_line, self._printed = now, line
                self._held_back = ""
                self.console.print(line, soft_wrap=True)
            return
        row = self._draw(line, done, total)
        if self._live is None:
            # rich can print standard output above the bar. That is right only if both are one
            # terminal; results that are redirected to a file must go there.
            above = sys.stdout.isatty()
            self._live = Live(
                row, console=self.console, refresh_per_second=8, redirect_stdout=above
            )
            self._live.start()
        self._live.update(row)

    def _draw(self, line: str, done: int, total: int | None) -> Table:
        """A bar and the line beside it, wrapped between its parts; a narrow terminal gets the line
        alone.
        """
        width = self.console.width
        row = Table.grid(padding=(0, 1))
        row.add_column(no_wrap=True)
        if total and width >= NARROW:
            row.add_column(no_wrap=True)
            bar = 24 if width >= USUAL else 12
            shown = ProgressBar(total=total, completed=min(done, total), width=bar)
            row.add_row(shown, join_parts(line.split(" · "), width - bar - 2))
        else:
            row.add_row(join_parts(line.split(" · "), width - 1))
        return row

    def _stop(self) -> None:
        self._finish_count()
        if self._live is not None:
            self._live.stop()
            self._live = None


def print_description(description: "Description") -> None:
    for title, headings, rows in description.tables():
        print_table(headings, rows, title=title)


def print_plan(plan: "Plan | SinglePassPlan") -> None:
    for title, headings, rows in plan.tables():
        print_table(headings, rows, title=title)
    for line in plan.remarks():
        write_line(line)


def print_findings(findings: "Sequence[Finding]") -> None:
    marks = {"good": "✓", "note": "·", "damaged": "✗"}
    for finding in findings:
        write_line(
            f"{marks[finding.state]} {finding.topic}{say(': ', '：')}{finding.text}", hanging=2
        )


def print_scores(result: "MeasuredScores") -> None:
    headings = (
        say("metric", "指标"),
        say("score", "分数"),
        say("95 % interval", "95% 区间"),
        say("signature", "签名"),
    )
    print_table(headings, result.rows())
    for line in result.remarks():
        write_line(line)


def print_summary(summary: "RunSummary") -> None:
    print_table(
        (say("result", "结果"), say("value", "值"), say("details", "说明")),
        result_rows(summary.results, type(summary.recipe)),
    )
    for note in summary.notes:
        write_line(f"{say('note', '注意')}{say(': ', '：')}{note}")
    if summary.model is not None:
        write_line(say(f"the model: {summary.model}", f"模型：{summary.model}"))
        entry = find_entry(summary.recipe.task)
        assert entry is not None, "a run has a task of the table"
        if not entry.command:
            return
        word = " WORD" if entry.command == "nearest" else ""
        targets = getattr(summary.recipe.corpora_settings, "targets", ())
        to = f" --to {targets[0]}" if targets else ""
        use = f"headwise {entry.command}{word} --model {summary.model}{to}"
        if summary.recipe.bundle_form.starts_others:
            use += say(", or ", "，或 ") + f"model.start_from={summary.model}"
        # The command is meant to be copied, so it is not wrapped.
        sys.stdout.write(say("try it: ", "试用：") + use + "\n")
