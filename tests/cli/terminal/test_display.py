import io
import logging
import re
import sys
from typing import Any, Literal

import pytest
from rich.console import Console

from headwise.cli.main import _listening
from headwise.cli.terminal import display
from headwise.cli.terminal.display import TrainingDisplay
from headwise.cli.terminal.tables import print_table
from headwise.language import clock, use_language
from headwise.tasks.pretraining.elmo_recipe import ElmoRecipe
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.tasks.vocabulary_progress import watch_vocabulary
from headwise.training.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def progress(step: int, **changes: Any) -> Progress:
    values: dict[str, Any] = {
        "phase": "training",
        "step": step,
        "steps": 10,
        "loss": 1.25,
        "learning_rate": 1e-3,
        "tokens_per_second": 4321.0,
        "seconds": 65.0,
        "seconds_left": 3.0,
        "metrics": None,
    }
    return Progress(**{**values, **changes})


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, "–"), (5, "0:05"), (65.4, "1:05"), (7384, "2:03:04")]
)
def test_a_clock_is_readable(seconds: float | None, text: str) -> None:
    assert clock(seconds) == text


def test_without_a_terminal_a_line_comes_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, now = io.StringIO(), [0.0]
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(display.time, "monotonic", lambda: now[0])
    with TrainingDisplay() as shown:
        for step in range(10):
            now[0] = 4.0 * step
            shown.training(progress(step))
        shown.training(progress(10, phase="saving", tokens_per_second=0.0, metrics={"loss": 2.5}))
        shown.training(progress(10, phase="finished", tokens_per_second=0.0, loss=None))
    lines = stream.getvalue().splitlines()
    assert [re.search(r"step (\d+)/10", line)[1] for line in lines] == ["0", "3", "6", "9", "10"]  # type: ignore[index]
    assert lines[0] == "step 0/10 · loss 1.250 · 4,321 tokens/s · time 1:05 · left 0:03"
    assert lines[-1] == "step 10/10 · loss – · 4,321 tokens/s · time 1:05 · left 0:03"
    assert "\x1b" not in stream.getvalue()


def test_the_last_step_is_printed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with TrainingDisplay() as shown:
        for phase in ("training", "validating", "saving", "finished"):
            shown.training(progress(10, phase=phase))
    assert stream.getvalue().count("step 10/10") == 1


def test_the_last_validation_stands_in_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    metrics = {"loss": 2.5, "perplexity": 9.0123, "bleu": 12.34, "chrf": 45.67}
    with TrainingDisplay() as shown:
        shown.learn_metrics(TranslationRecipe.metrics)
        shown.training(progress(10, phase="finished", metrics=metrics))
    assert (
        "valid loss 2.500 · valid perplexity 9.01 · valid BLEU 12.34 · valid chrF 45.67 · 4,321"
        in stream.getvalue()
    )


def test_the_names_of_metrics_are_those_that_the_task_declares(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    use_language("zh")
    with TrainingDisplay() as shown:
        shown.learn_metrics(ElmoRecipe.metrics)
        shown.training(progress(10, phase="finished", metrics={"forward_perplexity": 16.796}))
    assert "验证 困惑度（正向） 16.80" in stream.getvalue()


def test_on_a_terminal_a_notice_stands_above_the_live_line(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    with _listening(ends_process=False), TrainingDisplay() as shown:
        shown.console = Console(file=stream, markup=False, force_terminal=True, width=120)
        shown.training(progress(3, phase="validating"))
        logging.getLogger("headwise.training").warning("one plain line")
        shown.count("pairs", 5, 7)
        shown.note("[a note]")
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())
    assert "headwise: note: one plain line\n" in text
    assert "validating" in text
    assert "pairs: 5 / 7" in text
    assert "[a note]" in text


@pytest.mark.parametrize("columns", [60, 80])
def test_the_live_line_is_broken_between_its_parts(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    metrics = {"loss": 2.5, "perplexity": 9.0123, "bleu": 12.34, "chrf": 45.67}
    with TrainingDisplay() as shown:
        shown.console = Console(file=stream, force_terminal=True, width=columns, no_color=True)
        shown.learn_metrics(TranslationRecipe.metrics)
        shown.training(progress(3, metrics=metrics))
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())
    assert max(map(len, text.splitlines())) <= columns
    for part in (
        "step 3/10",
        "valid perplexity 9.01",
        "valid chrF 45.67",
        "4,321 tokens/s",
        "left 0:03",
    ):
        assert part in text
    assert ("━" in text) == (columns == 80), "no bar where there is no room"


@pytest.mark.parametrize("columns", [60, 80])
def test_a_note_is_broken_between_words(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("COLUMNS", str(columns))
    text = (
        "'There is a train from Hamburg to Cologne next Wednesday.' | 'Nächsten Mittwoch "
        "fährt ein Zug.' "
    ) * 3
    with TrainingDisplay() as shown:
        shown.console = Console(file=stream, force_terminal=True, width=columns, no_color=True)
        shown.note(text)
    lines = stream.getvalue().splitlines()
    assert max(map(len, lines)) <= columns
    assert " ".join(line.strip() for line in lines).split() == text.split()


def test_a_table_is_tabs_for_programs_and_lines_for_people(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, terminal = io.StringIO(), Terminal()
    monkeypatch.setattr(sys, "stdout", plain)
    print_table(("a", "b"), [("1", "[x]")], title="t")
    assert plain.getvalue() == "# t\na\tb\n1\t[x]\n"
    monkeypatch.setattr(sys, "stdout", terminal)
    print_table(("a", "b"), [("1", "[x]")], title="t")
    assert "│" in terminal.getvalue()
    assert "[x]" in terminal.getvalue(), "text is shown as it is, not read as markup"


def test_a_count_ends_with_its_last_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """15,000 pairs in blocks of 8,192, read within a second: one line with the whole number."""
    stream, now = io.StringIO(), [0.0]
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(display.time, "monotonic", lambda: now[0])
    with TrainingDisplay() as shown:
        shown.count("training pairs", 8192, None)
        shown.count("training pairs", 15000, None)
        shown.count("validation pairs", 200, None)
        shown.note("read 15,000 pairs")
        for number in range(1, 4):
            now[0] += 6.0
            shown.count("lines", number, 3)
    assert stream.getvalue().splitlines() == [
        "training pairs: 15,000",
        "validation pairs: 200",
        "read 15,000 pairs",
        "lines: 3 / 3",
    ]


def test_a_count_of_known_length_says_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, now = io.StringIO(), [0.0]
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(display.time, "monotonic", lambda: now[0])
    with TrainingDisplay() as shown:
        for number in range(9):
            now[0] = 6.0 * number
            shown.count("lines", 100 * number, 1000)
    # After 12 s 200 of 1,000 lines are done: 48 s for the other 800.
    assert stream.getvalue().splitlines()[0] == "lines: 200 / 1,000 · left 0:48"


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        (
            "en",
            ["learning the vocabulary: 0 %", "learning the vocabulary: 25 % · left 2:00", "learnt"],
        ),
        ("zh", ["正在学习词表: 0 %", "正在学习词表: 25 % · 剩余 2:00", "learnt"]),
    ],
)
def test_the_vocabulary_is_told_by_its_share_and_no_line_twice(
    language: Literal["en", "zh"], expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """40 s pass before the trainer knows how far it is: one line, not four."""
    stream, now = io.StringIO(), [0.0]
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(display.time, "monotonic", lambda: now[0])
    use_language(language)
    with TrainingDisplay() as shown:
        tell = watch_vocabulary(shown)
        for seconds in range(40):
            now[0] = float(seconds)
            tell(0.0)
        for now[0] in (40.0, 41.0):
            tell(0.25)
        shown.note("learnt")
    assert stream.getvalue().splitlines() == expected
