"""Sentence pairs that look like a corpus to a machine, and the padded batches that most toolkits
would make of them.

Lengths are log-normal (mean 18 tokens; source and target correlated 0.85), tokens follow Zipf's
law, everything is a function of the seed. `bucketed_batches` is what peers train on: pairs sorted
by length, cut where sentences × longest reaches the budget on either side, each batch padded to its
longest sentence. The sort decides how much is padding, so peers get the best we know: bands of
three target lengths, source lengths rising in one band and falling in the next. Of 100,000 pairs
sorted at once 4 % is padding then (by target, then source, as fairseq sorts: 5 %; by the longer
side: 10 %).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from headwise.randomness import numpy_generator
from headwise.text.tokenizer import BOS, EOS, PAD

FIRST_WORD = 4
MEAN, DEVIATION, CORRELATION, LONGEST = 18.0, 0.5, 0.85, 100
BAND = 3


@dataclass(frozen=True)
class Pairs:
    """Token ids of both sides, without begin and end."""

    sources: list[list[int]]
    targets: list[list[int]]

    def __len__(self) -> int:
        return len(self.sources)


@dataclass(frozen=True)
class PaddedBatch:
    """One sentence a row, filled up with padding."""

    source: Tensor
    target_input: Tensor
    target_output: Tensor

    def to(self, device: torch.device) -> "PaddedBatch":
        return PaddedBatch(
            self.source.to(device), self.target_input.to(device), self.target_output.to(device)
        )

    @property
    def num_target_tokens(self) -> int:
        return int((self.target_output != PAD).sum())

    @property
    def num_source_tokens(self) -> int:
        return int((self.source != PAD).sum())


def draw_lengths(count: int, *, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Lengths of sources and targets without their ends."""
    normal = numpy_generator(seed, "lengths").standard_normal((2, count))
    normal[1] = CORRELATION * normal[0] + np.sqrt(1 - CORRELATION**2) * normal[1]
    lengths = np.exp(np.log(MEAN) - DEVIATION**2 / 2 + DEVIATION * normal)
    source, target = np.clip(np.round(lengths), 1, LONGEST).astype(np.int64)
    return source, target


def draw_pairs(count: int, *, vocab: int, seed: int = 1) -> Pairs:
    source_lengths, target_lengths = draw_lengths(count, seed=seed)
    weights = 1.0 / np.arange(1, vocab - FIRST_WORD + 1)
    generator = numpy_generator(seed, "words")

    def draw(lengths: np.ndarray) -> list[list[int]]:
        words = FIRST_WORD + generator.choice(
            len(weights), size=int(lengths.sum()), p=weights / weights.sum()
        )
        return [sentence.tolist() for sentence in np.split(words, np.cumsum(lengths)[:-1])]

    return Pairs(draw(source_lengths), draw(target_lengths))


def bucket(
    source_lengths: np.ndarray, target_lengths: np.ndarray, *, tokens: int, pool: int
) -> list[np.ndarray]:
    """Numbers of the pairs of each batch; lengths include the end. Pools are sorted each by
    itself."""
    found = []
    for begin in range(0, len(source_lengths), pool):
        numbers = np.arange(begin, min(begin + pool, len(source_lengths)))
        source, band = source_lengths[numbers], target_lengths[numbers] // BAND
        order = numbers[np.lexsort((np.where(band % 2, source, -source), band))]
        longest, first = 0, 0
        for place, number in enumerate(order):
            grown = max(longest, int(source_lengths[number]), int(target_lengths[number]))
            if grown * (place - first + 1) > tokens and place > first:
                found.append(order[first:place])
                first, grown = place, max(int(source_lengths[number]), int(target_lengths[number]))
            longest = grown
        found.append(order[first:])
    return found


def pad(sentences: Sequence[Sequence[int]]) -> Tensor:
    longest = max(map(len, sentences))
    return torch.tensor([[*sentence, *[PAD] * (longest - len(sentence))] for sentence in sentences])


def bucketed_batches(
    pairs: Pairs, *, tokens: int, seed: int = 1, pool: int = 1 << 30
) -> list[PaddedBatch]:
    """All pairs in padded batches, in random order."""
    lengths = [
        np.array([len(sentence) + 1 for sentence in side])
        for side in (pairs.sources, pairs.targets)
    ]
    batches = [
        PaddedBatch(
            source=pad([[*pairs.sources[i], EOS] for i in numbers]),
            target_input=pad([[BOS, *pairs.targets[i]] for i in numbers]),
            target_output=pad([[*pairs.targets[i], EOS] for i in numbers]),
        )
        for numbers in bucket(*lengths, tokens=tokens, pool=pool)
    ]
    return [batches[i] for i in numpy_generator(seed, "batches").permutation(len(batches))]


def typical_batches(batches: Sequence[PaddedBatch], count: int) -> list[PaddedBatch]:
    """The batches nearest the mean of all in tokens on either side and in sentences.

    A batch is full when one side is, so single batches lean to the source or the target (3,922
    tokens to 2,394, say). Few of them say nothing of the speed in target tokens unless both sides
    are as in the whole.
    """
    facts = np.array(
        [[batch.num_source_tokens, batch.num_target_tokens, len(batch.source)] for batch in batches]
    )
    distance = np.abs(facts / facts.mean(axis=0) - 1).max(axis=1)
    return [batches[i] for i in np.argsort(distance, kind="stable")[:count]]
