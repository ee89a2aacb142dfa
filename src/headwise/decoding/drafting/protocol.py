"""The interfaces of draft and verify: a `Drafter` guesses the next tokens, and a `Verifier` scores
several tokens at once.

    y_n d_1 … d_k  →  verifier  →  p_0 p_1 … p_k        p_j: log-probabilities after d_j (p_0: y_n)

A stepper with a verifier declares `Capabilities.verifies_drafts`. A drafter sees the rows of a
batch and proposes tokens for each of them. What it proposes never changes the output, only the
number of rounds, so a drafter may be anything: a rule, a table, a network. One that is a model of
its own, such as a parallel decoder on the encoder of the verifier, is another class here.
Tested with fake verifiers and with a drafter of random tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headwise.decoding.records import DraftRound
from headwise.decoding.results import Hypothesis
from headwise.text.tokenizer import BOS, EOS


class Verifier(Protocol):
    """A decoder with a row for each sentence; every row keeps its own number of tokens."""

    @property
    def device(self) -> torch.device: ...

    def score(self, tokens: Int[Tensor, "row step"]) -> Float[Tensor, "row step vocab"]:
        """Feed a block of tokens to every row; log-probabilities of what follows each of them.

        The search may overwrite them.
        """
        ...

    def accept(self, counts: Sequence[int]) -> None:
        """Row i keeps the first counts[i] tokens of its block; the others are forgotten."""
        ...

    def keep(self, rows: Sequence[int]) -> None:
        """Drop all rows but these; they stay in this order."""
        ...

    def look_ahead(self, tokens: Int[Tensor, "row"], count: int) -> Int[Tensor, "row ahead"]:
        """What the model's draft heads expect after the last tokens of the rows."""
        ...

    def guess_block(self, written: Sequence[Sequence[int]], count: int) -> Int[Tensor, "row ahead"]:
        """What the model's draft decoder expects after the tokens written in each row."""
        ...


class VerifyingStepper(Protocol):
    """A stepper that makes verifiers."""

    num_draft_heads: int
    """How many tokens `look_ahead` can guess; 0: the model has no draft heads."""
    draft_block: int
    """How many tokens `guess_block` has learnt; 0: the model has no draft decoder."""

    def make_verifier(
        self, sources: Sequence[Sequence[int]], *, max_length: int, block: int
    ) -> Verifier:
        """A row for each source, into which blocks of at most `block` tokens are fed."""
        ...


@dataclass
class DraftedRow:
    """A sentence while it is written."""

    number: int
    """Which sentence of the batch it is."""
    source: Sequence[int]
    limit: int
    """Most tokens that may be written, the end of the sentence included."""
    prefix: tuple[int, ...] = ()
    tokens: list[int] = field(default_factory=list)
    """What was written and verified."""
    values: list[float] = field(default_factory=list)
    """The log-probability of each token."""
    guesses: Sequence[int] = ()
    """The verifier's choices at the positions after the first wrong draft. They were made after a
    wrong token, so they are guesses."""
    choices: dict[int, int] = field(default_factory=dict)
    """What the verifier chose after each token that it was fed last, right or wrong."""
    num_rounds: int = 0
    """How often the verifier was asked."""
    rounds: list[DraftRound] = field(default_factory=list)
    """What each of these rounds drafted and accepted."""

    @property
    def last(self) -> int:
        """The token that the next block begins with."""
        return self.tokens[-1] if self.tokens else BOS

    @property
    def num_left(self) -> int:
        return self.limit - len(self.tokens)

    @property
    def is_done(self) -> bool:
        return bool(self.tokens) and (self.tokens[-1] == EOS or self.num_left == 0)

    def take(self, token: int, value: float) -> None:
        self.tokens.append(token)
        self.values.append(value)

    def hypothesis(self) -> Hypothesis:
        return Hypothesis.of_path(self.tokens, self.values)


class Drafter(Protocol):
    """Proposes the next tokens of every row."""

    def draft(self, rows: Sequence[DraftedRow], count: int) -> Sequence[Sequence[int]]:
        """At most `count` tokens for each row, fewer or none where there is nothing to propose.

        Rows that are done may be given anything.
        """
        ...
