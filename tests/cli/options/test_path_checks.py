"""No command writes over what it reads, by whatever name; no output goes where it would do damage;
help says what becomes of directories."""

import argparse
import gzip
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headwise.cli.main import build_parser
from headwise.cli.options.paths import Output
from tests.cli.conftest import Headwise
from tests.cli.named_tasks import name_task
from tests.processes import run_python

MODEL, LANGUAGE, WORDS, CLASSES, TAGS = "model", "language", "words", "classes", "tags"
MODELS = {
    MODEL: "translation",
    LANGUAGE: "language_modeling",
    WORDS: "word_vectors",
    CLASSES: "classification",
    TAGS: "tagging",
}
NUMBERS = "1,2"


@pytest.fixture(autouse=True)
def _files() -> None:
    """Texts to read, and directories that name a task; no command may come so far as to load a
    model."""
    for name in ("s.en", "s.de", "h.de", "a.de"):
        Path(name).write_text(f"{name}\n", encoding="utf-8")
    Path("numbers.svg").write_text("1,2\n", encoding="utf-8")
    Path("senses.png").write_text("a\n", encoding="utf-8")
    Path("keys.html").write_text("a\n", encoding="utf-8")
    Path("x.bin").write_bytes(b"1 2\n")
    for name, task in MODELS.items():
        name_task(Path(name), task)


EVALUATE = ["evaluate", "--model", MODEL, "--source", "s.en", "--reference", "s.de"]
READY = ["evaluate", "--hypothesis", "h.de", "--reference", "s.de", "--against", "a.de"]
SENSES = ["senses", "--model", WORDS, "--test", "s.en", "--train"]
READ_AND_WRITTEN = [
    ([*EVALUATE, "--output"], "s.en", "--source"),
    ([*EVALUATE, "--output"], "s.de", "--reference"),
    ([*READY, "--output"], "h.de", "--hypothesis"),
    ([*READY, "--output"], "a.de", "--against"),
    (["translate", "--model", MODEL, "keys.html", "--attention"], "keys.html", "FILE"),
    (
        ["attend", "--keys", "numbers.svg", "--values", NUMBERS, "--queries", "1", "--plot"],
        "numbers.svg",
        "--keys",
    ),
    (
        ["attend", "--example", "waist", "--parameter", "W=numbers.svg", "--plot"],
        "numbers.svg",
        "--parameter",
    ),
    ([*SENSES, "senses.png", "--plot"], "senses.png", "--train"),
]


def _symbolic(name: str) -> str:
    Path("links").mkdir(exist_ok=True)
    link = Path("links", name)
    link.symlink_to(Path(name).absolute())
    return str(link)


def _hard(name: str) -> str:
    link = f"other-{name}"
    os.link(name, link)
    return link


NAMES: dict[str, Callable[[str], str]] = {
    "same name": str,
    "relative": lambda name: f"./{MODEL}/../{name}",
    "absolute": lambda name: str(Path(name).absolute()),
    "symbolic link": _symbolic,
    "hard link": _hard,
}


@pytest.mark.parametrize("how", NAMES)
@pytest.mark.parametrize(("words", "name", "option"), READ_AND_WRITTEN)
def test_what_is_read_is_not_written(
    words: list[str], name: str, option: str, how: str, headwise: Headwise
) -> None:
    output = NAMES[how](name)
    before = _snapshot()
    answer = headwise(*words, output)
    assert (
        answer.status,
        f"is the file that {option} reads, and would be written over" in answer.err,
    ) == (2, True)
    assert _snapshot() == before
    assert "写入会将其覆盖" in headwise("--lang", "zh", *words, output).err


def test_a_packed_file_that_was_found_by_its_short_name(headwise: Headwise) -> None:
    Path("packed.en.gz").write_bytes(gzip.compress(b"a\n"))
    words = ["evaluate", "--model", MODEL, "--source", "packed.en", "--reference", "s.de"]
    answer = headwise(*words, "--output", "packed.en.gz")
    assert (answer.status, "is the file that --source reads" in answer.err) == (2, True), answer.err


def _snapshot() -> dict[str, bytes | str]:
    return {
        str(path): os.readlink(path) if path.is_symlink() else path.read_bytes()
        for path in sorted(Path().rglob("*"))
        if path.is_symlink() or path.is_file()
    }


WRITERS = {
    "train --run": ["train", "pocket", "--run"],
    "demo --run": ["demo", "--run"],
    "distil --output": ["distil", MODEL, "--output"],
    "compare --directory": ["compare", "pocket", "model.norm.kind=layer,rms", "--directory"],
    "exposure --plot": ["exposure", MODEL, "--plot"],
    "compare --plot": ["compare", "parallel", MODEL, "--plot"],
    "translate --attention": ["translate", "--model", MODEL, "--text", "a", "--attention"],
    "evaluate --output": [*EVALUATE, "--output"],
    "adapt --run": ["adapt", MODEL, "--data", "s", "--run"],
    "memory build --output": ["memory", "build", MODEL, "s", "--output"],
    "export OUTPUT": ["export", MODEL],
    "import MODEL": ["import", "."],
    "arpa FILE": ["arpa", LANGUAGE],
    "attend --plot": ["attend", "--example", "waist", "--plot"],
    "nearest --plot": ["nearest", "a", "--model", WORDS, "--plot"],
    "senses --plot": [*SENSES, "s.en", "--plot"],
    "vectors export FILE": ["vectors", "export", "--model", WORDS],
    "vectors import --to": ["vectors", "import", "x.bin", "--to"],
    "key --keys": ["key", "alice", "--keys"],
}
ENDINGS = {
    "arpa FILE": ".arpa",
    "translate --attention": ".html",
    "attend --plot": ".png",
    "compare --plot": ".png",
    "exposure --plot": ".png",
    "nearest --plot": ".png",
    "senses --plot": ".png",
}


def _outputs(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield from _outputs(child)
        elif isinstance(action.type, type) and issubclass(action.type, Output):
            name = (*action.option_strings, str(action.metavar))[0]
            yield f"{parser.prog.removeprefix('headwise ')} {name}"
            assert "missing directories are created" in str(action.help)


def test_every_output_is_looked_at_here() -> None:
    assert set(_outputs(build_parser())) == set(WRITERS)


@pytest.mark.parametrize("writer", WRITERS)
def test_nothing_is_written_into_a_model(writer: str, headwise: Headwise) -> None:
    before = _snapshot()
    for place in (f"{MODEL}/new", f"{MODEL}/deeper/new", f"links/{MODEL}/new"):
        if place.startswith("links"):
            Path(_symbolic(MODEL))
        answer = headwise(*WRITERS[writer], place + ENDINGS.get(writer, ""))
        assert (answer.status, "whose files are sealed by checksums" in answer.err) == (2, True), (
            answer.err
        )
    assert {
        name: content for name, content in _snapshot().items() if not name.startswith("links")
    } == before


@pytest.mark.parametrize("writer", WRITERS)
def test_a_place_that_cannot_be_written_is_told_before_the_work(
    writer: str, headwise: Headwise
) -> None:
    answer = headwise(*WRITERS[writer], "s.en/new" + ENDINGS.get(writer, ""))
    assert (answer.status, "a file stands where a directory is needed" in answer.err) == (
        2,
        True,
    ), answer.err


def test_files_of_a_run_are_not_written_over(headwise: Headwise) -> None:
    Path("run").mkdir()
    for name in ("recipe.yaml", "log.jsonl", "LATEST"):
        Path("run", name).write_text("x", encoding="utf-8")
    for name in ("recipe.yaml", "log.jsonl", "LATEST"):
        answer = headwise(*EVALUATE, "--output", f"run/{name}")
        assert (answer.status, "belongs to the run in run" in answer.err) == (2, True), answer.err
    directory = headwise(*EVALUATE, "--output", "run")
    assert (directory.status, "is a directory, a file is needed" in directory.err) == (2, True)
    os.mkfifo("pipe")
    answer = headwise(*EVALUATE, "--output", "pipe")
    assert (answer.status, "is a device or a pipe" in answer.err) == (2, True), answer.err
    assert Path("pipe").is_fifo()


def test_redirections_count_as_names() -> None:
    """The shell opens these files, so it has to be a process of its own."""
    program = [sys.executable, "-m", "headwise"]
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    Path("my.yaml").write_text("task: translation\n", encoding="utf-8")
    with Path("my.yaml").open("a", encoding="utf-8") as output:
        appended = run_python(
            [*program, "recipes", "my.yaml"],
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            timeout=120,
        )
    assert (appended.returncode, "standard output is redirected to my.yaml" in appended.stderr) == (
        2,
        True,
    )
    assert Path("my.yaml").read_text(encoding="utf-8") == "task: translation\n"
    with Path("keys.html").open(encoding="utf-8") as source:
        given = run_python(
            [*program, "translate", "--model", MODEL, "--attention", "keys.html"],
            stdin=source, capture_output=True, text=True, env=environment, timeout=120,
        )  # fmt: skip
    assert (given.returncode, "is the file that standard input reads" in given.stderr) == (
        2,
        True,
    ), given.stderr
    for words in (
        ["translate", "--model", MODEL],
        ["translate", "--model", MODEL, "-"],
        ["score", "--model", LANGUAGE],
        ["predict", "--model", LANGUAGE, "--file", "-"],
        ["classify", "--model", CLASSES],
        ["tag", "--model", TAGS],
    ):
        with (
            Path("s.en").open(encoding="utf-8") as source,
            Path("s.en").open("a", encoding="utf-8") as output,
        ):
            both = run_python(
                [*program, *words],
                stdin=source,
                stdout=output,
                stderr=subprocess.PIPE,
                text=True,
                env=environment,
                timeout=120,
            )
        assert (
            both.returncode,
            "redirected to the file that standard input reads" in both.stderr,
        ) == (2, True), words
    assert Path("s.en").read_text(encoding="utf-8") == "s.en\n"


@pytest.mark.parametrize(
    "words",
    [
        [*EVALUATE[:-1], "s.de", "--source"],
        [*EVALUATE[:-1]],
        ["export", MODEL, "new", "--probes"],
        ["score", "--model", LANGUAGE, "--pairs"],
        [*SENSES],
    ],
)
def test_what_is_read_again_is_no_pipe(words: list[str], headwise: Headwise) -> None:
    answer = headwise(*words, "-")
    assert (
        answer.status,
        "- is standard input, a file that can be read again is needed" in answer.err,
    ) == (2, True)
    os.mkfifo("pipe")
    answer = headwise(*words, "pipe")
    assert (
        answer.status,
        "is a pipe or device, a file that can be read again is needed" in answer.err,
    ) == (3, True)


@pytest.mark.parametrize(
    "words",
    [
        ["predict", "--model", LANGUAGE, "--file"],
        ["score", "--model", LANGUAGE, "--file"],
        ["classify", "--model", CLASSES, "--file"],
        ["tag", "--model", TAGS, "--file"],
        ["translate", "--model", MODEL],
        ["export", MODEL, "new", "--probes"],
        [*EVALUATE[:-1], "bad.txt", "--source"],
    ],
)
def test_a_bad_line_is_found_before_the_first_answer(words: list[str], headwise: Headwise) -> None:
    Path("bad.txt").write_bytes(b"good\ngood\nb\xffd\n")
    answer = headwise(*words, "bad.txt")
    assert (answer.status, answer.out) == (3, "")
    assert "bad.txt:3: byte 11 (0xff) is not UTF-8" in answer.err
