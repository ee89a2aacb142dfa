"""What a bundle of any task is, in a few words, after it was loaded as the commands of its task load it."""

from pathlib import Path

from headwise.errors import CheckpointError
from headwise.language import say
from headwise.settings import read_settings_file
from headwise.tasks.bundle import load_bundle, task_of
from headwise.tasks.labels.bundle import load_label_bundle
from headwise.tasks.language.bundle import load_language_bundle
from headwise.tasks.pretraining.contextual_vectors import load_word_reader
from headwise.tasks.pretraining.gap_filling import GapFiller
from headwise.tasks.recipe import TASKS
from headwise.tasks.word_vectors.run import load_word_vectors


def summarize_bundle(path: Path) -> str:
    """Load the bundle whole, weights included, and say what it is; a HeadwiseError if it cannot be used."""
    task = task_of(path)
    match task:
        case "translation":
            data = load_bundle(path).recipe.data
            return f"{data.source} → {data.target}"
        case "word_vectors":
            space = load_word_vectors(path).space
            return say(
                f"word_vectors, {len(space.words):,} words, dimension {space.dim}",
                f"word_vectors，{len(space.words):,} 个词，{space.dim} 维",
            )
        case "language_modeling":
            load_language_bundle(path)
        case "classification" | "tagging":
            load_label_bundle(path)
        case "masked_language":
            GapFiller.load(path)
        case "bidirectional_language":
            load_word_reader(path)
        case _:
            raise CheckpointError(
                f"has task {str(task)[:80]!r}; this version knows {', '.join(TASKS)}: update headwise",
                f"任务为 {str(task)[:80]!r}；此版本只认识 {'、'.join(TASKS)}：请升级 headwise",
                file=path / "recipe.yaml",
            )
    return f"{task}, {read_settings_file(path / 'recipe.yaml')['data']['language']}"
