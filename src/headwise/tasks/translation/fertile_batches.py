"""Adds to batches the fertilities of their source tokens (how often each is copied), for
parallel translators that copy source tokens.

    batch   source            x₁ x₂ x₃ </s>
            target            y₁ y₂ y₃ </s>        links   y₁ y₂ → x₁,  y₃ → x₃
            fertility          2  0  1   1

The aligner of the training data links each target token of a batch to a source token
(training/parallel/fertility_targets.py). That is the first part of the loss, on the device of the
batch. A CPU would need 160 ms for the 32,768 target tokens that a GPU trains on in 10 ms.

Tested against: fertilities pair by pair; sums are the lengths of targets.
"""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor, nn

from headwise.data.packing import PackedBatch
from headwise.data.pairs.alignment.learned import LearnedAlignment
from headwise.data.pairs.preparation import PreparedData
from headwise.data.shards import TokenStore
from headwise.data.splits import Part
from headwise.errors import DataError
from headwise.models.choices import TranslatorSettings
from headwise.models.parallel.choices import FertilityLength, ParallelSettings
from headwise.training.losses import LossSums
from headwise.training.parallel.fertility_targets import BatchAligner
from headwise.training.updates import Trainable


@dataclass(frozen=True)
class FertileBatch(PackedBatch):
    """Packed pairs, and how often each source token is copied."""

    fertility: Int[Tensor, "row source"]
    """Of each pair they sum to the length of its target; 0 in padding."""


@dataclass
class FertileLoss:
    """A loss that needs fertilities, on batches without them."""

    inner: Trainable
    aligner: BatchAligner

    def __post_init__(self) -> None:
        # Here and not above `add`, because torch's compiler takes seconds to import.
        self._add_plainly = torch.compiler.disable(self.add)

    @property
    def module(self) -> nn.Module:
        return self.inner.module

    def loss(self, batch: PackedBatch) -> LossSums:
        return self.inner.loss(self._add_plainly(batch))

    def add(self, batch: PackedBatch) -> FertileBatch:
        """The batch with its fertilities; the aligner moves to the device of the first batch."""
        self.aligner = self.aligner.to(batch.source.device)
        return add_fertilities(batch, self.aligner)


def add_fertilities(batch: PackedBatch, aligner: BatchAligner) -> FertileBatch:
    """The same pairs with their fertilities; the aligner is where the batch is."""
    tensors: dict[str, Any] = {
        field.name: getattr(batch, field.name) for field in fields(PackedBatch)
    }
    return FertileBatch(**tensors, fertility=aligner.find_fertilities(batch))


def most_copies(model: TranslatorSettings) -> int | None:
    """The largest fertility of a model that copies by fertility; None for all others."""
    if isinstance(model, ParallelSettings) and isinstance(model.length, FertilityLength):
        return model.length.most
    return None


def aligner_of(model: TranslatorSettings, prepared: PreparedData) -> BatchAligner | None:
    """What finds the fertilities of a batch, if the model learns from them."""
    most = most_copies(model)
    if most is None:
        return None
    assert isinstance(prepared.alignment, LearnedAlignment)
    return BatchAligner.of(prepared.alignment.table, most=most)


def check_copies(store: TokenStore, most: int, *, part: Part) -> None:
    """Refuse pairs whose target is longer than all copies of the source."""
    source, target = store.source_lengths + 1, store.target_lengths + 1
    too_long = np.flatnonzero(target > most * source)
    if len(too_long) == 0:
        return
    first = too_long[np.argmax(target[too_long] / source[too_long])]
    shape = int(source[first]), int(target[first])
    needed = -(-shape[1] // shape[0])
    pairs = f"pair of data.{part} has" if len(too_long) == 1 else f"pairs of data.{part} have"
    leave_out = ("take such pairs out", "去掉这样的句对")
    if part == "train":
        leave_out = (
            "leave such pairs out with data.filter.max_ratio",
            "用 data.filter.max_ratio 去掉这样的句对",
        )
    raise DataError(
        f"{len(too_long):,} {pairs} a target more than {most} times as long as "
        f"the source (one of {shape[0]} and {shape[1]} tokens with their ends), but each source "
        f"token is copied {most} times at most; set model.length.most={needed} or more, or "
        f"{leave_out[0]}",
        f"data.{part} 中有 {len(too_long):,} 个句对的目标句长于源句的 {most} 倍（其中一个连同"
        f"结束符为 {shape[0]} 与 {shape[1]} 个词元），而每个源语言词元最多复制 {most} 次；请设 "
        f"model.length.most={needed} 或更大，或{leave_out[1]}",
    )


def empty_fertilities(batch: PackedBatch) -> FertileBatch:
    """Each source token is copied once: shapes for plans, whose numbers do not count."""
    tensors: dict[str, Any] = {
        field.name: getattr(batch, field.name) for field in fields(PackedBatch)
    }
    return FertileBatch(**tensors, fertility=torch.ones_like(batch.source))
