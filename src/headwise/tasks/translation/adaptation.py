"""Adapts a finished translator to text of one's own: makes the recipe, trains it, compares scores.

    headwise adapt runs/general --data my/train --general corpus/train --run runs/mine

The recipe is that of the model with these changes; the run holds it, and `headwise train` does the
same with it:

    model.start_from     the model
    data.train           own and general pairs, weighted so that a share `own_share` of the pairs
                         that are seen is own text
    data.valid, .test    held-out own pairs; the test also has general ones
    training             PASSES over the own pairs; a fifth of the model's learning rate, which
                         rises and falls; the best validation counts, PATIENCE without a better
                         one ends it

General pairs keep the model from forgetting what it knew ("mixed fine-tuning", Chu et al. 2017).
Held-out pairs are chosen by a hash of the source (data/splits.py), so that no sentence is both
learnt and measured. Tested: the recipe's numbers by hand, and whole runs on the pocket corpus.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import ceil
from typing import Any

from headwise.data.pairs.choices import (
    Corpus,
    DataSettings,
    PocketCorpus,
    corpus_name,
    read_corpus,
)
from headwise.data.splits import Part
from headwise.errors import DataError, UsageError
from headwise.models.choices import EncoderDecoderSettings
from headwise.settings import check_settings, read_yaml
from headwise.tasks.bundle import TOKENIZER, OpenedBundle, open_bundle
from headwise.tasks.recipe import recipe_from, require_translation
from headwise.tasks.translation.adaptation_request import AdaptationRequest
from headwise.tasks.translation.bundle import require_one_direction
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.text.choices import load_fitting_tokenizers
from headwise.training.choices import NoamSchedule, TrainingSettings
from headwise.training.schedules import noam

PASSES = 10
"""Over the own pairs, unless it ends earlier."""
UPDATES_IN_PASS = 10
"""At least so many, if the batches of the model are too large for a small corpus."""
SLOWER = 5
"""The model's learning rate is divided by this."""
PATIENCE = 3
MAX_HELD_OUT, MAX_SHARE, OF = 500, 100, 1000
"""Pairs held out for validation, and as many for the test: at most 500, at most a tenth."""
MIN_PAIRS = 50
SAMPLE = 2000
"""Pairs whose tokens are counted."""


def adaptation_recipe(request: AdaptationRequest) -> TranslationRecipe:
    """The recipe of the adaptation; reads the corpora once to count their pairs."""
    request.check()
    opened = open_bundle(request.model, TranslationRecipe)
    base = opened.recipe
    require_one_direction(base.data, request.model)
    if not isinstance(base.model, EncoderDecoderSettings):
        raise UsageError(
            f"{request.model} is of model.kind={base.model.kind}; only encoder_decoder can be "
            "adapted: train such a model, e.g. `headwise train base`",
            f"{request.model} 的 model.kind={base.model.kind}；只有 encoder_decoder 可以适应："
            "请训练这样的模型，例如 `headwise train base`",
        )
    data = base.model_dump(mode="json")
    own, general = _count(base, request.data, MIN_PAIRS), _count(base, request.general, 1)
    if request.valid:
        own = [replace(one, held_out=0) for one in own]
    data["data"] |= _data(request, own, general, base.data.source)
    data["model"] |= {"start_from": str(opened.directory)}
    data["training"] = _training(base, _tokens_of_pass(opened, request, own, general))
    sentences = base.evaluation.validation_sentences
    data["evaluation"]["validation_sentences"] = min(sentences, 200) or 100
    return require_translation(recipe_from(data, request.overrides))


@dataclass(frozen=True)
class _Counted:
    """A corpus, its pairs, and how many of 1,000 are held out for each of validation and test."""

    corpus: Corpus
    pairs: int
    held_out: int

    @property
    def trained(self) -> float:
        """Pairs that are left for training, as often as the corpus's own weight says."""
        return self.pairs * self.corpus.weight * (1 - 2 * self.held_out / OF)

    def part(self, part: Part, source: str, *, weight: float = 1.0) -> dict[str, Any]:
        """The corpus as a recipe names this part of it; `weight` multiplies its own."""
        data = self.corpus.model_dump(mode="json", exclude_none=True)
        data |= {"weight": self.corpus.weight * weight}
        if isinstance(self.corpus, PocketCorpus):  # its parts share no sentence already
            return data if part == "train" else data | {"split": part, "count": MAX_HELD_OUT}
        if "split" in data:
            return data | {"split": data["split"] | {"part": part}}
        if not self.held_out:
            return data
        share = {"valid": self.held_out, "test": self.held_out, "of": OF}
        return data | {"split": {"by": source, "part": part, **share}}


def _count(base: TranslationRecipe, names: Sequence[str], least: int) -> list[_Counted]:
    """The corpora that names stand for, which are read once."""
    source, target = base.data.source, base.data.target
    data = {"source": source, "target": target, "train": _corpora(names)}
    found = []
    for corpus in check_settings(DataSettings, data).train:
        pairs = sum(1 for _ in read_corpus(corpus, source=source, target=target))
        if pairs < least:
            raise DataError(
                f"{corpus_name(corpus)} has {pairs} pairs; at least {least} are needed: give more "
                "text",
                f"{corpus_name(corpus)} 有 {pairs} 个句对；至少需要 {least} 个：请给出更多文本",
            )
        parts_exist = isinstance(corpus, PocketCorpus) or corpus.split is not None
        share = 0 if parts_exist else min(MAX_SHARE, ceil(OF * MAX_HELD_OUT / pairs))
        found.append(_Counted(corpus, pairs, share))
    return found


def _corpora(names: Sequence[str]) -> list[Any]:
    """Names and mappings, as a command line gives them."""
    return [read_yaml(name) if name.startswith("{") else name for name in names]


def _data(
    request: AdaptationRequest, own: list[_Counted], general: list[_Counted], source: str
) -> dict[str, Any]:
    """The corpora of the three parts; `source` is the language whose sentences are hashed."""
    of_own, of_general = (sum(one.trained for one in part) for part in (own, general))
    weight = 1.0
    if general:
        share = (1 - request.own_share) / request.own_share
        weight = min(1000.0, float(f"{share * of_own / of_general:.4g}"))
    learnt = [] if weight == 0 else general
    valid: list[Any] = _corpora(request.valid) or [one.part("valid", source) for one in own]
    test: list[Any] = _corpora(request.test) or [one.part("test", source) for one in own]
    return {
        "train": [one.part("train", source) for one in own]
        + [one.part("train", source, weight=weight) for one in learnt],
        "valid": valid,
        "test": test + [one.part("test", source) for one in general],
    }


def _tokens_of_pass(
    opened: OpenedBundle[TranslationRecipe],
    request: AdaptationRequest,
    own: list[_Counted],
    general: list[_Counted],
) -> int:
    """Target tokens that are seen while the own pairs are seen once."""
    data = opened.recipe.data
    tokenizer = load_fitting_tokenizers(opened.directory / TOKENIZER, opened.recipe.text).target
    sample = [
        pair.target
        for one in own
        for pair in islice(read_corpus(one.corpus, source=data.source, target=data.target), SAMPLE)
    ]
    mean = sum(len(ids) + 1 for ids in tokenizer.encode_batch(sample)) / len(sample)
    seen = sum(one.trained for one in own) / (request.own_share if general else 1)
    return max(1, round(seen * mean))


def _training(base: TranslationRecipe, tokens_of_pass: int) -> dict[str, Any]:
    """Batches, steps and rate; what the model was trained with otherwise stays, e.g. precision."""
    before, row = base.training, base.data.row_tokens
    rows = max(1, min(before.batch_tokens, ceil(tokens_of_pass / UPDATES_IN_PASS)) // row)
    updates = max(1, ceil(tokens_of_pass / (rows * row)))
    steps = PASSES * updates
    fresh = TrainingSettings()
    return before.model_dump(mode="json") | {
        "batch_tokens": rows * row,
        "accumulation": 1,
        "steps": steps,
        "schedule": {
            "kind": "linear",
            "peak": float(f"{_peak(before) / SLOWER:.3g}"),
            "warmup": steps // 10,
        },
        "freeze": list(fresh.freeze),
        "layer_decay": fresh.layer_decay,
        "validate_every": updates,
        "checkpoint_every": max(updates, 100),
        "log_every": max(1, min(50, updates // 5)),
        "keep": fresh.keep.model_dump(mode="json"),
        "average": None,
        "ema": None,
        "patience": PATIENCE,
        "time_limit": None,
    }


def _peak(training: TrainingSettings) -> float:
    """The highest learning rate of a training."""
    match training.schedule:
        case NoamSchedule(dim=dim, warmup=warmup, factor=factor):
            return noam(warmup, factor=factor, dim=dim, warmup=warmup)
        case schedule:
            return schedule.peak
