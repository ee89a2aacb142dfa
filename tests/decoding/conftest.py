"""Fake models for searches: their probabilities are exact functions of (source, prefix), so results
can be worked out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import Tensor

from headwise.decoding.rules.constraints import SentenceRules
from headwise.decoding.rules.text_rules import make_rules
from headwise.randomness import numpy_generator
from headwise.text.spelling import Spelling

NextLogProbabilities = Callable[[tuple[int, ...], tuple[int, ...]], Sequence[float]]


@dataclass(frozen=True)
class Rows:
    """State of a fake: the source and the tokens fed so far (without the beginning of sentence) of
    every row."""

    sources: tuple[tuple[int, ...], ...]
    prefixes: tuple[tuple[int, ...], ...]
    width: int


class FakeStepper:
    """A model given by a function of (source, prefix); keeps the contract of steppers and checks
    that searches do."""

    def __init__(
        self, next_log_probabilities: NextLogProbabilities, dtype: torch.dtype = torch.float64
    ) -> None:
        self.next_log_probabilities, self.dtype = next_log_probabilities, dtype
        self.num_reorders, self.row_counts, self.num_steps = 0, [], 0

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    def stepper(self, *, attending: bool) -> "FakeStepper":
        """It stands for a whole model, too: all its steppers are this one."""
        return self

    def start(self, sources: Sequence[Sequence[int]], *, width: int, max_length: int) -> Rows:
        self.max_length = max_length
        rows = tuple(tuple(source) for source in sources for _ in range(width))
        return Rows(rows, ((),) * len(rows), width)

    def step(self, state: Rows, tokens: Tensor) -> tuple[Tensor, Rows]:
        assert tokens.shape == (len(state.sources),)
        fed = tokens.tolist()
        if all(prefix == () for prefix in state.prefixes) and set(fed) == {1}:
            prefixes: tuple[tuple[int, ...], ...] = state.prefixes
            self._started = True
        else:
            prefixes = tuple(
                (*prefix, token) for prefix, token in zip(state.prefixes, fed, strict=True)
            )
        assert all(len(prefix) < self.max_length for prefix in prefixes)
        self.num_steps += 1
        self.row_counts.append(len(fed))
        rows = [
            self.next_log_probabilities(*row) for row in zip(state.sources, prefixes, strict=True)
        ]
        return torch.tensor(np.array(rows), dtype=self.dtype), Rows(
            state.sources, prefixes, state.width
        )

    def reorder(self, state: Rows, index: Tensor) -> Rows:
        self.num_reorders += 1
        groups = (index.view(-1, state.width) // state.width).tolist()
        assert all(len(set(group)) == 1 for group in groups), "a group mixes sentences"
        order = index.tolist()
        return Rows(
            tuple(state.sources[i] for i in order),
            tuple(state.prefixes[i] for i in order),
            state.width,
        )


def character(token: int) -> str:
    """What a token of the fakes is written as: a Chinese character, which may stand anywhere."""
    return chr(0x4E00 + token)


def phrases_of_tokens(
    *,
    forbidden: Sequence[Sequence[int]] = (),
    required: Sequence[Sequence[int]] = (),
    prefix: tuple[int, ...] = (),
    vocab: int = 11,
) -> SentenceRules:
    """Rules for a vocabulary of single characters: a phrase is then a sequence of tokens."""
    spelling = Spelling.of(
        [b"", b"", b"", *(character(token).encode() for token in range(3, vocab))]
    )
    unwanted, wanted = (
        ["".join(map(character, phrase)) for phrase in phrases] for phrases in (forbidden, required)
    )
    return SentenceRules(prefix, make_rules(unwanted, wanted, spelling))


def spell(source: tuple[int, ...], prefix: tuple[int, ...], *, vocab: int = 29) -> list[float]:
    """A model that copies its source token by token (probability 0.9), then ends."""
    expected = (*source, 2)[min(len(prefix), len(source))]
    return np.log(
        [0.9 if token == expected else 0.1 / (vocab - 1) for token in range(vocab)]
    ).tolist()


_memory: dict[tuple, np.ndarray] = {}


def improvise(
    source: tuple[int, ...], prefix: tuple[int, ...], *, vocab: int = 11, end: float = 1.0
) -> np.ndarray:
    """A model with fixed random preferences for every (source, last two tokens, position)."""
    key = (source, prefix[-2:], len(prefix), vocab, end)
    if key not in _memory:
        logits = numpy_generator(str(key)).normal(size=vocab) * 1.5
        logits[2] += end
        _memory[key] = logits - np.log(np.exp(logits).sum())
    return _memory[key]


@pytest.fixture(name="fake")
def _fake() -> type[FakeStepper]:
    return FakeStepper


@pytest.fixture(name="spell")
def _spell() -> Callable[..., list[float]]:
    return spell


@pytest.fixture(name="improvise")
def _improvise() -> Callable[..., np.ndarray]:
    return improvise


@pytest.fixture(name="sources")
def _sources() -> list[tuple[int, ...]]:
    """Thirteen sources of different lengths."""
    generator = numpy_generator("sources")
    return [tuple(generator.integers(4, 11, size=1 + i % 7).tolist()) for i in range(13)]
