"""Types for the options that name input and output files.

    parser.add_argument("--source", type=TextFilePath)
    parser.add_argument("--output", type=OutputFile)

Before a command runs, path_checks.py checks every option by its type. Missing directories of an
output are created when it is written (storage); the help of each such option says so. Options for
models are in model_paths.py.

Tested through path_checks.py.
"""

import contextlib
import errno
import os
from pathlib import Path

from headwise.errors import UsageError
from headwise.language import say
from headwise.storage import refuse_existing

STANDARD_INPUT = "-"
"""The name of standard input on a command line, and the default of inputs that are read once."""


class Input(str):
    """A file or directory that is only read; or a text such as `51,56` or `known:ptb`, which is no
    file.
    """

    def locate(self) -> Path | None:
        """The path that is read, after checking it; None if nothing on disk is read."""
        path = Path(self)
        return path if path.exists() else None


class NamedInput(Input):
    """NAME=FILE, NAME=NUMBERS or NAME=DIR."""

    def locate(self) -> Path | None:
        return super().locate() or Input(self.partition("=")[2]).locate()


class InputFile(Input):
    """A file that must exist (with .gz or .xz added too), or a known corpus."""

    def locate(self) -> Path | None:
        if self.startswith("known:"):
            from headwise.data.known.corpora import find_corpus

            find_corpus(self.removeprefix("known:"))
            return None
        if self == STANDARD_INPUT:
            raise UsageError(
                "- is standard input, a file that can be read again is needed here; "
                "save it to a file and give its name",
                "- 表示标准输入，而这里需要可以重复读取的文件；请先存成文件，再给出文件名",
            )
        from headwise.data.text_lines import find_text_file

        return find_text_file(Path(self))


class TextFilePath(InputFile):
    """A text whose lines can all be decoded; the command handles lines that are too long."""

    def locate(self) -> Path | None:
        from headwise.data.text_lines import read_lines

        path = super().locate()
        for _ in () if path is None else read_lines(path):
            pass
        return path


class SentenceFile(InputFile):
    """A text whose lines can all be decoded and are short enough to be held in memory."""

    def locate(self) -> Path | None:
        from headwise.tasks.text_input import read_text_lines

        path = super().locate()
        for _ in () if path is None else read_text_lines(path):
            pass
        return path


class ReadOnce(InputFile):
    """A text that may be standard input or a pipe, because it is read once, from start to end."""

    @property
    def path(self) -> Path | None:
        """The path to open; None for standard input."""
        return None if self.is_standard_input else Path(self)

    @property
    def is_standard_input(self) -> bool:
        return self == STANDARD_INPUT

    @property
    def can_be_read_again(self) -> bool:
        return not self.is_standard_input and not Path(self).is_fifo()

    def locate(self) -> Path | None:
        return super().locate() if self.can_be_read_again else self.path


class TextStream(ReadOnce, TextFilePath):
    """A text that is read once and whose lines can all be decoded."""


class SentenceStream(ReadOnce, SentenceFile):
    """A text that is read once, whose lines can all be decoded and are short enough to be held in
    memory.
    """


class RecipeName(Input):
    """A recipe file, or the name of a recipe that comes with Headwise."""

    def locate(self) -> Path | None:
        from headwise.tasks.recipe_files import find_recipe

        return find_recipe(str(self))


class ExistingRun(Input):
    """A run or bundle directory that must exist, intact or damaged."""

    def locate(self) -> Path | None:
        from headwise.tasks.bundle_directory import require_run

        return require_run(Path(self))


class ExistingDirectory(Input):
    """A directory of another program's files."""

    def locate(self) -> Path | None:
        path = Path(self)
        if not path.is_dir():
            raise UsageError(
                f"{self} is not a directory; give the directory with the files of the model",
                f"{self} 不是目录；请给出模型文件所在的目录",
            )
        return path


class Output(str):
    """A file or directory that is written."""

    @classmethod
    def note(cls) -> str:
        """What is added to the help of every such option."""
        return say("; missing directories are created", "；缺少的目录会自动建立")

    def check(self, option: str) -> None:
        """Refuse a path that would only fail after the work is done."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            os.stat(self)  # a name that is too long, circular links, a directory without permission
        whole = Path(self).absolute()
        above = next((parent for parent in whole.parents if parent.exists()), whole)  # "/" has none
        if not above.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(self))
        if not Path(self).exists() and not os.access(above, os.W_OK | os.X_OK):
            is_read_only = bool(os.statvfs(above).f_flag & os.ST_RDONLY)
            reason = errno.EROFS if is_read_only else errno.EACCES
            raise OSError(reason, os.strerror(reason), str(self))

    def place(self) -> Path:
        """What must not lie inside a directory whose files are sealed."""
        return Path(self)


class OutputFile(Output):
    """A file that is written; an existing file is replaced."""

    def check(self, option: str) -> None:
        super().check(option)
        if Path(self).is_dir():
            raise UsageError(
                f"{option} {self} is a directory, a file is needed; give the name of a file in it",
                f"{option} {self} 是目录，这里需要文件；请给出其中的文件名",
            )
        if (
            Path(self).exists() and not Path(self).is_file()
        ):  # a device or pipe would be replaced instead of written to
            raise UsageError(
                f"{option} {self} is a device or a pipe, a file is needed; give the name of a file",
                f"{option} {self} 是设备或管道，这里需要文件；请给出文件名",
            )


class NewOutput(Output):
    """A file or directory that must not exist yet."""

    def check(self, option: str) -> None:
        super().check(option)
        refuse_existing(Path(self))


class OutputDirectory(Output):
    """A directory of results; the command itself checks what it already holds."""


class SealedOutput(OutputDirectory):
    """A directory that the command seals and, after an interruption, goes on with."""

    def place(self) -> Path:
        return Path(os.path.realpath(self)).parent
