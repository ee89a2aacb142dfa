"""A documentation page as data: its headings, code blocks, links and tables.

What the tests make of a fenced block:

    python         run; all python blocks of a page run in order in one namespace, in a directory
                   with a small trained model
    text           directly after a python block: what that block prints, compared letter by letter
    bash, console  every `headwise …` line must parse, its recipe and overrides must be valid;
                   every `make …` target must exist
    yaml           a block that begins with `task:` is a whole recipe and must be valid
    not run        `<!-- not run: reason -->` on the line before a fence leaves that block alone
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "guide"
READMES = {"en": ROOT / "README.md", "zh": ROOT / "README.zh.md"}
_NOT_RUN = re.compile(r"<!-- not run: \S.* -->")
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


@dataclass
class Block:
    language: str
    line: int
    """Of the first line of code, from 1."""
    is_run: bool
    lines: list[str] = field(default_factory=list)
    output: str | None = None

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


@dataclass(frozen=True)
class Page:
    path: Path
    headings: tuple[tuple[int, str], ...]
    blocks: tuple[Block, ...]
    prose: tuple[tuple[int, str], ...]
    """Lines outside code blocks with their numbers."""

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    def links(self) -> list[str]:
        return _LINK.findall("\n".join(line for _, line in self.prose))

    def commands(self) -> Iterator[tuple[int, list[str]]]:
        """The commands of all shell blocks, split as a shell would; pipes and redirections end a
        command."""
        for block in self.blocks:
            if block.language in ("bash", "console") and block.is_run:
                yield from _commands(block)


def _commands(block: Block) -> Iterator[tuple[int, list[str]]]:
    waiting, start = "", block.line
    for number, line in enumerate(block.lines, start=block.line):
        if block.language == "console" and not waiting and not line.startswith("$ "):
            continue
        start = start if waiting else number
        waiting += line.removeprefix("$ ")
        if waiting.endswith("\\"):
            waiting = waiting[:-1] + " "
            continue
        lexer = shlex.shlex(waiting, posix=True, punctuation_chars="|&;<>")
        lexer.whitespace_split = True
        command: list[str] = []
        for word in [*lexer, "|"]:
            if set(word) <= set("|&;<>"):
                if command[:1] == ["torchrun"] and "headwise" in command:
                    command = command[command.index("headwise") :]  # what every process runs
                if command and Path(command[0]).name in ("headwise", "make"):
                    yield start, command
                command = []
            else:
                command.append(word)
        waiting = ""


@cache
def read_page(path: Path) -> Page:
    headings: list[tuple[int, str]] = []
    blocks: list[Block] = []
    prose: list[tuple[int, str]] = []
    inside: Block | None = None
    is_run, last = True, None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if line.startswith("```"):
            if inside is None:
                inside = Block(line.removeprefix("```").strip(), number + 1, is_run)
                is_run = True
            else:
                if inside.language == "text" and last is not None and last.language == "python":
                    last.output = inside.text
                blocks.append(inside)
                inside, last = None, inside
        elif inside is not None:
            inside.lines.append(line)
        else:
            prose.append((number, line))
            if line.strip():
                is_run, last = not _NOT_RUN.fullmatch(line.strip()), None
            if mark := re.match(r"(#+) (.+)", line):
                headings.append((len(mark[1]), mark[2]))
    assert inside is None, f"{path}: a code block does not end"
    return Page(path, tuple(headings), tuple(blocks), tuple(prose))


def guide_names(language: str) -> list[str]:
    return sorted(path.name for path in (GUIDE / language).glob("*.md"))


def all_pages() -> list[Page]:
    paths = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
    return [read_page(path) for path in paths]


def taught_pages() -> list[Page]:
    """The pages whose code a reader is meant to run, in English.

    `test_pages.py` compares the code, commands and recipes of each Chinese page with those of its
    English twin, so running them once is enough.
    """
    return [
        read_page(path)
        for path in (READMES["en"], *sorted((GUIDE / "en").glob("*.md")), ROOT / "CONTRIBUTING.md")
    ]


def twins() -> list[tuple[Page, Page]]:
    """Each English page with its Chinese twin."""
    chapters = [(GUIDE / "en" / name, GUIDE / "zh" / name) for name in guide_names("en")]
    return [
        (read_page(en), read_page(zh)) for en, zh in [(READMES["en"], READMES["zh"]), *chapters]
    ]
