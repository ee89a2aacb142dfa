"""Computes the loss of masked language modelling (BERT): the encoder predicts masked tokens from
both sides.

    loss = smoothed cross-entropy of the masked tokens, summed

With `second_task: next_sentence` a row holds pairs of lines, and the loss is the mean over masked
tokens plus the mean over pairs (Devlin et al. 2019). A validation reports the loss of the masked
tokens alone as `loss`, so that runs with and without pairs can be compared.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headwise.data.batching import Share
from headwise.data.labels.labelled_rows import (
    LabelledRows,
    LabelledTokens,
    RowBatch,
    rows_in_order,
)
from headwise.data.splits import Part
from headwise.data.text.choices import MaskingSettings, read_texts
from headwise.data.text.masking import FIRST_WORD, MaskedBatch, count_places, mask_rows
from headwise.data.text.next_sentence import PairRows, draw_pairs, join_pairs
from headwise.errors import DataError
from headwise.language import say
from headwise.models.masked_language_model import (
    Guesses,
    MaskedLanguageModel,
    build_masked_language_model,
)
from headwise.randomness import numpy_generator
from headwise.tasks.events import Events
from headwise.tasks.planned_step import PlannedStep, Vocabularies
from headwise.tasks.pretraining.encoder_start import Start, find_start
from headwise.tasks.pretraining.masked_recipe import MaskedRecipe
from headwise.tasks.pretraining.vector_start import VectorStart
from headwise.tasks.task import rows_of_batch
from headwise.tasks.vocabulary_progress import watch_vocabulary
from headwise.text.choices import learn_tokenizer
from headwise.text.tokenizer import BOS, Tokenizer
from headwise.text.word_boundaries import WordBounds
from headwise.training.losses import LossSums, cross_entropy
from headwise.training.prefetching import map_tensors
from headwise.training.session import Evaluate


@dataclass(frozen=True)
class MaskedLoss:
    """A model and its loss."""

    module: MaskedLanguageModel
    label_smoothing: float
    chunk_size: int | None = None
    """Tokens whose logits are made at a time; None: as many as suit the device."""

    def loss(self, batch: MaskedBatch) -> LossSums:
        guesses = self.guess(batch)
        sums = self.sum_words(guesses, batch)
        if guesses.following is None:
            return sums
        return sums.with_loss(
            sums.loss + sums.num_tokens * following_loss(guesses.following, batch.rows.targets)
        )

    def guess(self, batch: MaskedBatch) -> Guesses:
        rows = batch.rows
        found: Guesses = self.module(
            rows.tokens, segment=rows.segment, position=rows.position, places=batch.places
        )
        return found

    def sum_words(self, guesses: Guesses, batch: MaskedBatch) -> LossSums:
        return cross_entropy(
            guesses.hidden,
            self.module.word_vectors,
            targets=batch.targets,
            bias=self.module.head.bias,
            smoothing=self.label_smoothing,
            count_correct=not self.module.training,
            chunk_size=self.chunk_size,
        )


def plan_step(recipe: MaskedRecipe, sizes: Vocabularies) -> PlannedStep:
    """The training step of a recipe as shapes."""
    row, has_pairs = recipe.data.row_tokens, recipe.second_task == "next_sentence"

    def build(rows: int) -> MaskedLanguageModel:
        return build_masked_language_model(
            recipe.model, vocabulary_size=sizes.target, has_pairs=has_pairs, generator=None
        )

    def trainable(module: nn.Module, chunk_size: int) -> MaskedLoss:
        assert isinstance(module, MaskedLanguageModel)
        return MaskedLoss(module, recipe.training.objective.label_smoothing, chunk_size)

    def batch(rows: int, length: int) -> MaskedBatch:
        ones = torch.ones(rows, length, dtype=torch.int64)
        places = torch.ones(count_places(recipe.masking, rows, length), dtype=torch.int64)
        return MaskedBatch(RowBatch(ones, ones, ones, ones), places, places)

    return PlannedStep(
        recipe.training,
        build,
        trainable,
        batch,
        row=row,
        num_logits=sizes.target,
        predicted=count_places(recipe.masking, 1, row) / row,
    )


def following_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """The mean over the pairs of a batch; targets are 0 where no pair begins."""
    wanted = targets.flatten()
    summed = F.cross_entropy(
        logits.flatten(0, 1).float(), wanted - 1, ignore_index=-1, reduction="sum"
    )
    return summed / (wanted != 0).sum().clamp(min=1)


@dataclass(frozen=True)
class MaskedRows:
    """Rows with words hidden, anew each time a row is seen (training/prefetching.Batches)."""

    rows: LabelledRows | PairRows
    settings: MaskingSettings
    bounds: WordBounds

    @property
    def fingerprint(self) -> str:
        return self.rows.fingerprint

    def stream(
        self, cursor: Mapping[str, int] | None
    ) -> Iterator[tuple[MaskedBatch, Mapping[str, int]]]:
        previous, count = None, 0
        for batch, after in self.rows.stream(cursor):
            # Batches of one update share the cursor that follows it: the number tells them apart.
            count = count + 1 if after == previous else 0
            previous = after
            key = (
                self.rows.seed,
                "mask",
                after["epoch"],
                after["row"],
                self.rows.share.process,
                count,
            )
            drawn = numpy_generator(*key)
            yield mask_rows(batch, self.settings, bounds=self.bounds, generator=drawn), after


@dataclass(frozen=True)
class MaskedData:
    tokenizer: Tokenizer
    train: LabelledTokens
    valid: LabelledTokens | None
    bounds: WordBounds
    fingerprint: str
    start: Start | VectorStart | None


def make_batches(
    recipe: MaskedRecipe, prepared: MaskedData, num_rows: int, share: Share
) -> MaskedRows:
    """Batches of so many rows."""
    form = PairRows if recipe.second_task == "next_sentence" else LabelledRows
    rows = form(
        prepared.train,
        num_rows,
        recipe.data.row_tokens,
        recipe.training.seed,
        prepared.fingerprint,
        share,
    )
    return MaskedRows(rows, recipe.masking, prepared.bounds)


def prepare_masked(recipe: MaskedRecipe, watcher: Events) -> MaskedData:
    watcher.note(say("reading the text …", "正在读取文本……"))
    start = find_start(recipe.model, recipe.text)
    if start is None:
        tokenizer = learn_tokenizer(
            recipe.text,
            _read(recipe, "train"),
            seed=recipe.training.seed,
            watch=watch_vocabulary(watcher),
        )
    else:
        tokenizer = start.tokenizer
    train = _encode(recipe, tokenizer, "train")
    if _num_known(train) < 2:
        raise DataError(
            "data.train has fewer than two known words, nothing can be hidden; give more text",
            "data.train 中的已知词不足两个，没有可以遮住的；请给出更多文本",
        )
    valid = _encode(recipe, tokenizer, "valid") if recipe.data.valid else None
    if valid is not None and _num_known(valid) < 1:
        raise DataError(
            "data.valid has no word of data.train, so that nothing can be hidden and measured; "
            "give other text, or leave data.valid out",
            "data.valid 中没有 data.train 里的词，没有可以遮住来测量的；请换一份文本，或不写 "
            "data.valid",
        )
    if recipe.second_task == "next_sentence":
        _check_pairs(train, "train")
        valid = None if valid is None else _pair(_check_pairs(valid, "valid"), recipe.training.seed)
    bounds = WordBounds.of(tokenizer.pieces(range(tokenizer.size)))
    digest = hashlib.blake2b(
        train.tokens.tobytes() + train.offsets.tobytes(), digest_size=16
    ).hexdigest()
    return MaskedData(tokenizer, train, valid, bounds, digest, start)


def _read(recipe: MaskedRecipe, part: Part) -> Iterator[str]:
    return read_texts(recipe.data, part, in_words=recipe.text.kind == "words")


def _encode(recipe: MaskedRecipe, tokenizer: Tokenizer, part: Part) -> LabelledTokens:
    """Lines as <s> and tokens; a line longer than a row, or than half of one that two must share,
    goes on in another.
    """
    size = recipe.data.row_tokens // (2 if recipe.second_task == "next_sentence" else 1) - 1
    lines = tokenizer.encode_batch(list(_read(recipe, part)))
    rows = [
        [BOS, *line[first : first + size]] for line in lines for first in range(0, len(line), size)
    ]
    offsets = np.cumsum([0, *map(len, rows)])
    tokens = np.fromiter(chain.from_iterable(rows), np.int64, int(offsets[-1]))
    return LabelledTokens(tokens, np.zeros_like(tokens), offsets)


def _num_known(store: LabelledTokens) -> int:
    return int((store.tokens >= FIRST_WORD).sum())


def _check_pairs(lines: LabelledTokens, part: Part) -> LabelledTokens:
    if len(lines) < 3:
        raise DataError(
            f"data.{part} has {len(lines)} line(s); next_sentence needs three, one to follow and "
            "one that does not: give running text",
            f"data.{part} 只有 {len(lines)} 行；next_sentence 至少需要三行，一行相接，一行不相接："
            "请给出连续的文本",
        )
    return lines


def _pair(lines: LabelledTokens, seed: int) -> LabelledTokens:
    """The same pairs each time, for measuring."""
    return join_pairs(lines, draw_pairs(len(lines), seed=seed, epoch=0))


def validation(recipe: MaskedRecipe, prepared: MaskedData, task: MaskedLoss) -> Evaluate | None:
    """Validation: loss and accuracy of the masked tokens, and the accuracy of pairs of lines if the
    recipe has them. The same tokens are masked each time.
    """
    store = prepared.valid
    if store is None:
        return None
    count = rows_of_batch(recipe.training.batch_tokens, recipe.data.row_tokens)

    @torch.inference_mode()
    def evaluate(step: int) -> Mapping[str, float]:
        device = task.module.head.bias.device
        totals, pairs = np.zeros(3), np.zeros(2)
        for number, (batch, _) in enumerate(
            rows_in_order(store, rows=count, row_tokens=recipe.data.row_tokens)
        ):
            drawn = numpy_generator(recipe.training.seed, "valid", number)
            masked = mask_rows(batch, recipe.masking, bounds=prepared.bounds, generator=drawn)
            placed = map_tensors(masked, lambda tensor: tensor.to(device))
            guesses = task.guess(placed)
            sums = task.sum_words(guesses, placed)
            assert sums.num_correct is not None, "it is counted when not training"
            totals += [
                float(sums.negative_log_likelihood),
                float(sums.num_correct),
                float(sums.num_tokens),
            ]
            if guesses.following is not None:
                wanted = placed.rows.targets
                right = (guesses.following.argmax(-1) + 1 == wanted) & (wanted != 0)
                pairs += [float(right.sum()), float((wanted != 0).sum())]
        assert totals[2] > 0, "a batch with words has at least one of them hidden"
        found = {"loss": float(totals[0] / totals[2]), "accuracy": float(totals[1] / totals[2])}
        return found | ({"next_sentence_accuracy": float(pairs[0] / pairs[1])} if pairs[1] else {})

    return evaluate
