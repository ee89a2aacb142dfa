"""Labels one split of a recipe's data (valid or test) and saves scores, time and the labels.

    runs/mine/labels/test.jsonl        one line for each text or sentence:
                                       {"found": ["VERB", "DET"], "given": ["VERB", "PRON"]}

`found` are the model's labels, `given` the right ones. A paired comparison of two models needs
them for every text, so they are kept. Tested: a file is read back as it was written; a file of
another form is refused.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from headwise.data.labels.labelled_files import Labelled
from headwise.data.splits import Part
from headwise.errors import DataError
from headwise.evaluation.label_scores import LabelStatistics, score_labels
from headwise.models.labeller import LabelModel
from headwise.storage import write_text
from headwise.tasks.comparison_metrics import ComparisonMetrics, declared_metric
from headwise.tasks.labels.data import LabelForm
from headwise.tasks.labels.labeller import find_labels
from headwise.tasks.labels.recipe import LabelRecipe
from headwise.tasks.text_input import read_text_lines

FOLDER = "labels"
Labels = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class LabelledPart:
    """A part of the data with the labels found and the labels given, for each text or sentence."""

    found: Labels
    given: Labels
    num_words: int
    seconds: float
    """Of labelling, reading aside."""

    def as_dict(self) -> dict[str, Any]:
        scores = score_labels(
            [label for one in self.given for label in one],
            [one for each in self.found for one in each],
        )
        return {**scores.as_dict(), "words": self.num_words, "seconds": round(self.seconds, 3)}

    def save(self, folder: Path, part: Part) -> None:
        folder.mkdir(exist_ok=True)
        pairs = zip(self.found, self.given, strict=True)
        lines = (
            json.dumps({"found": found, "given": given}, ensure_ascii=False)
            for found, given in pairs
        )
        write_text(folder / f"{part}.jsonl", "".join(f"{line}\n" for line in lines))


def label_part(model: LabelModel, form: LabelForm, examples: Sequence[Labelled]) -> LabelledPart:
    """Name the labels of every example; words are counted at spaces, whatever the tokens."""
    began = time.perf_counter()
    flat = iter(find_labels(model, form, examples))
    seconds = time.perf_counter() - began
    num_words = sum(len(word.split()) for one in examples for word in one.words)
    found = tuple(tuple(islice(flat, len(one.labels))) for one in examples)
    return LabelledPart(found, tuple(one.labels for one in examples), num_words, seconds)


def read_label_statistics(folder: Path, part: Part) -> LabelStatistics:
    """What each text adds to the accuracy, from the labels that a run kept."""
    path = folder / f"{part}.jsonl"
    try:
        lines = [json.loads(line) for line in read_text_lines(path)]
        return LabelStatistics.of(
            [line["found"] for line in lines], [line["given"] for line in lines]
        )
    except (ValueError, TypeError, KeyError) as error:
        raise DataError(
            "is not a file of labels found and given; remove the run and train it again",
            "不是记录标签的文件；请删除该次运行并重新训练",
            file=path,
        ) from error


def label_comparison_metrics(recipe: LabelRecipe) -> ComparisonMetrics:
    """Taggers and classifiers are compared by their accuracy."""
    parts: tuple[Part, ...] = ("valid", "test")
    return ComparisonMetrics(
        metrics=(declared_metric(recipe, "accuracy"),),
        question={"data.test": recipe.data.test, "data.language": recipe.data.language},
        read=lambda directory: {"accuracy": read_label_statistics(directory / FOLDER, "test")},
        is_scored=bool(recipe.data.corpora("test")),
        results=tuple(part for part in parts if recipe.data.corpora(part)),
        unit="words",
    )
