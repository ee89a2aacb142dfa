"""Checks before a command runs: its inputs can be read, and its outputs do not overwrite them.

`check_paths` checks every option of a command (paths.py) before anything heavy is imported:

- Inputs exist. A missing model, recipe or text is reported at once, not after importing torch; so
  is a model of a task that the command is not for.
- A text can be decoded to its end, so that no result is printed before a bad line is found. An
  input that is read once may also be a pipe or standard input (`-`), whose lines are checked while
  they are read (tasks/text_input.py).
- No output is a file that the command reads, by whatever name: relative path, symbolic link, hard
  link or redirection.
- No output lies inside a model or checkpoint, whose files have checksums, or replaces a file that
  a run needs.

Tested against: every pair of input and output of every command, under every kind of name.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from headwise.cli.options.file_identity import identity, is_same, numbers
from headwise.cli.options.model_paths import ModelPath, UnfinishedRun
from headwise.cli.options.paths import Input, Output, ReadOnce, RecipeName
from headwise.errors import UsageError
from headwise.storage import refuse_sealed

RUN_FILES = ("recipe.yaml", "log.jsonl", "LATEST")
"""The files that a run needs; its others have checksums or can be made again."""


def check_paths(parsed: argparse.Namespace, names: Mapping[str, str]) -> None:
    """Refuse a command that cannot succeed or that would overwrite its input; `names` are the names
    of the options by `dest`.
    """
    given = [
        (names.get(dest, dest), one) for dest, value in vars(parsed).items() for one in _each(value)
    ]
    for option, one in given:
        if "\0" in one:
            raise UsageError(
                f"{option} {one!r} cannot be a path; give one without a zero byte",
                f"{option} {one!r} 不能作为路径；请去掉其中的零字节",
            )
    # A wrong model or recipe is reported before a wrong text.
    first = ModelPath | UnfinishedRun | RecipeName
    ordered = sorted(given, key=lambda pair: not isinstance(pair[1], first))
    located = [(option, one.locate()) for option, one in ordered if isinstance(one, Input)]
    inputs = [(option, path) for option, path in located if path is not None]
    for option, one in given:
        if isinstance(one, Output):
            one.check(option)
            _check_owner(option, one)
            _check_inputs(option, Path(one), inputs)
    reads_input = any(isinstance(one, ReadOnce) and one.is_standard_input for _, one in given)
    _check_redirection(inputs, reads_input=reads_input)


def _each(value: Any) -> Iterator[Input | Output]:
    for one in value if isinstance(value, list | tuple) else [value]:
        if isinstance(one, Input | Output):
            yield one


def _check_inputs(option: str, path: Path, inputs: Sequence[tuple[str, Path]]) -> None:
    for other, read in inputs:
        if is_same(path, read):
            raise UsageError(
                f"{option} {path} is the file that {other} reads, and would be written over; give "
                "another name",
                f"{option} {path} 就是 {other} 要读取的文件，写入会将其覆盖；请换一个名字",
            )
    if path.exists() and identity(sys.stdin) == numbers(path.stat()):
        raise UsageError(
            f"{option} {path} is the file that standard input reads, and would be written over; "
            "give another name",
            f"{option} {path} 就是标准输入所读的文件，写入会将其覆盖；请换一个名字",
        )


def _check_owner(option: str, output: Output) -> None:
    refuse_sealed(output.place())
    path = Path(output)
    if path.name in RUN_FILES and path.exists() and (path.parent / "recipe.yaml").is_file():
        raise UsageError(
            f"{option} {path} belongs to the run in {path.parent}, which cannot go on without it; "
            "give another name",
            f"{option} {path} 属于 {path.parent} 中的运行，缺了它就无法继续；请换一个名字",
        )


def _check_redirection(inputs: Sequence[tuple[str, Path]], *, reads_input: bool) -> None:
    """Refuse `headwise … FILE >> FILE` and `headwise … < FILE >> FILE`, which would read their own
    output.
    """
    written = identity(sys.stdout)
    if reads_input and written is not None and written == identity(sys.stdin):
        raise UsageError(
            "standard output is redirected to the file that standard input reads; redirect it to "
            "another file",
            "标准输出被重定向到标准输入所读的文件；请重定向到别的文件",
        )
    for option, path in inputs:
        if written is not None and written == numbers(path.stat()):
            raise UsageError(
                f"standard output is redirected to {path}, which {option} reads; redirect it to "
                "another file",
                f"标准输出被重定向到 {path}，而 {option} 正要读取它；请重定向到别的文件",
            )
