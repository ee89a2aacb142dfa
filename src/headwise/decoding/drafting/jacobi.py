"""The Jacobi drafter: the model's own guesses from the round before, used again. No training.

Greedy decoding solves y_t = argmax_w log p(w | y_<t, x) for all t. A Jacobi iteration solves all
positions at once from the previous guesses,

    y_t ← argmax_w log p(w | guesses_<t, x)      for all t of a block,

and each round makes at least the first open position right. The verifier computes exactly this:
where draft d_j was wrong, its choices after d_j are the next guesses for those positions. A choice
depends more on the source than on one wrong token, so it is often right in the next round. Beyond
the last guess the block is filled by repeating it.

Santilli et al. 2023, *Accelerating Transformer inference for translation via parallel decoding*.
(Their code starts from the known length of the answer; here a block has a fixed length.)
Tested against greedy search, and on a model whose choices depend on the source alone.
"""

from collections.abc import Sequence
from typing import Literal

from headwise.decoding.drafting.protocol import DraftedRow
from headwise.settings import Settings


class JacobiDrafterSettings(Settings):
    """The verifier's own guesses of the round before; nothing is trained."""

    kind: Literal["jacobi"] = "jacobi"


class JacobiDrafter:
    def draft(self, rows: Sequence[DraftedRow], count: int) -> Sequence[Sequence[int]]:
        return [_fill(row, count) for row in rows]


def _fill(row: DraftedRow, count: int) -> Sequence[int]:
    known = list(row.guesses[:count])
    return known + [known[-1] if known else row.last] * (count - len(known))
