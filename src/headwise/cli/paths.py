"""What a command reads and what it writes: declared as the types of its options, checked in one place before the command runs.

    parser.add_argument("--source", type=TextFile)
    parser.add_argument("--output", type=OutputFile)

`check_paths` looks at every option of a command before anything heavy is loaded:

- What must be there is there: a missing model, recipe or text is told at once, not after torch was loaded.
- A text can be read to its end, so that no answers are printed before a bad line is found.
- No output is a file that the command reads, by whatever name: relative path, symbolic link, hard link or redirection.
- No output lies inside a model or checkpoint, whose files are sealed by checksums, or replaces a file that a run lives by.

Missing directories of an output are made when it is written (storage.py); the help of each such option says so.

Tested against: every pair of input and output of every command, under every kind of name.
"""

import argparse
import contextlib
import errno
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from headwise.cli.file_identity import identity, is_same, numbers
from headwise.errors import UsageError
from headwise.language import say
from headwise.storage import refuse_existing, refuse_sealed

RUN_FILES = ("recipe.yaml", "log.jsonl", "LATEST")
"""What a run directory cannot do without; its other files are sealed or can be made again."""


class Input(str):
    """A file or directory that is only read; or a text such as `51,56` or `known:ptb`, which is no file at all."""

    def locate(self) -> Path | None:
        """The path that is read, after all that can be checked of it was checked; None if nothing on disk is read."""
        path = Path(self)
        return path if path.exists() else None


class NamedInput(Input):
    """NAME=FILE, NAME=NUMBERS or NAME=DIR."""

    def locate(self) -> Path | None:
        return super().locate() or Input(self.partition("=")[2]).locate()


class InputFile(Input):
    """A file that must be there (.gz and .xz are found too), or a known corpus."""

    def locate(self) -> Path | None:
        if self.startswith("known:"):
            from headwise.data.known.corpora import find_corpus

            find_corpus(self.removeprefix("known:"))
            return None
        from headwise.data.text_lines import find_text_file

        return find_text_file(Path(self))


class TextFile(InputFile):
    """A text of which every line can be decoded; a line that is too long is the command's to deal with."""

    def locate(self) -> Path | None:
        from headwise.data.text_lines import read_lines

        path = super().locate()
        for _ in () if path is None else read_lines(path):
            pass
        return path


class SentenceFile(InputFile):
    """A text of which every line can be decoded and is short enough to be held in memory."""

    def locate(self) -> Path | None:
        from headwise.tasks.text_input import read_text_lines

        path = super().locate()
        for _ in () if path is None else read_text_lines(path):
            pass
        return path


class Model(Input):
    """A bundle, or a run directory with one inside; `recipe` is the one that would make such a model (None: the demo does)."""

    recipe: str | None = None
    takes_checkpoint = False

    def locate(self) -> Path | None:
        from headwise.tasks.bundle_directory import find_bundle

        return find_bundle(Path(self), recipe=self.recipe, takes_checkpoint=self.takes_checkpoint)


class ModelOrCheckpoint(Model):
    """A translator; with the option --checkpoint also a run that is not finished."""

    takes_checkpoint = True


class LanguageBundle(Model):
    """A language model of ours."""

    recipe = "ptb-ngram"


class LanguageModelPath(LanguageBundle):
    """A language model: a bundle, a run or an ARPA file."""

    def locate(self) -> Path | None:
        from headwise.models.ngram.arpa import is_arpa

        return InputFile(self).locate() if is_arpa(Path(self)) else super().locate()


class LabelModel(Model):
    """A classifier or tagger."""

    recipe = "sst2"


class WordVectorModel(Model):
    """Word vectors."""

    recipe = "word-vectors"


class WordReaderModel(Model):
    """Whatever has vectors of words in their sentences."""

    recipe = "english-elmo"


class NamedModel(Model):
    """A model of any task: DIR, an ARPA file, or NAME=DIR."""

    def locate(self) -> Path | None:
        from headwise.models.ngram.arpa import is_arpa
        from headwise.serving.model_names import split_name

        _, path = split_name(self)
        return InputFile(path).locate() if is_arpa(path) else Model(path).locate()


class ModelOrText(Model):
    """A directory is a model, anything else a file of translations."""

    def locate(self) -> Path | None:
        from headwise.tasks.bundle_directory import is_place_of_model

        return super().locate() if is_place_of_model(Path(self)) else SentenceFile(self).locate()


class RecipeName(Input):
    """A recipe file, or the name of a recipe that comes with Headwise."""

    def locate(self) -> Path | None:
        from headwise.tasks.recipe_files import find_recipe

        return find_recipe(str(self))


class ModelOrRecipe(Model):
    """A directory is a model, anything else a recipe."""

    def locate(self) -> Path | None:
        from headwise.tasks.bundle_directory import is_place_of_model

        return super().locate() if is_place_of_model(Path(self)) else RecipeName(self).locate()


class ExistingRun(Input):
    """A run or bundle directory that must be there, whole or damaged."""

    def locate(self) -> Path | None:
        from headwise.tasks.bundle_directory import require_run

        return require_run(Path(self))


class Output(str):
    """A file or directory that is written."""

    @classmethod
    def note(cls) -> str:
        """What the help of every such option adds."""
        return say("; directories that are missing are made", "；缺少的目录会自动建立")

    def check(self, option: str) -> None:
        """Refuse what could only fail later, when the work is done."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            os.stat(
                self
            )  # a name that is too long, links in a circle, a directory that may not be entered
        above = next(parent for parent in Path(self).absolute().parents if parent.exists())
        if not above.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(self))
        if not Path(self).exists() and not os.access(above, os.W_OK | os.X_OK):
            is_read_only = bool(os.statvfs(above).f_flag & os.ST_RDONLY)
            reason = errno.EROFS if is_read_only else errno.EACCES
            raise OSError(reason, os.strerror(reason), str(self))


class OutputFile(Output):
    """A file that is written; another file of this name is replaced."""

    def check(self, option: str) -> None:
        super().check(option)
        if Path(self).is_dir():
            raise UsageError(
                f"{option} {self} is a directory, a file is needed; give the name of a file in it",
                f"{option} {self} 是目录，这里需要文件；请给出其中的文件名",
            )
        if Path(self).exists() and not Path(self).is_file():  # it would be replaced, not written to
            raise UsageError(
                f"{option} {self} is a device or a pipe, a file is needed; give the name of a file",
                f"{option} {self} 是设备或管道，这里需要文件；请给出文件名",
            )


class NewOutput(Output):
    """A file or directory that must not be there yet."""

    def check(self, option: str) -> None:
        super().check(option)
        refuse_existing(Path(self))


class OutputDirectory(Output):
    """A directory of results: the command itself says what it may hold already."""


def check_paths(parsed: argparse.Namespace, names: Mapping[str, str]) -> None:
    """Refuse a command that could not succeed, or that would write over what it reads; `names` are those of the options by `dest`."""
    given = [
        (names.get(dest, dest), one) for dest, value in vars(parsed).items() for one in _each(value)
    ]
    for option, one in given:
        if "\0" in one:
            raise UsageError(
                f"{option} {one!r} cannot be a path; give one without a zero byte",
                f"{option} {one!r} 不能作为路径；请去掉其中的零字节",
            )
    # A wrong model or recipe is told before a wrong text.
    ordered = sorted(given, key=lambda pair: not isinstance(pair[1], Model | RecipeName))
    located = [(option, one.locate()) for option, one in ordered if isinstance(one, Input)]
    inputs = [(option, path) for option, path in located if path is not None]
    for option, one in given:
        if isinstance(one, Output):
            one.check(option)
            _check_owner(option, Path(one))
            _check_inputs(option, Path(one), inputs)
    _check_redirection(inputs)


def _each(value: Any) -> Iterator[Input | Output]:
    for one in value if isinstance(value, list | tuple) else [value]:
        if isinstance(one, Input | Output):
            yield one


def _check_inputs(option: str, path: Path, inputs: Sequence[tuple[str, Path]]) -> None:
    for other, read in inputs:
        if is_same(path, read):
            raise UsageError(
                f"{option} {path} is the file that {other} reads, and would be written over; give another name",
                f"{option} {path} 就是 {other} 要读取的文件，写入会将其覆盖；请换一个名字",
            )
    if path.exists() and identity(sys.stdin) == numbers(path.stat()):
        raise UsageError(
            f"{option} {path} is the file that standard input reads, and would be written over; give another name",
            f"{option} {path} 就是标准输入所读的文件，写入会将其覆盖；请换一个名字",
        )


def _check_owner(option: str, path: Path) -> None:
    refuse_sealed(path)
    if path.name in RUN_FILES and path.exists() and (path.parent / "recipe.yaml").is_file():
        raise UsageError(
            f"{option} {path} belongs to the run in {path.parent}, which cannot go on without it; give another name",
            f"{option} {path} 属于 {path.parent} 中的运行，缺了它就无法继续；请换一个名字",
        )


def _check_redirection(inputs: Sequence[tuple[str, Path]]) -> None:
    """`headwise … FILE >> FILE` would read what it writes."""
    written = identity(sys.stdout)
    for option, path in inputs:
        if written is not None and written == numbers(path.stat()):
            raise UsageError(
                f"standard output is redirected to {path}, which {option} reads; redirect it to another file",
                f"标准输出被重定向到 {path}，而 {option} 正要读取它；请重定向到别的文件",
            )
