"""Guesses the next tokens by the model's own guesses of earlier rounds (the Jacobi drafter).
Nothing is trained.

Greedy decoding solves y_t = argmax_w log p(w | y_<t, x) for all t. A Jacobi iteration solves all
positions of a block at once from the guesses before,

    y_t ← argmax_w log p(w | guesses_<t, x)      for all t of a block,

and each round makes at least the first open position right. The verifier computes exactly this: it
chooses a token after every draft, also after wrong ones. Such a choice depends on the source and on
the token before it, so it is used in two ways:

    by token      if the verifier chose b after a once, it may do so again: last → b → c …
    by position   its choices after the first wrong draft, for the positions they were made at

The first follows a chain of choices from the last token, the second fills the rest of the block;
where nothing is known the last draft is repeated, which makes the verifier look further ahead.

Santilli et al. 2023, *Accelerating Transformer inference for translation via parallel decoding*
(by position; their code starts from the known length of the answer, here a block has a fixed one);
Fu et al. 2024, lookahead decoding (n-grams collected from Jacobi iterations; here n is 2).
Tested on hand-worked rows and against greedy search.
"""

from collections.abc import Sequence
from typing import Literal

from headwise.decoding.drafting.protocol import DraftedRow
from headwise.settings import Settings
from headwise.text.tokenizer import EOS


class JacobiDrafterSettings(Settings):
    """The verifier's own guesses of earlier rounds; nothing is trained."""

    kind: Literal["jacobi"] = "jacobi"


class JacobiDrafter:
    def draft(self, rows: Sequence[DraftedRow], count: int) -> Sequence[Sequence[int]]:
        return [() if row.is_done else _propose(row, count) for row in rows]


def _propose(row: DraftedRow, count: int) -> Sequence[int]:
    draft = _follow(row, count)
    draft += [guess for guess in row.guesses if guess not in draft][: count - len(draft)]
    filler = draft[-1] if draft else row.last
    return draft + [filler] * (count - len(draft))


def _follow(row: DraftedRow, count: int) -> list[int]:
    """The chain of choices that begins after the last token."""
    chain: list[int] = []
    token = row.last
    while len(chain) < count and token != EOS and token in row.choices:
        token = row.choices[token]
        chain.append(token)
    return chain
