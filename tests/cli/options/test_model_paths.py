"""A model of a task that a command is not for is refused before any other file is looked for, with
the sentence of the function that would load it."""

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headwise.cli.main import build_parser
from headwise.cli.options.model_paths import ModelPath
from headwise.errors import CheckpointError
from headwise.exporting.export import export_model
from headwise.language import use_language
from headwise.serving.work.loaded_models import load_model
from headwise.storage import write_manifest
from headwise.tasks.bundle_form import KIND
from headwise.tasks.language.language_model import LanguageModel
from headwise.tasks.memory_building import open_reader
from headwise.tasks.pretraining.contextual_vectors import load_word_reader
from headwise.tasks.pretraining.gap_filling import load_predictor
from headwise.tasks.table import TASKS
from headwise.tasks.translation.translator import Translator
from headwise.tasks.word_vectors.bundle import load_word_vectors
from headwise.training.run_recipe import sealed_recipe
from tests.cli.conftest import Headwise
from tests.cli.named_tasks import name_task

WORDS = [entry.word for entry in TASKS]
TRANSLATION, LANGUAGE, VECTORS, CLASSES, TAGS, MASKED, ELMO = WORDS
SERVED = {TRANSLATION, LANGUAGE, VECTORS, CLASSES, TAGS}
GONE = "nowhere"
COMMANDS: dict[str, tuple[list[str], set[str], Callable[[Path], Any] | None]] = {
    # The command with a file that is missing, the tasks that it is for, and what loads a model.
    "translate --model": (["translate", GONE, "--model"], {TRANSLATION}, Translator.load),
    "evaluate --model": (
        ["evaluate", "--source", GONE, "--reference", GONE, "--model"],
        {TRANSLATION},
        Translator.load,
    ),
    "evaluate --against": (
        ["evaluate", "--hypothesis", GONE, "--source", GONE, "--reference", GONE, "--against"],
        {TRANSLATION},
        Translator.load,
    ),
    "rerank --translator": (
        ["rerank", GONE, "--weight", "translator=1", "--translator"],
        {TRANSLATION},
        Translator.load,
    ),
    "rerank --channel": (
        ["rerank", GONE, "--weight", "channel=1", "--channel"],
        {TRANSLATION},
        Translator.load,
    ),
    "rerank --language-model": (
        ["rerank", GONE, "--weight", "language_model=1", "--language-model"],
        {LANGUAGE},
        LanguageModel.load,
    ),
    "distil TEACHER": (
        ["distil", "--output", "new", "--source", GONE, "--"],
        {TRANSLATION},
        Translator.load,
    ),
    "adapt MODEL": (
        ["adapt", "--data", GONE, "--run", "new", "--"],
        {TRANSLATION},
        Translator.load,
    ),
    "memory build MODEL": (
        ["memory", "build", "--output", "new"],
        {TRANSLATION, LANGUAGE},
        open_reader,
    ),
    "exposure MODEL": (
        ["exposure", "--source", GONE, "--reference", GONE, "--"],
        {TRANSLATION},
        Translator.load,
    ),
    "memory add --model": (["memory", "add", ".", GONE, "--model"], {TRANSLATION, LANGUAGE}, None),
    "memory tune --model": (
        ["memory", "tune", ".", GONE, "--model"],
        {TRANSLATION, LANGUAGE},
        None,
    ),
    "compare parallel": (
        ["compare", "--source", GONE, "--reference", GONE, "parallel"],
        {TRANSLATION},
        Translator.load,
    ),
    "export MODEL": (
        ["export", "--probes", GONE, "--"],
        {TRANSLATION},
        lambda path: export_model(path, "new"),
    ),
    "score --model": (["score", "--file", GONE, "--model"], {LANGUAGE}, LanguageModel.load),
    "generate --model": (["generate", "--model"], {LANGUAGE}, LanguageModel.load),
    "arpa MODEL": (["arpa"], {LANGUAGE}, LanguageModel.load),
    "predict --model": (["predict", "--file", GONE, "--model"], {LANGUAGE, MASKED}, load_predictor),
    "classify --model": (["classify", "--file", GONE, "--model"], {CLASSES}, None),
    "tag --model": (["tag", "--file", GONE, "--model"], {TAGS}, None),
    "nearest --model": (["nearest", "king", "--model"], {VECTORS}, load_word_vectors),
    "vectors score --model": (
        ["vectors", "score", GONE, "--model"],
        {VECTORS},
        load_word_vectors,
    ),
    "vectors export --model": (
        ["vectors", "export", "new", "--model"],
        {VECTORS},
        load_word_vectors,
    ),
    "senses --model": (
        ["senses", "--train", GONE, "--model"],
        {VECTORS, CLASSES, TAGS, MASKED, ELMO},
        load_word_reader,
    ),
    "serve MODEL": (["serve"], SERVED, lambda path: load_model("x", path)),
    "explore MODEL": (["explore"], SERVED, lambda path: load_model("x", path)),
}
ANY_TASK = {"describe MODEL"}
AFTER = {"memory build MODEL": [GONE], "export MODEL": ["new"], "arpa MODEL": ["new.arpa"]}


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield from _options(child)
        elif isinstance(action.type, type) and issubclass(action.type, ModelPath):
            name = (*action.option_strings, str(action.metavar))[0]
            yield f"{parser.prog.removeprefix('headwise ')} {name}"


def test_every_option_that_names_a_model_is_looked_at_here() -> None:
    assert {*_options(build_parser()), "compare parallel"} - ANY_TASK == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("word", WORDS)
def test_a_model_of_another_task_is_refused_before_other_files_are_looked_for(
    name: str, word: str, headwise: Headwise
) -> None:
    words, accepted, load = COMMANDS[name]
    model = name_task(Path("given"), word)
    for language in ("en", "zh"):
        answer = headwise("--lang", language, *words, model, *AFTER.get(name, []))
        is_refused = "given: " in answer.err or "given is made for" in answer.err
        if word in accepted:
            assert not is_refused or "does not list" in answer.err, answer.err
            continue
        assert answer.status in (2, 3), answer.err
        assert GONE not in answer.err
        if load is None:
            continue
        use_language(language)  # type: ignore[arg-type]
        with pytest.raises(CheckpointError) as refused:
            load(model)
        label = "error" if language == "en" else "错误"
        assert answer.err == f"headwise: {label}: {refused.value}\n"


@pytest.mark.parametrize(
    ("command", "word", "sentence"),
    [
        ("classify", TAGS, f"given is made for task={TAGS}; use `headwise tag` with it"),
        ("tag", CLASSES, f"given is made for task={CLASSES}; use `headwise classify` with it"),
        ("tag", LANGUAGE, "given: is a language model, a classifier or tagger is needed"),
    ],
)
def test_classifiers_and_taggers_have_commands_of_their_own(
    command: str, word: str, sentence: str, headwise: Headwise
) -> None:
    name_task(Path("given"), word)
    answer = headwise(command, "--model", "given", "--file", GONE)
    assert sentence in answer.err
    Path("run").mkdir()
    Path("run", "recipe.yaml").write_text(sealed_recipe({"task": word}), encoding="utf-8")
    answer = headwise(command, "--model", "run", "--checkpoint", "last", "--file", GONE)
    assert sentence.replace("given", "run") in answer.err


def test_n_grams_are_exported_as_arpa_alone(headwise: Headwise) -> None:
    name_task(Path("given"), LANGUAGE)
    answer = headwise("export", "given", "new")
    assert "is a language model (a directory is for CTranslate2; n-grams go to" in answer.err
    name_task(Path("other"), TRANSLATION)
    answer = headwise("export", "other", "new.arpa")
    assert "other: is a translator, a language model is needed" in answer.err


@pytest.mark.parametrize("place", ["bundle", "run"])
def test_damage_is_not_taken_for_another_task(place: str, headwise: Headwise) -> None:
    if place == "bundle":
        file = name_task(Path("given"), TRANSLATION) / "recipe.yaml"
        given: list[str] = []
    else:
        file, given = Path("given", "recipe.yaml"), ["--checkpoint", "last"]
        file.parent.mkdir()
        file.write_text(sealed_recipe({"task": TRANSLATION}), encoding="utf-8")
    whole = file.read_text(encoding="utf-8")
    file.write_text(whole.replace(TRANSLATION, "translatiom"), encoding="utf-8")
    answer = headwise("translate", "--model", "given", *given, GONE)
    assert answer.status == 3
    assert "SHA-256" in answer.err
    assert "is needed" not in answer.err


def test_a_task_that_nobody_knows_is_refused_too(headwise: Headwise) -> None:
    given = name_task(Path("given"), TRANSLATION)
    (given / "recipe.yaml").write_text("task: juggling\n", encoding="utf-8")
    write_manifest(given, kind=KIND)
    answer = headwise("score", "--model", "given", "--file", GONE)
    assert "is a model of task 'juggling', a language model is needed" in answer.err
