"""The command line's entry: the parser, the list of commands, and errors as messages and statuses.

Exit status: 0 done · 1 our failure · 2 the caller's mistake · 3 bad or damaged data · 130/143 after
a saved stop. Results go to standard output, progress and messages to standard error. A command has
up to three functions: `add_parser` declares its options, `check` refuses options that contradict
each other, `run` does the work. The files that options name are checked between `check` and `run`
(options/path_checks.py). Nothing heavy is imported before `run`, so help and most errors are fast.
"""

import argparse
import contextlib
import errno
import io
import logging
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

from headwise import __version__
from headwise.cli.launcher import is_first_process, resume_command
from headwise.cli.options.parser import Parser, find_leaf, name_options, parse
from headwise.cli.options.path_checks import check_paths
from headwise.cli.terminal.standard_error import ignore_write_failures
from headwise.cli.terminal.standard_streams import open_missing_streams
from headwise.cli.terminal.wrapping import write_line
from headwise.errors import HeadwiseError, SaidElsewhere, StoppedBySignal, TrainingStopped
from headwise.language import say, use_language

COMMANDS = (
    "demo",
    "plan",
    "train",
    "compare",
    "distil",
    "adapt",
    "memory",
    "translate",
    "rerank",
    "explore",
    "serve",
    "key",
    "evaluate",
    "exposure",
    "export",
    "import",
    "attend",
    "score",
    "predict",
    "generate",
    "classify",
    "tag",
    "arpa",
    "nearest",
    "vectors",
    "senses",
    "describe",
    "doctor",
    "data",
    "recipes",
    "schema",
)


def build_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="headwise",
        description=say(
            "From attention to a working Transformer: train, measure, look into and use your own "
            "translator.",
            "从注意力到可用的 Transformer：训练、评测、观察并使用自己的翻译模型。",
        ),
        epilog=say(
            "First time here?   headwise demo\nYour own corpus?   headwise train --help",
            "初次使用？   headwise demo\n自己的语料？ headwise train --help",
        ),
    )
    parser.add_argument(
        "--version",
        action="version",
        version=f"headwise {__version__}",
        help=say("show the version", "显示版本"),
    )
    commands = parser.add_subparsers(dest="command", metavar=say("COMMAND", "命令"))
    for name in COMMANDS:
        import_module(f"headwise.cli.{name}").add_parser(commands)
    return parser


def _language_asked(arguments: Sequence[str]) -> None:
    """Set the language from `--lang` before the parser is built, because it holds the help."""
    for number, argument in enumerate(arguments):
        value = argument.removeprefix("--lang=") if argument.startswith("--lang=") else None
        if argument == "--lang" and number + 1 < len(arguments):
            value = arguments[number + 1]
        if value in ("en", "zh"):
            use_language(value)  # type: ignore[arg-type]


class _Notices(logging.Handler):
    """Prints the library's log messages as lines on standard error; a live display makes way for
    them.
    """

    def emit(self, record: logging.LogRecord) -> None:
        write_line(f"headwise: {say('note', '提示')}: {record.getMessage()}", sys.stderr)


@contextlib.contextmanager
def _listening(*, ends_process: bool) -> Iterator[None]:
    """While a command runs, print log messages, and turn SIGTERM into an exception, so that
    temporary files are removed.

    SIGHUP (a closed terminal) and SIGUSR1 (the warning of a batch system) are passed on to whoever
    handles SIGTERM by then: a server ends its connections first. The exit status is that of the
    first signal. A signal that was ignored when the process started, as by nohup, stays ignored.

    Afterwards the signals have their former effect. If the process ends with the command, they are
    ignored: Python takes up to a second to end, within which a signal would turn the status of a
    command that is done into that of one that was killed.
    """
    # Under torchrun only the first process prints.
    logger, handler = (
        logging.getLogger("headwise"),
        _Notices(logging.WARNING if is_first_process() else logging.CRITICAL),
    )
    logger.addHandler(handler)
    before: dict[int, Any] = {}
    received: list[int] = []

    def stop(number: int, _: object) -> None:
        received.append(number)
        if number == signal.SIGTERM:
            raise StoppedBySignal(received[0])
        signal.raise_signal(signal.SIGTERM)

    with contextlib.suppress(ValueError):  # signals can only be handled in the main thread
        for name in ("SIGTERM", "SIGHUP", "SIGUSR1"):
            number = getattr(signal, name, None)  # Windows has only the first
            if number is None:
                continue
            if number == signal.SIGTERM or signal.getsignal(number) != signal.SIG_IGN:
                before[number] = signal.signal(number, stop)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        for number, handling in before.items():
            signal.signal(number, signal.SIG_IGN if ends_process else handling)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    # Threads that wait for each other by spinning lose most of their time when another program
    # wants a core: training beside two busy processes was 3 to 5 times slower. Sleeping costs 3 %
    # on an idle machine (docs/decisions).
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    open_missing_streams()
    ignore_write_failures()
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Output is UTF-8 for other programs. A character that a terminal cannot show is written as
        # its code, and so is a byte of a file name that is not UTF-8.
        encoding = None if sys.stdout.isatty() else "utf-8"
        sys.stdout.reconfigure(encoding=encoding, errors="backslashreplace")
    _language_asked(given)
    parser = build_parser()
    try:
        parsed = parse(parser, given)
        if parsed.command is None:
            parser.print_help()
            return 0
    except OSError as error:  # the help could not be written
        return _explain_system(error)
    names = name_options(find_leaf(parser, given))
    with _listening(ends_process=arguments is None):
        return _run(parsed, given, names)


def _run(parsed: argparse.Namespace, given: Sequence[str], names: Mapping[str, str]) -> int:
    try:
        command = import_module(f"headwise.cli.{parsed.command}")
        if hasattr(command, "check"):
            command.check(parsed)
        check_paths(parsed, names)
        status = command.run(parsed) or 0
        sys.stdout.flush()
        return status
    except SaidElsewhere as error:
        return error.exit_status
    except TrainingStopped as stop:  # a requested stop is not an error
        go_on = resume_command(given, command=parsed.command, run=getattr(parsed, "run", None))
        write_line(f"headwise: {stop.go_on_with(go_on)}", sys.stderr)
        return stop.exit_status
    except HeadwiseError as error:
        _complain(str(error))
        return error.exit_status
    except KeyboardInterrupt:
        write_line(f"headwise: {say('stopped (Ctrl-C)', '已停止（Ctrl-C）')}", sys.stderr)
        return 130
    except OSError as error:
        return _explain_system(error)


def _explain_system(error: OSError) -> int:
    """The message and exit status of an OSError: a path that cannot be used is the caller's mistake
    (2), a full or broken disk is not (1), and a reader that has closed our output (`headwise … |
    head`) is no error.
    """
    _drop_unwritten()
    if isinstance(error, BrokenPipeError):
        return 0
    where = "" if error.filename is None else f"{error.filename}: "
    match error:
        case OSError(errno=errno.ENAMETOOLONG):
            where, advice = (
                "",
                say(
                    f"a path of {len(str(error.filename)):,} characters is too long for this "
                    "system; give a shorter one",
                    f"路径长达 {len(str(error.filename)):,} 个字符，超出系统上限；请给出更短的路径",
                ),
            )
        case OSError(errno=errno.ELOOP):
            advice = say(
                "its symbolic links lead in a circle; give another path",
                "符号链接成环；请换一个路径",
            )
        case OSError(errno=errno.EROFS):
            advice = say(
                "the file system is read-only; use a place you may write to",
                "文件系统只读；请换一个可写的位置",
            )
        case PermissionError():
            advice = say(
                "no permission; use a place you may read and write, or change its permissions",
                "没有权限；请换一个可读写的位置，或修改其权限",
            )
        case FileExistsError() | NotADirectoryError():
            advice = say(
                "a file stands where a directory is needed; give another path",
                "需要目录，但该处是一个文件；请换一个路径",
            )
        case FileNotFoundError() | IsADirectoryError():
            advice = say(f"{error.strerror}; check the path", f"{error.strerror}；请检查路径")
        case _:
            reason = error.strerror or str(error)
            _complain(
                where + say(f"{reason}; nothing more was written", f"{reason}；没有写入更多内容")
            )
            return 1
    _complain(where + advice)
    return 2


def _drop_unwritten() -> None:
    """Drop what cannot be written to standard output: Python would try again at exit, and print an
    error of its own.
    """
    try:
        sys.stdout.flush()
    except OSError:
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(message: str) -> None:
    write_line(f"headwise: {say('error', '错误')}: {message}", sys.stderr)
