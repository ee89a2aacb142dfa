"""A run of each task that a test can train in a second: the same few sentences, a tiny model, two
or four steps."""

from pathlib import Path
from typing import Any

from headwise.tasks.any_recipe import AnyRecipe
from headwise.tasks.recipe import recipe_from
from headwise.tasks.run import train
from headwise.tasks.table import TASKS
from tests.tasks.tiny import tiny_recipe

TEXT = [
    "the dog sleeps",
    "the cat sleeps",
    "the dog eats",
    "a cat eats the fish",
    "the fish sleeps",
] * 4
ENCODER = {"dim": 8, "layers": 1, "heads": 2}
ELMO = {
    "kind": "elmo",
    "dim": 14,
    "hidden": 11,
    "layers": 1,
    "letter_dim": 3,
    "filters": [2, 3],
    "highways": 1,
}
TRAINING: dict[str, Any] = {
    "steps": 4,
    "batch_tokens": 64,
    "log_every": 2,
    "validate_every": 2,
    "checkpoint_every": 2,
    "precision": "fp32",
    "device": "cpu",
}


def recipe_of(task: str, folder: Path) -> AnyRecipe:
    """The recipe of a tiny run; what it reads is written into the folder."""
    lines = {
        "text.txt": TEXT,
        "labels.tsv": [f"{line}\t{'yes' if 'dog' in line else 'no'}" for line in TEXT],
        "tags.txt": [" ".join(f"{word}/{word[-1]}" for word in line.split()) for line in TEXT],
    }
    for name, content in lines.items():
        if not (folder / name).exists():
            (folder / name).write_text("\n".join(content) + "\n", encoding="utf-8")
    text, tags = str(folder / "text.txt"), {"path": str(folder / "tags.txt"), "kind": "slashed"}
    reading = {"language": "en", "row_tokens": 16}
    match task:
        case "translation":
            return tiny_recipe()
        case "word_vectors":
            model = {"dim": 5, "window": 2}
            training = {"threads": 1, "epochs": 1, "subsample": 0}
            return recipe_from(
                {"task": task, "data": {"train": text}, "model": model, "training": training}
            )
        case "language_modeling":
            data = {"language": "en", "train": text, "valid": text}
            model = {"kind": "recurrent", "cell": "gru", "dim": 5, "hidden": 7}
            return recipe_from({"task": task, "data": data, "model": model, "training": TRAINING})
        case "classification" | "tagging":
            corpus = str(folder / "labels.tsv") if task == "classification" else tags
            data = {**reading, "train": corpus, "valid": corpus}
            learning = TRAINING | {"keep": {"best": "accuracy"}}
            return recipe_from({"task": task, "data": data, "model": ENCODER, "training": learning})
        case _:
            data = {**reading, "train": text, "valid": text}
            learning = TRAINING | {"keep": {"best": "loss"}}
            is_elmo = task == "bidirectional_language"
            words = {"text": {"kind": "words", "size": 12}} if is_elmo else {}
            model = ELMO if is_elmo else ENCODER
            return recipe_from(
                {"task": task, "data": data, "model": model, "training": learning, **words}
            )


def train_every_task(folder: Path, *, translation: Path) -> dict[str, Path]:
    """A finished run of each task, by its name; that of translation is there already."""
    words = [entry.word for entry in TASKS]
    runs = {task: folder / task for task in words if task != "translation"}
    for task, run in runs.items():
        train(recipe_of(task, folder), run=run)
    return {"translation": translation, **runs}
