"""What a user does with a recipe, in this process: train it, look at the model, ask it, and read
every answer.

A recipe is refused with a sentence of ours before anything is learnt (status 2 or 3), or every
command about it ends with status 0 and with JSON that holds no NaN. Anything else is returned as a
fault, in words that name the command.
"""

import contextlib
import io
import json
import shutil
import signal
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from headwise.cli.main import main
from tests.proofs.random_recipes import Files

SECONDS = 180
"""For one command, on a busy machine: more is a hang."""
SENTENCES = [
    ("the old dog sleeps in the house .", "der alte Hund schläft im Haus ."),
    ("a cat sees the dog .", "eine Katze sieht den Hund ."),
    ("the child reads a book because it is good .", "das Kind liest ein Buch , weil es gut ist ."),
    ("we drink tea .", "wir trinken Tee ."),
    ("the street is too wide .", "die Straße ist zu breit ."),
    ("a bank by the river", "ein Ufer am Fluss"),
]


@dataclass(frozen=True)
class Said:
    """How a command ended."""

    status: int
    out: str
    err: str


def write_files(directory: Path) -> Files:
    """A dozen lines of each form."""
    lines = [(f"{en} {number}", f"{de} {number}") for number in range(2) for en, de in SENTENCES]
    english = [en for en, _ in lines]
    found = Files(
        *(
            directory / name
            for name in ("pairs", "text.txt", "classes.tsv", "tags.conllu", "senses.tsv")
        )
    )
    for language, texts in (("en", english), ("de", [de for _, de in lines])):
        (directory / f"pairs.{language}").write_text("\n".join(texts) + "\n", encoding="utf-8")
    found.text.write_text("\n".join(english) + "\n", encoding="utf-8")
    found.classes.write_text(
        "".join(f"{text}\t{len(text) % 3}\n" for text in english), encoding="utf-8"
    )
    found.tags.write_text("\n".join(map(_tag, english)) + "\n", encoding="utf-8")
    senses = [
        "dog\tanimal\t2\tthe old dog sleeps .",
        "dog\tsausage\t2\ta hot dog .",
        "dog\tanimal\t1\ta dog sees it .",
    ]
    found.senses.write_text("\n".join(senses * 4) + "\n", encoding="utf-8")
    return found


def _tag(text: str) -> str:
    """A sentence of CoNLL-U; the tag of a word follows from its length."""
    rows = [
        [str(number), word, word, f"T{len(word) % 3}", *"______"]
        for number, word in enumerate(text.split(), 1)
    ]
    return "".join("\t".join(row) + "\n" for row in rows)


def run_command(arguments: Sequence[str]) -> Said:
    """In this process; an exception that leaves `main` is a traceback for a user."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), _in_time():
        try:
            status = main(list(arguments))
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 1
        except BaseException:
            return Said(1, out.getvalue(), traceback.format_exc())
    return Said(status, out.getvalue(), err.getvalue())


@contextlib.contextmanager
def _in_time() -> Iterator[None]:
    def stop(number: int, frame: Any) -> None:
        raise TimeoutError(f"more than {SECONDS} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def questions(task: str, recipe: dict[str, Any], model: Path, files: Files) -> list[list[str]]:
    """The commands that answer with a model of this task."""
    use, text = ["--model", str(model), "--json"], "the dog sleeps ."
    always = [["doctor", str(model), "--json"]]
    match task:
        case "translation":
            asked = ["translate", *use, "--text", text, "--text", "xyzzy 茶"]
            attends = recipe["model"].get("attention", {}).get("kind") != "none"
            maps = ["--attention", str(model.parent / "maps.json")] if attends else []
            # The recipe's own search, and one that no phrase or length of the recipe stands in the
            # way of.
            plain = [
                "kind=beam",
                "size=2",
                "forbidden=[]",
                "required=[]",
                "prefix=''",
                "min_length=0",
            ]
            described = ["describe", str(model), "--json"]
            return [
                *always,
                described,
                asked,
                [*asked, *maps, "--n-best", "2", *(x for one in plain for x in ("--set", one))],
            ]
        case "language_modeling":
            asked = [["score", *use, text, "a cat"], ["predict", *use, "the dog ____"]]
            is_counted = recipe["model"].get("kind", "ngram") == "ngram"
            return [
                *always,
                *asked,
                *([] if is_counted else [["generate", *use, "the dog", "--length", "5"]]),
            ]
        case "classification":
            return [
                *always,
                ["classify", *use, text, "xyzzy"],
                ["classify", *use, "--measure", str(files.classes)],
            ]
        case "tagging":
            return [
                *always,
                ["tag", *use, text, "xyzzy"],
                ["tag", *use, "--measure", str(files.tags)],
            ]
        case "masked_language":
            return [*always, ["predict", *use, "the ____"], senses(use, files)]
        case "bidirectional_language":
            return [*always, senses(use, files)]
        case "word_vectors":
            return [["nearest", *_words(model)[:2], *use]]
    raise AssertionError(f"a model of task {task!r} was made, and nothing is asked of it")


def _words(model: Path) -> list[str]:
    words: list[str] = json.loads((model / "words.json").read_text(encoding="utf-8"))["words"]
    return words


def senses(use: Sequence[str], files: Files) -> list[str]:
    return [
        "senses",
        *use,
        "--word",
        "dog",
        "--train",
        str(files.senses),
        "--test",
        str(files.senses),
    ]


def use_recipe(recipe: dict[str, Any], files: Files, directory: Path) -> tuple[bool, str | None]:
    """Whether the recipe was accepted, and what went wrong, if anything."""
    directory.mkdir()
    try:
        file, run = directory / "recipe.yaml", directory / "run"
        file.write_text(yaml.safe_dump(recipe, allow_unicode=True), encoding="utf-8")
        trained = run_command(["train", str(file), "--run", str(run), "--json"])
        if trained.status in (2, 3):
            return False, _judge_refusal(trained, run)
        if fault := _judge(trained, "train"):
            return True, fault
        for command in questions(recipe.get("task", "translation"), recipe, run / "model", files):
            if fault := _judge(run_command(command), " ".join(command)):
                return True, fault
        return True, None
    finally:
        shutil.rmtree(directory)


def _judge_refusal(said: Said, run: Path) -> str | None:
    if "Traceback" in said.err or "headwise: error: " not in said.err:
        return f"train was refused without a sentence of ours:\n{said.err[-3000:]}"
    if list(run.glob("checkpoints/step-*")):
        return f"train was refused after it had learnt:\n{said.err[-3000:]}"
    return None


def _judge(said: Said, command: str) -> str | None:
    if said.status != 0:
        return f"{command}: status {said.status}\n{said.err[-3000:]}"
    try:
        for line in [said.out] if said.out.startswith(("{\n", "[\n")) else said.out.splitlines():
            json.loads(line, parse_constant=_refuse)
    except ValueError as error:
        return f"{command}: {error} in what it printed\n{said.out[:2000]}"
    return None


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no number")
