"""The lineage on one scoreboard: n-grams, neural n-gram, RNN, LSTM, GPT, on one text, each asked the same questions.

    perplexity of the test text · parameters · training time · words a second, learning and asking
    which is more natural: a line of the test text, or the same with two neighbours exchanged?  (how many are told apart)
    which word comes next?  (the three best after the first half of a line)

The budget is one for all that learn: the same number of updates of the same number of tokens; counting needs none. Every rung is
an ordinary run of its own below the directory, so a second call takes what is finished and goes on with what was cut short.

Tested with tiny budgets: the table, going on, and a directory that holds another comparison.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headwise.data.texts import read_texts
from headwise.errors import HeadwiseError, UsageError
from headwise.language import say
from headwise.settings import apply_overrides, check_settings, read_settings_file
from headwise.storage import read_json, write_json, write_text
from headwise.tasks.arguments import require_path
from headwise.tasks.events import Events, Silence
from headwise.tasks.language_model import LanguageModel
from headwise.tasks.language_recipe import LanguageRecipe
from headwise.tasks.machine import describe_machine
from headwise.tasks.running import train

FILE = "lineage.json"
MAX_ASKED = 200
MAX_LINES = 2000

BASE: Mapping[str, Any] = {
    "task": "language_modeling",
    "data": {"language": "en", "train": "pocket:train:10000", "valid": "pocket:valid:300", "test": "pocket:test:1000"},
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
RUNGS: Mapping[str, Mapping[str, Any]] = {
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


@dataclass(frozen=True)
class Rung:
    """One model of the lineage and what it has to show."""

    name: str
    perplexity: float | None
    parameters: int
    training_seconds: float
    training_words_per_second: float
    asking_words_per_second: float
    told_apart: float
    """Share of test lines that are more natural to it than the same line with two neighbours exchanged."""
    preferred: bool
    next_words: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        return {**self.__dict__, "next_words": list(self.next_words)}


@dataclass(frozen=True)
class Lineage:
    """The scoreboard."""

    directory: Path
    machine: Mapping[str, Any]
    budget: str
    natural: str
    odd: str
    beginning: str
    rungs: tuple[Rung, ...]

    def as_dict(self) -> dict[str, Any]:
        facts = {name: value for name, value in self.__dict__.items() if name not in ("directory", "rungs")}
        return {**facts, "rungs": [rung.as_dict() for rung in self.rungs]}

    def headings(self) -> tuple[str, ...]:
        return (
            say("model", "模型"),
            say("test perplexity", "测试困惑度"),
            say("parameters", "参数"),
            say("seconds of training", "训练秒数"),
            say("words/s learning", "学习 词/秒"),
            say("words/s asked", "提问 词/秒"),
            say("lines told apart", "分辨语句"),
            say("next word", "下一个词"),
        )

    def rows(self) -> list[tuple[str, ...]]:
        return [
            (
                rung.name,
                "∞" if rung.perplexity is None else f"{rung.perplexity:.1f}",
                f"{rung.parameters:,}",
                f"{rung.training_seconds:.1f}",
                f"{rung.training_words_per_second:,.0f}",
                f"{rung.asking_words_per_second:,.0f}",
                f"{100 * rung.told_apart:.1f} %",
                " · ".join(rung.next_words),
            )
            for rung in self.rungs
        ]

    def remarks(self) -> list[str]:
        liked = [rung.name for rung in self.rungs if rung.preferred]
        names = ", ".join(liked) or say("none", "无")
        return [
            self.budget,
            say(
                f"{self.natural!r} before {self.odd!r}: {names}", f"认为 {self.natural!r} 比 {self.odd!r} 自然：{names}"
            ),
            say(f"next word after {self.beginning!r}", f"{self.beginning!r} 的下一个词"),
        ]


def compare_lineage(
    *, directory: Path | str, overrides: Sequence[str] = (), rungs: Sequence[str] = (), events: Events | None = None
) -> Lineage:
    """Train (or take) every rung, ask all of them, and write lineage.json and lineage.md."""
    watcher = events or Silence()
    place = require_path(directory, "directory", "runs/lineage")
    recipes = {name: _recipe(name, overrides) for name in rungs or RUNGS}
    results = {name: _finished(place, name, recipe) or {} for name, recipe in recipes.items()}
    for number, (name, recipe) in enumerate(recipes.items(), start=1):
        watcher.note(f"[{number}/{len(recipes)}] {name}")
        if not results[name]:
            run = place / "runs" / _folder(name)
            resume = (run / "LATEST").exists()
            results[name] = dict(train(recipe, run=run, resume=resume, events=watcher).results)
    some = next(iter(recipes.values()))
    lines = [line for line, _ in zip(read_texts(some.data, "test"), range(MAX_LINES), strict=False)]
    natural, odd, beginning = _questions(lines)
    watcher.note(say("asking every model …", "正在询问各个模型……"))
    found = [_ask(name, place, results[name], lines, (natural, odd, beginning)) for name in recipes]
    lineage = Lineage(
        place, describe_machine(some.training.device), _budget(recipes), natural, odd, beginning, tuple(found)
    )
    write_json(place / FILE, {"when": datetime.now(UTC).isoformat(timespec="seconds"), **lineage.as_dict()})
    write_text(place / "lineage.md", as_markdown(lineage))
    return lineage


def _recipe(name: str, overrides: Sequence[str]) -> LanguageRecipe:
    """The base, the rung's model, and what the caller says for all; counting takes nothing of how to train."""
    if name not in RUNGS:
        raise UsageError(
            f"{name!r} is no rung of the lineage; there are {', '.join(RUNGS)}",
            f"{name!r} 不是谱系中的模型；有：{'、'.join(RUNGS)}",
        )
    if wrong := [one for one in overrides if one.partition("=")[0].split(".")[0] in ("model", "task", "reading")]:
        raise UsageError(
            f"{wrong[0]} would be said for all models, and each has its own; the lineage takes data.…, text.… and training.…",
            f"{wrong[0]} 会对所有模型生效，而各模型自有设置；谱系比较只接受 data.…、text.… 与 training.…",
        )
    data: dict[str, Any] = {key: dict(value) if isinstance(value, Mapping) else value for key, value in BASE.items()}
    if RUNGS[name]["kind"] == "ngram":
        data.pop("training")
        overrides = [one for one in overrides if not one.startswith("training.")]
    recipe = check_settings(LanguageRecipe, apply_overrides({**data, "model": dict(RUNGS[name])}, overrides))
    if not recipe.data.test:
        raise UsageError(
            "data.test is empty, and perplexity of the test text is what is compared; give data.test=…",
            "data.test 为空，而比较的正是测试文本的困惑度；请给出 data.test=…",
        )
    return recipe


def _folder(name: str) -> str:
    return name.lower().replace(" ", "-")


def _finished(place: Path, name: str, recipe: LanguageRecipe) -> dict[str, Any] | None:
    """Results of a run that is done with exactly this recipe; another recipe there is the caller's mistake."""
    model = place / "runs" / _folder(name) / "model"
    try:
        held = check_settings(LanguageRecipe, read_settings_file(model / "recipe.yaml"))
        results = read_json(model / "results.json")
    except HeadwiseError:
        return None
    if held != recipe:
        raise UsageError(
            f"{place} holds a comparison with other settings ({name}); give another --directory",
            f"{place} 中已有设置不同的比较（{name}）；请另给 --directory",
        )
    return results if "test" in results else None


def _questions(lines: Sequence[str]) -> tuple[str, str, str]:
    """A line, the same with its middle neighbours exchanged, and its first half."""
    words = next((line.split() for line in lines if len(line.split()) >= 5), lines[0].split())
    return " ".join(words), _exchanged(" ".join(words)), " ".join(words[: max(1, len(words) // 2)])


def _exchanged(line: str) -> str:
    words = line.split() if " " in line else list(line)
    middle = max(0, len(words) // 2 - 1)
    words[middle : middle + 2] = reversed(words[middle : middle + 2])
    return (" " if " " in line else "").join(words)


def _ask(
    name: str, place: Path, results: Mapping[str, Any], lines: Sequence[str], questions: tuple[str, str, str]
) -> Rung:
    model = LanguageModel.load(place / "runs" / _folder(name))
    model.score_text(lines[:8])  # what is set up once does not count
    started = time.perf_counter()
    asked = model.score_text(lines)
    speed = asked.num_predictions / (time.perf_counter() - started)
    pairs = [(line, _exchanged(line)) for line in lines[:MAX_ASKED]]
    pairs = [pair for pair in pairs if pair[0] != pair[1]]
    scores = model.score([text for pair in pairs for text in pair])
    right = sum(one.total > other.total for one, other in zip(scores[::2], scores[1::2], strict=True))
    natural, odd = model.score(questions[:2])
    seconds = float(results["training_seconds"])
    return Rung(
        name=name,
        perplexity=results["test"]["perplexity"],
        parameters=int(results["parameters"]),
        training_seconds=seconds,
        training_words_per_second=results.get("target_tokens", results["tokens"]) / max(seconds, 0.05),
        asking_words_per_second=speed,
        told_apart=right / max(1, len(pairs)),
        preferred=natural.total > odd.total,
        next_words=tuple(one.label for one in model.predict(questions[2], count=3)),
    )


def _budget(recipes: Mapping[str, LanguageRecipe]) -> str:
    learning = [recipe.training for recipe in recipes.values() if recipe.model.kind != "ngram"]
    if not learning:
        return say("counting only", "只有计数")
    steps, tokens = learning[0].steps, learning[0].batch_tokens
    return say(
        f"budget of each network: {steps:,} updates of {tokens:,} tokens; n-grams are counted once",
        f"每个网络的预算：{steps:,} 次更新，每次 {tokens:,} 词元；n 元语法只计数一遍",
    )


def as_markdown(lineage: Lineage) -> str:
    table = (lineage.headings(), tuple("---" for _ in lineage.headings()), *lineage.rows())
    facts = " · ".join(f"{name} {value}" for name, value in lineage.machine.items())
    rows = [f"| {' | '.join(cell.replace('|', '¦') for cell in row)} |" for row in table]
    return "\n".join([*rows, "", *(f"- {line}" for line in (*lineage.remarks(), facts))]) + "\n"
