"""`headwise compare lineage`: language models from n-grams to GPT, compared on one text.

n-grams, neural n-gram, RNN, LSTM and GPT answer the same questions:

    perplexity of the test text · parameters · training time · words a second
    which is more natural: a line of the test text, or the same line with two neighbouring words
    exchanged?  (the share of lines decided rightly)
    which word comes next?  (the three best after the first half of a line)

All models that are trained have the same budget: the same number of updates with the same number of
tokens; n-grams are counted. Every model is an ordinary run below the directory, so a second call
keeps finished runs and resumes the others. If the text has changed since, all of them are trained
again.

Tested with tiny budgets: the table, a second call, a changed text, Chinese, and a directory that
holds another comparison.
"""

import hashlib
import shutil
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from headwise.comparing.lineage_table import (
    Lineage,
    LineageModel,
    Questions,
    as_markdown,
    choose_questions,
    exchange_neighbours,
    is_spaced,
)
from headwise.comparing.own_directory import require_own_directory
from headwise.data.splits import Part
from headwise.errors import HeadwiseError, UsageError
from headwise.language import say
from headwise.settings import apply_overrides, check_settings, read_settings_file
from headwise.storage import read_json, write_json, write_text
from headwise.tasks.arguments import require_path
from headwise.tasks.events import Events, Silence
from headwise.tasks.language.language_model import LanguageModel
from headwise.tasks.language.recipe import LanguageRecipe
from headwise.tasks.language.text import read_part
from headwise.tasks.machine import describe_machine
from headwise.tasks.run import train

FILE = "lineage.json"
TEXT = "text.json"
MAX_ASKED = 200
MAX_LINES = 2000

BASE: Mapping[str, Any] = {
    "task": "language_modeling",
    "data": {
        "language": "en",
        "train": "pocket:train:10000",
        "valid": "pocket:valid:300",
        "test": "pocket:test:1000",
    },
    "text": {"kind": "words", "size": 10_000},
    "training": {
        "objective": {"label_smoothing": 0},
        "batch_tokens": 1024,
        "steps": 300,
        "schedule": {"kind": "cosine", "peak": 4e-3, "warmup": 30},
        "validate_every": 100,
        "checkpoint_every": 100,
    },
}
MODELS: Mapping[str, Mapping[str, Any]] = {
    "add-one 3-gram": {"kind": "ngram", "order": 3, "smoothing": {"kind": "add_k"}},
    "Katz 3-gram": {"kind": "ngram", "order": 3, "smoothing": {"kind": "katz"}},
    "Kneser-Ney 5-gram": {"kind": "ngram", "order": 5},
    "NNLM": {"kind": "neural_ngram", "order": 5, "dim": 64, "hidden": 128},
    "RNN": {"kind": "recurrent", "cell": "rnn", "dim": 128, "hidden": 128, "layers": 1},
    "LSTM": {"kind": "recurrent", "cell": "lstm", "dim": 128, "hidden": 128, "layers": 1},
    "GPT": {
        "kind": "decoder_only",
        "dim": 128,
        "layers": 2,
        "heads": 4,
        "dropout": {"residual": 0.0, "embedding": 0.0},
    },
}


def compare_lineage(
    *,
    directory: Path | str,
    overrides: Sequence[str] = (),
    models: Sequence[str] = (),
    sentences: tuple[str, str] | None = None,
    beginning: str | None = None,
    events: Events | None = None,
) -> Lineage:
    """Train every model or take its finished run, ask all of them, and write lineage.json and
    lineage.md.

    `sentences` (the natural one first) and `beginning` are asked instead of a line of the test
    text.
    """
    watcher = events or Silence()
    place = require_path(directory, "directory", "runs/lineage")
    require_own_directory(place, own=("runs", FILE, TEXT))
    recipes = {name: _recipe(name, overrides) for name in models or MODELS}
    some = next(iter(recipes.values()))
    lines = list(islice(read_part(some, "test"), MAX_LINES))
    questions = choose_questions(lines or [""], sentences=sentences, beginning=beginning)
    results = _take(place, recipes, watcher)
    for number, (name, recipe) in enumerate(recipes.items(), start=1):
        watcher.note(f"[{number}/{len(recipes)}] {name}")
        if not results[name]:
            run = place / "runs" / _folder(name)
            resume = (run / "LATEST").exists()
            results[name] = dict(train(recipe, run=run, resume=resume, events=watcher).results)
    watcher.note(say("asking every model …", "正在询问各个模型……"))
    found = [_ask(name, place, results[name], lines, questions) for name in recipes]
    lineage = Lineage(
        place, describe_machine(some.training.device), _budget(recipes), questions, tuple(found)
    )
    write_json(
        place / FILE, {"when": datetime.now(UTC).isoformat(timespec="seconds"), **lineage.as_dict()}
    )
    write_text(place / "lineage.md", as_markdown(lineage))
    return lineage


def _recipe(name: str, overrides: Sequence[str]) -> LanguageRecipe:
    """The recipe of one model: the base, the model's own settings, and the caller's overrides.
    n-grams take no training settings.
    """
    if name not in MODELS:
        raise UsageError(
            f"{name!r} is no model of the lineage; there are {', '.join(MODELS)}",
            f"{name!r} 不是谱系中的模型；有：{'、'.join(MODELS)}",
        )
    if wrong := [
        one
        for one in overrides
        if one.partition("=")[0].split(".")[0] in ("model", "task", "reading")
    ]:
        raise UsageError(
            f"{wrong[0]} cannot be set here: each model has its own; the lineage takes data.…, "
            "text.… and training.…",
            f"{wrong[0]} 不能在此设置：每个模型各有自己的设置；谱系比较只接受 data.…、text.… 与 "
            "training.…",
        )
    data: dict[str, Any] = {
        key: dict(value) if isinstance(value, Mapping) else value for key, value in BASE.items()
    }
    if MODELS[name]["kind"] == "ngram":
        data.pop("training")
        overrides = [one for one in overrides if not one.startswith("training.")]
    recipe = check_settings(
        LanguageRecipe, apply_overrides({**data, "model": dict(MODELS[name])}, overrides)
    )
    if not recipe.data.test:
        raise UsageError(
            "data.test is empty, and perplexity of the test text is what is compared; give "
            "data.test=…",
            "data.test 为空，而比较的正是测试文本的困惑度；请给出 data.test=…",
        )
    return recipe


def _folder(name: str) -> str:
    return name.lower().replace(" ", "-")


def _take(
    place: Path, recipes: Mapping[str, LanguageRecipe], watcher: Events
) -> dict[str, dict[str, Any]]:
    """The finished runs of these recipes on this text; runs on another text are deleted."""
    results = {
        name: _finished(place / "runs" / _folder(name), name, recipe)
        for name, recipe in recipes.items()
    }
    found = _fingerprint(next(iter(recipes.values())))
    old = [run for name in MODELS if (run := place / "runs" / _folder(name)).exists()]
    if old and _recorded(place / TEXT) != found:
        watcher.note(
            say(
                f"the text is not the one that {place} was made with: all models are trained again",
                f"文本与 {place} 所用的不同：全部模型重新训练",
            )
        )
        for run in old:
            shutil.rmtree(run)
        results = {name: {} for name in recipes}
    place.mkdir(parents=True, exist_ok=True)
    write_json(place / TEXT, {"sha256": found})
    return results


def _fingerprint(recipe: LanguageRecipe) -> str:
    """A hash of every line that is trained or measured on, whatever the files are called."""
    digest = hashlib.sha256()
    parts: tuple[Part, ...] = ("train", "valid", "test")
    for part in parts:
        digest.update(f"\n{part}\n".encode())
        for line in read_part(recipe, part):
            digest.update(f"{line}\n".encode())
    return digest.hexdigest()


def _recorded(file: Path) -> str | None:
    try:
        held = read_json(file)
    except HeadwiseError:
        return None
    return held.get("sha256") if isinstance(held, dict) else None


def _finished(run: Path, name: str, recipe: LanguageRecipe) -> dict[str, Any]:
    """The results of a finished run with exactly this recipe, or None. A run with another recipe is
    the caller's mistake.
    """
    try:
        held = check_settings(LanguageRecipe, read_settings_file(run / "recipe.yaml"))
    except HeadwiseError:
        return {}
    if held != recipe:
        raise UsageError(
            f"{run.parent.parent} holds a comparison with other settings ({name}); give another "
            "--directory",
            f"{run.parent.parent} 中已有设置不同的比较（{name}）；请另给 --directory",
        )
    try:
        results = read_json(run / "model" / "results.json")
    except HeadwiseError:
        return {}
    return results if "test" in results else {}


def _ask(
    name: str, place: Path, results: Mapping[str, Any], lines: Sequence[str], questions: Questions
) -> LineageModel:
    model = LanguageModel.load(place / "runs" / _folder(name))
    model.score_text(lines[:8])  # one-time set-up is not measured
    started = time.perf_counter()
    asked = model.score_text(lines)
    speed = asked.num_predictions / (time.perf_counter() - started)
    spaced = is_spaced(lines)
    pairs = [(line, exchange_neighbours(line, spaced=spaced)) for line in lines[:MAX_ASKED]]
    pairs = [pair for pair in pairs if pair[0] != pair[1]]
    scores = model.score([text for pair in pairs for text in pair])
    right = sum(
        one.total > other.total for one, other in zip(scores[::2], scores[1::2], strict=True)
    )
    natural, odd = model.score([questions.natural, questions.odd])
    # The time of the training loop for networks and of counting for n-grams, without reading the
    # text.
    seconds = float(results.get("counting_seconds", results["training_seconds"]))
    learnt = results.get("target_tokens", results["tokens"])
    return LineageModel(
        name=name,
        perplexity=results["test"]["perplexity"],
        parameters=int(results["parameters"]),
        training_seconds=seconds,
        training_words_per_second=learnt / seconds if seconds > 0 else None,
        asking_words_per_second=speed,
        told_apart=right / max(1, len(pairs)),
        preferred=natural.total > odd.total,
        next_words=tuple(one.label for one in model.predict(questions.beginning, count=3)),
    )


def _budget(recipes: Mapping[str, LanguageRecipe]) -> str:
    learning = [recipe.training for recipe in recipes.values() if recipe.model.kind != "ngram"]
    if not learning:
        return say("counting only", "只有计数")
    steps, tokens = learning[0].steps, learning[0].batch_tokens
    return say(
        f"budget of each network: {steps:,} updates of {tokens:,} tokens; n-grams are counted "
        "once; seconds without reading the text",
        f"每个网络的预算：{steps:,} 次更新，每次 {tokens:,} 词元；n 元语法只计数一遍；"
        "秒数不含读取文本",
    )
