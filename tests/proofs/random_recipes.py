"""Recipes drawn at random from the published JSON Schema: whatever key a recipe may have is drawn,
a new one as well.

    number → task → `headwise schema TASK` → a value for each part:
                                             a kind of each choice, a number inside its bounds …

Sizes are small, so that a model of each recipe is trained and used in a fraction of a second;
bounds themselves are drawn often. `KNOWN` holds the values of keys that mean something outside the
recipe: files, languages, names of metrics. A part whose default is large is always drawn. The same
number gives the same recipe.
"""

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from headwise.cli.main import main
from headwise.errors import SettingsError
from headwise.randomness import numpy_generator
from headwise.tasks.recipe import check_recipe
from headwise.tasks.table import task_words

Schema = Mapping[str, Any]
LARGE = 16
"""A default beyond it costs time, so its key is never left out; nor is a section of the recipe."""
SHARE, CHOICE_SHARE = 0.3, 0.6
"""Of the keys that may be left out and are not; of those with several kinds more, because most of
the code is behind them."""
DRAWS = 6
FIRST = ("task", "data", "model")
"""Sections that the others are drawn to fit."""
WEIGHTS = {"translation": 4, "language_modeling": 3}
"""Tasks with more kinds of models than the others come more often."""
SMALL = (1, 2, 4, 8, 16, 3, 7)
"""Powers of two mostly, because widths and heads must divide each other."""


@dataclass(frozen=True)
class Files:
    """The texts that every recipe reads."""

    pairs: Path
    """Without its ending: .en and .de."""
    text: Path
    classes: Path
    tags: Path
    senses: Path


WORDS = {
    "keep.best": ("loss", "loss", "loss", "perplexity", "accuracy", "bleu", "chrf", "applause"),
    "decoding.forbidden": ("Hund", "Tee", "alte", "xyzzy"),
    "decoding.required": ("Hund", "der alte", "Katze", "xyzzy"),
    "decoding.prefix": ("der", "das Kind", "xyzzy"),
}
"""What may stand where the schema only says that it is a text."""


@cache
def schema_of(task: str) -> Schema:
    printed = StringIO()
    with contextlib.redirect_stdout(printed):
        assert main(["schema", task]) == 0
    schema: Schema = json.loads(printed.getvalue())
    return schema


@cache
def known_values(files: Files, task: str) -> dict[str, tuple[Any, ...]]:
    """Keys whose value the schema cannot know, and those that would only cost time."""
    corpus = {
        "translation": str(files.pairs),
        "classification": str(files.classes),
        "tagging": str(files.tags),
    }.get(task, str(files.text))
    return {
        "task": (task,),
        "data.source": ("en",),
        "data.target": ("de",),
        "data.language": ("en",),
        "data.train": (corpus,),
        "data.valid": (corpus,),
        "data.test": (corpus, corpus, None, []),
        "data.row_tokens": (128, 64, 64, 64, 64, 16),
        "data.filter.max_tokens": (*[None] * 8, 60, 1),
        "data.filter.max_characters": (*[2000] * 8, 200, 1),
        "data.filter.max_ratio": (None, *[4.0] * 6, 1.0),
        "data.filter.drop_leaked": (*[False] * 9, True),
        "text.size": (8, 40, 290, 300, 300, 310, 330),
        "text.coverage": (0.97, 0.98, 0.9995, 1.0),
        "text.words": (None, None, str(files.text)),
        "text.min_count": (1, 2),
        "text.max_words": (None, 30),
        "model.start_from": (None,),
        "model.vectors": (None,),
        **dict.fromkeys(("model.dim", "model.hidden"), (8, 8, 16, 12, 6, 2)),
        **dict.fromkeys(
            (f"model.{stack}heads" for stack in ("", "encoder.", "decoder.")), (1, 2, 2, 2, 3)
        ),
        **dict.fromkeys(
            (f"model.{stack}layers" for stack in ("", "encoder.", "decoder.")), (1, 1, 2, 0)
        ),
        "evaluation.validation_sentences": (0, 0, 3),
        "training.steps": (1, 2),
        "training.epochs": (1, 2),
        "training.threads": (1,),
        "training.batch_tokens": (64, 200),
        "training.device": ("cpu", "auto"),
        "training.compile": ("auto", "off"),
        "training.freeze": (
            [],
            [],
            [],
            [],
            [],
            [],
            ["encoder.*"],
            ["layers 0-0"],
            ["*.bias"],
            ["nothing.*"],
        ),
        "training.cuda_graphs": ("auto", "off", "on"),
        "training.time_limit": (None, 100.0),
        "training.average": (None, None, {"every": 1}),
        "decoding.min_length": (0, 0, 0, 2),
    }


def draw_recipe(number: int, files: Files, *, num_draws: int = DRAWS) -> dict[str, Any]:
    """Section by section; of some draws of each the first that goes with the sections before it, so
    that many can be trained. A single draw is not checked."""
    generator = numpy_generator("random recipes", number)
    shares = np.array([WEIGHTS.get(task, 1) for task in task_words()], dtype=float)
    task = task_words()[int(generator.choice(len(task_words()), p=shares / shares.sum()))]
    schema = schema_of(task)
    drawing = Drawing(generator, schema.get("$defs", {}), known_values(files, task))
    recipe: dict[str, Any] = {}
    for name in sorted(schema["properties"], key=lambda name: (name not in FIRST, name)):
        if (
            name == "training"
            and recipe["model"].get("kind") == "ngram"
            and generator.random() < 0.8
        ):
            continue  # n-grams take nothing from it, and say so
        for _ in range(num_draws):
            recipe[name] = drawing.draw(schema["properties"][name], name)
            if num_draws == 1:
                break
            with contextlib.suppress(SettingsError):
                check_recipe(recipe)
                break
    return recipe


@dataclass(frozen=True)
class Drawing:
    """One recipe in the making."""

    generator: np.random.Generator
    definitions: Mapping[str, Schema]
    known: Mapping[str, tuple[Any, ...]]

    def draw(self, schema: Schema, path: str = "") -> Any:
        if path in self.known:
            return self.one_of(self.known[path])
        for choice in ("oneOf", "anyOf"):
            if choice in schema:
                return self.draw(self.one_of(schema[choice]), path)
        if "$ref" in schema:
            return self.draw(self.definitions[schema["$ref"].rpartition("/")[2]], path)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self.one_of(schema["enum"])
        match schema.get("type"):
            case "object":
                return self.draw_parts(schema, path)
            case "array":
                return self.draw_list(schema, path)
            case "integer":
                return self.draw_integer(schema)
            case "number":
                return self.draw_number(schema)
            case "boolean":
                return bool(self.generator.integers(2))
            case "null":
                return None
            case "string":
                return self.one_of(
                    next((words for end, words in WORDS.items() if path.endswith(end)), ("word",))
                )
        raise AssertionError(f"{path}: the generator knows no {schema}")

    def draw_parts(self, schema: Schema, path: str) -> dict[str, Any]:
        parts = {}
        for name, part in schema.get("properties", {}).items():
            inner = f"{path}.{name}".lstrip(".")
            is_needed = (
                not path or name in ("kind", *schema.get("required", ())) or self.is_known(inner)
            )
            share = CHOICE_SHARE if "oneOf" in part else SHARE
            if is_needed or is_large(part) or self.generator.random() < share:
                parts[name] = self.draw(part, inner)
        return parts

    def draw_list(self, schema: Schema, path: str) -> list[Any]:
        if "prefixItems" in schema:
            return [self.draw(item, path) for item in schema["prefixItems"]]
        least = schema.get("minItems", 0)
        most = min(schema.get("maxItems", least + 2), least + 2)
        return [
            self.draw(schema["items"], path)
            for _ in range(self.generator.integers(least, most + 1))
        ]

    def draw_integer(self, schema: Schema) -> int:
        step = schema.get("multipleOf", 1)
        low = schema.get("minimum", schema.get("exclusiveMinimum", -step) + step)
        high = schema.get("maximum", schema.get("exclusiveMaximum", LARGE + step) - step)
        sizes = [size for size in SMALL if low <= size <= high and size % step == 0]
        return int(self.one_of([low, *sizes, *sizes, *([high] if high <= LARGE else [])]))

    def draw_number(self, schema: Schema) -> float:
        low = schema.get("minimum", schema.get("exclusiveMinimum", 0.0))
        high = schema.get("maximum", schema.get("exclusiveMaximum", low + 100.0))
        inside = low + (high - low) * self.generator.uniform(1e-6, 1 - 1e-6)
        bounds = [schema[bound] for bound in ("minimum", "maximum") if bound in schema]
        near = low + (high - low) * 10.0 ** self.generator.uniform(-6, -1)
        default = schema.get("default")
        return float(
            self.one_of([inside, near, near, *bounds, *([] if default is None else [default] * 2)])
        )

    def is_known(self, path: str) -> bool:
        return path in beginnings_of(tuple(self.known))

    def one_of(self, values: Any) -> Any:
        return values[int(self.generator.integers(len(values)))]


@cache
def beginnings_of(paths: tuple[str, ...]) -> frozenset[str]:
    """Each path, and all sections around it."""
    return frozenset(path[:end] for path in paths for end in ends_of(path))


def ends_of(path: str) -> list[int]:
    """Where a part of a path ends."""
    return [place for place, letter in enumerate(f"{path}.") if letter == "."]


def is_large(part: Schema) -> bool:
    return _holds_large(part.get("default"))


def _holds_large(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_holds_large, value.values()))
    return isinstance(value, int | float) and not isinstance(value, bool) and value > LARGE
