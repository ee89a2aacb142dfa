"""`Labeller`: a trained classifier or tagger. Texts in, labels with probabilities out.

    labeller = headwise.Labeller.load("runs/sst2")
    labeller(["a film worth seeing"])[0].label

It also measures accuracy on labelled text. Tested: the labels of a text do not depend on the other
texts or their order; accuracy against a count by hand.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headwise.data.labels.choices import parse_labels, read_labelled
from headwise.data.labels.labelled_files import Labelled
from headwise.data.labels.labelled_rows import LabelledTokens, RowBatch, rows_in_order
from headwise.errors import DataError, UsageError
from headwise.evaluation.label_scores import CutTexts, LabelScores, score_labels
from headwise.models.labeller import LabelModel
from headwise.settings import read_yaml
from headwise.tasks.arguments import require_path, require_texts
from headwise.tasks.labels.bundle import LabelBundle, load_label_bundle
from headwise.tasks.labels.data import LabelForm
from headwise.training.precision import choose_device

ROWS = 32


@dataclass(frozen=True)
class LabelledAnswer:
    """A text with the label found, or words with their tags; a probability for each."""

    words: tuple[str, ...]
    labels: tuple[str, ...]
    probabilities: tuple[float, ...]
    distribution: tuple[dict[str, float], ...]
    """The probability of every class, for each label."""
    num_tokens: int = 0
    """Of a text: how many tokens it has."""
    num_read: int = 0
    """Of a text: how many of them were read, fewer where it is longer than a row."""

    @property
    def label(self) -> str:
        return self.labels[0]

    @property
    def probability(self) -> float:
        return self.probabilities[0]

    def as_dict(self, *, is_tagged: bool) -> dict[str, Any]:
        rounded = [round(one, 6) for one in self.probabilities]
        if is_tagged:
            return {"words": list(self.words), "tags": list(self.labels), "probabilities": rounded}
        every = {label: round(one, 6) for label, one in self.distribution[0].items()}
        found = {
            "text": self.words[0],
            "label": self.label,
            "probability": rounded[0],
            "probabilities": every,
        }
        return found | {"tokens": self.num_tokens, "tokens_read": self.num_read}


class Labeller:
    """A classifier or tagger that answers."""

    def __init__(self, bundle: LabelBundle, *, device: str = "auto") -> None:
        self.bundle = bundle
        self.device = choose_device(device)  # type: ignore[arg-type]
        self.model = bundle.model.to(self.device).eval()
        self.form = LabelForm.of(bundle.recipe, bundle.tokenizer, bundle.labels)

    @classmethod
    def load(cls, directory: Path | str, *, device: str = "auto") -> "Labeller":
        """From a bundle, or the bundle inside a run."""
        return cls(
            load_label_bundle(require_path(directory, "directory", "runs/sst2")), device=device
        )

    @property
    def is_tagger(self) -> bool:
        return self.form.shape == "each"

    def __call__(self, texts: Sequence[str]) -> list[LabelledAnswer]:
        """Labels of texts; a tagger cuts them at spaces."""
        given = require_texts(texts, "texts")
        return self.label(
            [tuple(text.split()) for text in given]
            if self.is_tagger
            else [(text,) for text in given]
        )

    def label(self, words: Sequence[tuple[str, ...]]) -> list[LabelledAnswer]:
        """Labels of texts (one string each) or of sentences that are cut into words already."""
        if not words:
            return []
        store = self.form.encode(words)
        found = np.concatenate(list(predict(self.model, store, self.form)))
        best = found.argmax(1)
        answers, start = [], 0
        for number, one in enumerate(words):
            count = len(one)
            here = slice(start, start := start + count)
            labels = tuple(self.form.labels[place] for place in best[here])
            spread = tuple(
                dict(zip(self.form.labels, row.tolist(), strict=True)) for row in found[here]
            )
            lengths = (
                (0, 0)
                if store.uncut is None
                else (int(store.uncut[number]) - 1, int(store.lengths[number]) - 1)
            )
            answers.append(
                LabelledAnswer(one, labels, tuple(found[here].max(1).tolist()), spread, *lengths)
            )
        return answers

    def measure(self, corpus: str) -> LabelScores:
        """Accuracy on labelled text: a file (.tsv, .csv, .conllu), known:NAME, or a corpus as a
        recipe writes it in braces.
        """
        try:
            found = parse_labels(read_yaml(corpus) if corpus.startswith("{") else corpus)
        except ValueError as error:
            raise UsageError(
                f"{corpus!r} is no labelled text; give a .tsv, .csv or .conllu file, known:NAME, "
                "or a corpus as in a recipe, e.g. '{path: x.txt, kind: slashed}'",
                f"{corpus!r} 不是带标签的文本；请给出 .tsv、.csv、.conllu 文件、known:名称，"
                "或按配方写法，例如 '{path: x.txt, kind: slashed}'",
            ) from error
        examples = list(
            read_labelled(found, language=self.bundle.recipe.data.language, shape=self.form.shape)
        )
        if not examples:
            raise DataError(
                "holds no labelled text; give another file",
                "没有带标签的文本；请换一个文件",
                file=corpus,
            )
        return score_examples(self.model, self.form, examples)


def score_examples(model: LabelModel, form: LabelForm, examples: Sequence[Labelled]) -> LabelScores:
    """Labels found against labels given."""
    gold = [label for one in examples for label in one.labels]
    store = form.encode([one.words for one in examples])
    return score_labels(gold, _name_labels(model, form, store), cut=_count_cut(store))


def find_labels(model: LabelModel, form: LabelForm, examples: Sequence[Labelled]) -> list[str]:
    """The most probable label of each text or word, one after another."""
    return _name_labels(model, form, form.encode([one.words for one in examples]))


def _count_cut(store: LabelledTokens) -> CutTexts:
    """Which texts were longer than a row; the sign of the beginning is no token of theirs."""
    if store.uncut is None or not (store.uncut > store.lengths).any():
        return CutTexts()
    longest = int(store.uncut.argmax())
    num_cut = int((store.uncut > store.lengths).sum())
    return CutTexts(num_cut, int(store.lengths[longest]) - 1, int(store.uncut[longest]) - 1)


def _name_labels(model: LabelModel, form: LabelForm, store: LabelledTokens) -> list[str]:
    return [
        form.labels[number]
        for part in predict(model, store, form)
        for number in part.argmax(1).tolist()
    ]


@torch.inference_mode()
def predict(model: LabelModel, store: LabelledTokens, form: LabelForm) -> Iterator[np.ndarray]:
    """Probabilities of the classes, a line for each label to be found, in the order of the
    store."""
    device = model.output.weight.device
    for batch, _ in rows_in_order(store, rows=ROWS, row_tokens=form.row_tokens):
        segment = batch.segment
        # Rows are filled in order, so that their real tokens, read line by line, are those of the
        # store.
        wanted = (segment != 0) & ((batch.position == 0) | (form.shape == "each"))
        yield logits_of(model, batch, device).cpu()[wanted].float().softmax(-1).numpy()


def logits_of(model: LabelModel, batch: RowBatch, device: torch.device) -> Tensor:
    affixes = None if batch.affixes is None else batch.affixes.to(device)
    return model(
        batch.tokens.to(device),
        segment=batch.segment.to(device),
        position=batch.position.to(device),
        affixes=affixes,
    )
