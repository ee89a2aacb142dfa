"""A fake model that verifies drafts, and drafters that know everything or nothing."""

import random
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from headwise.decoding.drafting.protocol import DraftedRow
from tests.decoding.conftest import FakeStepper, NextLogProbabilities


class FakeVerifier:
    """Scores are the function's; the block begins with the beginning of the sentence (token 1)."""

    device = torch.device("cpu")

    def __init__(
        self, function: NextLogProbabilities, sources: Sequence[Sequence[int]], block: int
    ) -> None:
        self.function, self.block = function, block
        self.rows = [(tuple(source), list[int]()) for source in sources]
        self.fed: list[list[int]] = []
        self.widths: list[int] = []

    def score(self, tokens: Tensor) -> Tensor:
        assert tokens.shape[0] == len(self.rows)
        assert tokens.shape[1] <= self.block
        self.fed = tokens.tolist()
        self.widths.append(tokens.shape[1])
        table = [
            [
                self.function(source, tuple([*kept, *fed[: step + 1]][1:]))
                for step in range(len(fed))
            ]
            for (source, kept), fed in zip(self.rows, self.fed, strict=True)
        ]
        return torch.tensor(np.array(table), dtype=torch.float64)

    def accept(self, counts: Sequence[int]) -> None:
        for (_, kept), fed, count in zip(self.rows, self.fed, counts, strict=True):
            kept += fed[:count]

    def keep(self, rows: Sequence[int]) -> None:
        self.rows = [self.rows[row] for row in rows]

    def look_ahead(self, tokens: Tensor, count: int) -> Tensor:
        raise AssertionError("a fake has no heads")

    def guess_block(self, written: Sequence[Sequence[int]], count: int) -> Tensor:
        raise AssertionError("a fake has no draft decoder")


class FakeVerifyingStepper(FakeStepper):
    """Also a whole model, as its parent is."""

    verifies_drafts = True
    num_draft_heads = 0
    draft_block = 0
    verifier: FakeVerifier

    def stepper(self, *, attending: bool) -> "FakeVerifyingStepper":
        return self

    def make_verifier(
        self, sources: Sequence[Sequence[int]], *, max_length: int, block: int
    ) -> FakeVerifier:
        self.verifier = FakeVerifier(self.next_log_probabilities, sources, block)
        return self.verifier


class RandomDrafter:
    """Any tokens, special ones included, and any number of them."""

    def __init__(self, vocab: int, seed: int = 7) -> None:
        self.vocab, self.chance = vocab, random.Random(seed)

    def draft(self, rows: Sequence[DraftedRow], count: int) -> Sequence[Sequence[int]]:
        return [
            self.chance.choices(range(self.vocab), k=self.chance.randint(0, count)) for _ in rows
        ]


class KnowingDrafter:
    """Drafts the right output, in which every `wrong`-th token is another one."""

    def __init__(self, outputs: Sequence[Sequence[int]], *, wrong: int = 0) -> None:
        self.outputs, self.wrong = outputs, wrong

    def draft(self, rows: Sequence[DraftedRow], count: int) -> Sequence[Sequence[int]]:
        found = []
        for row in rows:
            begin = len(row.tokens)
            draft = list(self.outputs[row.number][begin : begin + count])
            for place in range(len(draft)):
                if self.wrong and (begin + place) % self.wrong == 0:
                    draft[place] = 3 + (draft[place] + 1) % 8
            found.append(draft)
        return found
