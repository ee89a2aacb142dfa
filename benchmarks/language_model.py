"""A small language model trained for some steps on windows of a text: what the comparisons of
positions and norms have in common.

The text is one line of numbers, of characters or words; its last tenth is held out. Every contender
sees the same windows in the same order, from the same first weights where they have the same names.
A benchmark ends with its bars: exit status 1 if one is missed.
"""

import gzip
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from headwise.models.choices import DecoderOnlySettings, build_decoder_only
from headwise.models.decoder_only import DecoderOnly
from headwise.pocket.corpus import sentences
from headwise.randomness import torch_generator
from headwise.settings import check_settings

WARMUP = 100
HELD_OUT = 0.1


@dataclass(frozen=True)
class Text:
    """Numbers of a text, and how many different ones there are."""

    train: Tensor
    held_out: Tensor
    size: int


@dataclass(frozen=True)
class Budget:
    """What every contender may use."""

    steps: int
    rows: int
    length: int
    rate: float = 1e-3


@dataclass(frozen=True)
class Bar:
    """A number that a sound implementation keeps to."""

    what: str
    value: float
    most: float = math.inf
    least: float = -math.inf

    @property
    def held(self) -> bool:
        return self.least <= self.value <= self.most  # NaN keeps to nothing

    def __str__(self) -> str:
        bounds = [f"≥ {self.least:g}"] * (self.least > -math.inf) + [f"≤ {self.most:g}"] * (
            self.most < math.inf
        )
        return (
            f"{'held' if self.held else 'MISSED'}: {self.what} {self.value:.3f}, bar "
            f"{' and '.join(bounds)}"
        )


def judge(bars: Sequence[Bar]) -> int:
    """Say which bars were held; the exit status."""
    for bar in bars:
        print(bar)
    return 0 if all(bar.held for bar in bars) else 1


def read_text(path: str | None, *, unit: str, num_lines: int = 20000) -> Text:
    """Of a file (.gz too) or, without one, of the built-in corpus; units are characters or
    words."""
    if path is None:
        text = "\n".join(sentence.text("en") for sentence in sentences("train", num_lines))
    else:
        content = Path(path).read_bytes()
        text = (gzip.decompress(content) if path.endswith(".gz") else content).decode("utf-8")
    units = list(text) if unit == "characters" else text.replace("\n", " <eos> ").split()
    numbers = {one: number for number, one in enumerate(sorted(set(units)))}
    ids = torch.tensor([numbers[one] for one in units])
    cut = int(len(ids) * (1 - HELD_OUT))
    return Text(ids[:cut], ids[cut:], len(numbers))


def train_model(
    model_settings: dict[str, Any],
    text: Text,
    budget: Budget,
    *,
    device: torch.device,
    key: str = "0",
) -> DecoderOnly:
    """AdamW with a warm-up and a linear fall, gradients clipped at 1."""
    settings = check_settings(DecoderOnlySettings, model_settings)
    model = build_decoder_only(
        settings, size=text.size, generator=torch_generator("language model", key)
    ).to(device)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=budget.rate, betas=(0.9, 0.98), weight_decay=0.01
    )
    generator = torch_generator("windows", key)
    stream = text.train.to(device)
    window = torch.arange(budget.length + 1, device=device)
    model.train()
    for step in range(budget.steps):
        share = min((step + 1) / WARMUP, 1 - step / budget.steps)
        for group in optimizer.param_groups:
            group["lr"] = budget.rate * share
        begin = torch.randint(
            0, len(stream) - budget.length - 1, (budget.rows, 1), generator=generator
        ).to(device)
        rows = stream[begin + window]
        loss = _loss(model, rows)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model


@torch.no_grad()
def measure_perplexity(
    model: DecoderOnly, text: Text, *, length: int, num_tokens: int = 32768
) -> float:
    """Of the held-out text, read in windows of `length` from its beginning."""
    model.eval()
    device = model.output.weight.device
    num_windows = min(num_tokens, len(text.held_out) - 1) // length
    total = 0.0
    for number in range(num_windows):
        row = text.held_out[number * length : (number + 1) * length + 1][None].to(device)
        total += _loss(model, row).item()
    return math.exp(total / num_windows)


def _loss(model: DecoderOnly, rows: Tensor) -> Tensor:
    logits = model.logits(model(rows[:, :-1]))
    return F.cross_entropy(logits.flatten(0, 1).float(), rows[:, 1:].flatten())
