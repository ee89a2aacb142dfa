"""The drafter that asks the model's draft decoder (`model.draft_decoder`, models/draft_decoder.py).

A small decoder on the encoder of the model reads the tokens written so far and guesses the next
ones in one pass, all at once. Unlike draft heads it attends to the source, and it needs no state of
the verifier, so that it drafts before the first round, too. It is trained with the model, or added
to a finished model whose other weights are frozen.

Xia et al. 2023 (SpecDec). Tested against greedy search, and with a decoder that has learnt a
sequence.
"""

from collections.abc import Sequence
from typing import Literal

from headwise.decoding.drafting.protocol import DraftedRow, Verifier
from headwise.errors import UsageError
from headwise.settings import Settings


class ParallelDrafterSettings(Settings):
    """A small decoder of the model that guesses the next tokens at once."""

    kind: Literal["parallel"] = "parallel"


class ParallelDrafter:
    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier

    def draft(self, rows: Sequence[DraftedRow], count: int) -> Sequence[Sequence[int]]:
        guessed = self._verifier.guess_block([row.tokens for row in rows], count)
        drafts: list[list[int]] = guessed.tolist()
        return drafts


def check_draft_decoder(longest: int, block: int) -> None:
    """Refuse blocks longer than the draft decoder of a model has learnt."""
    if longest >= block:
        return
    if longest == 0:
        raise UsageError(
            "decoding.drafter.kind=parallel was asked of a model without a draft decoder; use "
            "decoding.drafter.kind=jacobi or ngram, or add one to the model by training with "
            "model.draft_decoder.layers=1 and model.start_from",
            "该模型没有草稿解码器，无法使用 decoding.drafter.kind=parallel；请用 "
            "decoding.drafter.kind=jacobi 或 ngram，或以 model.draft_decoder.layers=1 与 "
            "model.start_from 训练，为模型加上草稿解码器",
        )
    raise UsageError(
        f"decoding.block is {block}, but the model's draft decoder has learnt to guess {longest} "
        f"tokens at once; set decoding.block={longest} or less",
        f"decoding.block 为 {block}，而模型的草稿解码器只学过一次猜 {longest} 个词元；请设 "
        f"decoding.block={longest} 或更小",
    )
