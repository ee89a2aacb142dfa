"""What a command reads and what it writes: declared as the types of its options, checked before the
command runs (path_checks.py).

    parser.add_argument("--source", type=TextFilePath)
    parser.add_argument("--output", type=OutputFile)

Missing directories of an output are made when it is written (storage.py); the help of each such
option says so. Tested through `path_checks.py`.
"""

import contextlib
import errno
import os
from pathlib import Path

from headwise.errors import UsageError
from headwise.language import say
from headwise.storage import refuse_existing

STANDARD_INPUT = "-"
"""The name of standard input on a command line, and the default of what is read once."""


class Input(str):
    """A file or directory that is only read; or a text such as `51,56` or `known:ptb`, which is no
    file at all.
    """

    def locate(self) -> Path | None:
        """The path that is read, after all that can be checked of it was checked; None if nothing
        on disk is read.
        """
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
        if self == STANDARD_INPUT:
            raise UsageError(
                "- is standard input, a file that can be read again is needed here; "
                "save it to a file and give its name",
                "- 表示标准输入，而这里需要可以重复读取的文件；请先存成文件，再给出文件名",
            )
        from headwise.data.text_lines import find_text_file

        return find_text_file(Path(self))


class TextFilePath(InputFile):
    """A text of which every line can be decoded; a line that is too long is the command's to deal
    with.
    """

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


class ReadOnce(InputFile):
    """Of a text: it may be standard input or a pipe, because it is read once, from beginning to
    end.
    """

    @property
    def path(self) -> Path | None:
        """What is opened; None for standard input."""
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
    """A text that is read once; of which every line can be decoded."""


class SentenceStream(ReadOnce, SentenceFile):
    """A text that is read once; of which every line can be decoded and is short enough to be held
    in memory.
    """


class ModelPath(Input):
    """A bundle, or a run directory with one inside; `recipe` is the one that would make such a
    model (None: the demo does).
    """

    recipe: str | None = None
    takes_checkpoint = False

    def locate(self) -> Path | None:
        from headwise.tasks.bundle_directory import find_bundle

        return find_bundle(Path(self), recipe=self.recipe, takes_checkpoint=self.takes_checkpoint)


class ModelOrCheckpoint(ModelPath):
    """A translator; with the option --checkpoint also a run that is not finished."""

    takes_checkpoint = True


class LanguageBundlePath(ModelPath):
    """A language model of ours."""

    recipe = "ptb-ngram"


class LanguageModelPath(LanguageBundlePath):
    """A language model: a bundle, a run or an ARPA file."""

    def locate(self) -> Path | None:
        from headwise.models.ngram.arpa import is_arpa

        return InputFile(self).locate() if is_arpa(Path(self)) else super().locate()


class LabelModelPath(ModelPath):
    """A classifier or tagger."""

    recipe = "sst2"


class WordVectorModelPath(ModelPath):
    """Word vectors."""

    recipe = "word-vectors"


class WordReaderPath(ModelPath):
    """Whatever has vectors of words in their sentences."""

    recipe = "english-elmo"


class NamedModelPath(ModelPath):
    """A model of any task: DIR, an ARPA file, or NAME=DIR."""

    def locate(self) -> Path | None:
        from headwise.models.ngram.arpa import is_arpa
        from headwise.serving.work.model_names import split_name

        _, path = split_name(self)
        return InputFile(path).locate() if is_arpa(path) else ModelPath(path).locate()


class ModelOrText(ModelPath):
    """A directory is a model, anything else a file of translations."""

    def locate(self) -> Path | None:
        from headwise.tasks.bundle_directory import is_place_of_model

        return super().locate() if is_place_of_model(Path(self)) else SentenceFile(self).locate()


class RecipeName(Input):
    """A recipe file, or the name of a recipe that comes with Headwise."""

    def locate(self) -> Path | None:
        from headwise.tasks.recipe_files import find_recipe

        return find_recipe(str(self))


class ModelOrRecipe(ModelPath):
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
