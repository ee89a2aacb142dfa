"""Lines on a terminal are broken between words, in Chinese between characters, and never inside a
command."""

import io
import random
import sys

import pytest

from headwise.cli.main import main
from headwise.cli.terminal.wrapping import (
    join_parts,
    longest_part,
    split_parts,
    text_width,
    wrap,
    wrap_text,
    write_line,
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("There is a train next Wednesday.", 20, ["There is a train", "next Wednesday."]),
        ("它现在一无所知（什么也不会），你好。", 20, ["它现在一无所知（什么", "也不会），你好。"]),
        ("用 torch.compile 编译", 10, ["用", "torch.compile", "编译"]),
        ("nrefs:1|case:mixed|eff:no|tok:13a", 19, ["nrefs:1|case:mixed|", "eff:no|tok:13a"]),
        ("see `headwise train --help` for it", 20, ["see", "`headwise train --help`", "for it"]),
        (
            "saved; go on with: headwise train --run a",
            20,
            ["saved; go on with:", "headwise train --run a"],
        ),
        (
            "已保存；继续请用：headwise train --run a",
            20,
            ["已保存；继续请用：", "headwise train --run a"],
        ),
        ("", 20, [""]),
    ],
)
def test_where_a_line_may_be_broken(text: str, width: int, expected: list[str]) -> None:
    assert wrap(text, width) == expected


def test_nothing_is_lost_and_no_line_is_too_long() -> None:
    """A law over random texts: the characters stay, and a line is too wide only if it is one part
    that cannot be broken."""
    draw = random.Random(7)
    words = [
        "a",
        "Wednesday",
        "词元",
        "（",
        "），",
        "`x y`",
        "tok:13a|",
        "ü",
        "·",
        "“好”",
        "12.5",
        "(one)",
        "`",
    ]
    for _ in range(500):
        text = "".join(
            draw.choice(words) + " " * draw.randrange(2) for _ in range(draw.randrange(1, 30))
        )
        width = draw.randrange(8, 60)
        lines = wrap(text, width)
        assert "".join("".join(lines).split()) == "".join(text.split())
        for line in lines:
            assert text_width(line.strip()) <= max(width, longest_part(text)), (text, width)
            assert text_width(line.strip()) <= width or len(split_parts(line.strip())) == 1


def test_what_is_indented_stays_so() -> None:
    assert wrap_text("one:\n  two three four", 12) == "one:\n  two three\n  four"
    assert wrap_text("✓ one two three", 9, hanging=2) == "✓ one two\n  three"


def test_parts_are_kept_whole() -> None:
    assert join_parts(["step 1/9", "loss 2.5", "left 0:03"], 20) == "step 1/9 · loss 2.5\nleft 0:03"


def test_a_program_gets_whole_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "a sentence of several words"
    monkeypatch.setenv("COLUMNS", "20")
    terminal, pipe = Terminal(), io.StringIO()
    write_line(text, terminal)
    write_line(text, pipe)
    assert terminal.getvalue() == "a sentence of\nseveral words\n"
    assert pipe.getvalue() == text + "\n"


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("columns", [60, 80])
def test_an_error_and_a_help_fit_the_terminal(
    language: str, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for words, status in (
        (["translate", "--model", "nothing-here"], 3),
        (["evaluate", "--help"], 0),
    ):
        said = Terminal()
        monkeypatch.setattr(sys, "stdout", said)
        monkeypatch.setattr(sys, "stderr", said)
        try:
            left = main(["--lang", language, *words])
        except SystemExit as stop:
            left = int(stop.code or 0)
        assert left == status
        # Of a help what follows its usage.
        shown = said.getvalue().partition("\n\n")[2 if status == 0 else 0]
        sentences = [line for line in shown.splitlines() if not line.startswith("  headwise")]
        assert sentences
        assert max(map(text_width, sentences)) <= columns, said.getvalue()
