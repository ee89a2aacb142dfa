"""A trainable small enough to train in milliseconds, with dropout so that randomness matters, and a
stream to feed it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from headwise.randomness import torch_generator
from headwise.training.choices import TrainingSettings
from headwise.training.losses import LossSums, cross_entropy

VOCAB, DIM, ROWS, LENGTH = 13, 11, 5, 7
ROWS_IN_EPOCH = 4


@dataclass(frozen=True)
class TinyBatch:
    words: Tensor
    targets: Tensor


class TinyModule(nn.Module):
    def __init__(self, dropout: float = 0.2) -> None:
        super().__init__()
        self.table = nn.Embedding(VOCAB, DIM)
        self.inner = nn.Linear(DIM, DIM)
        self.norm = nn.LayerNorm(DIM)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(DIM, VOCAB, bias=False)
        self.output.weight = self.table.weight
        self.reset()

    def reset(self) -> None:
        generator = torch_generator("tiny")
        for parameter in self.parameters():
            if parameter.ndim > 1:
                nn.init.normal_(parameter, std=0.3, generator=generator)
        nn.init.zeros_(self.inner.bias)

    def forward(self, words: Tensor) -> Tensor:
        x = self.table(words)
        return self.norm(x + self.dropout(torch.relu(self.inner(x))))


class TinyTrainable:
    def __init__(self, dropout: float = 0.2, smoothing: float = 0.1) -> None:
        self.module = TinyModule(dropout)
        self.smoothing = smoothing

    def loss(self, batch: TinyBatch) -> LossSums:
        hidden = self.module(batch.words).flatten(0, 1)
        targets = batch.targets.flatten()
        return cross_entropy(
            hidden, self.module.output.weight, targets=targets, smoothing=self.smoothing
        )


class TinyBatches:
    """Copying: the target of a word is the word; some targets are padding. Batch i is a function of
    (seed, i).
    """

    def __init__(self, seed: int = 1, num_batches: int | None = None) -> None:
        self.seed, self.num_batches = seed, num_batches
        self.fingerprint = f"tiny-{seed}"

    def batch(self, index: int) -> TinyBatch:
        generator = torch_generator(self.seed, "batch", index)
        words = torch.randint(1, VOCAB, (ROWS, LENGTH), generator=generator)
        return TinyBatch(
            words, words.masked_fill(torch.rand(ROWS, LENGTH, generator=generator) < 0.2, 0)
        )

    def stream(self, cursor: Mapping[str, int] | None) -> Iterator[tuple[Any, Mapping[str, int]]]:
        index = 0 if cursor is None else cursor["index"]
        while self.num_batches is None or index < self.num_batches:
            batch = self.batch(index)
            index += 1
            yield batch, {"epoch": index // ROWS_IN_EPOCH, "index": index}


def tiny_settings(**changes: Any) -> TrainingSettings:
    defaults: dict[str, Any] = {
        "steps": 20,
        "schedule": {"kind": "inverse_sqrt", "peak": 0.01, "warmup": 5},
        "optimizer": {"kind": "adamw", "weight_decay": 0.01},
        "precision": "fp32",
        "compile": "off",
        "device": "cpu",
        "log_every": 3,
        "checkpoint_every": 5,
        "validate_every": 4,
        "seed": 7,
    }
    return TrainingSettings.model_validate({**defaults, **changes})
