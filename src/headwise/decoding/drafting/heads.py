"""Guesses the next tokens with draft heads, extra outputs of the model (`model.draft_heads`,
models/draft_heads.py).

Head j guesses the j-th token after the next one from the decoder's state at the last verified
token. The state is there already, so a draft costs one small layer and the output layer. The heads
are trained with the model, or added to a finished model whose other weights are frozen.

Stern et al. 2018 (blockwise parallel decoding), Cai et al. 2024 (Medusa).
Tested against greedy search, and with heads that have learnt a sequence.
"""

from collections.abc import Sequence
from typing import Literal

import torch

from headwise.decoding.drafting.protocol import DraftedRow, Verifier
from headwise.errors import UsageError
from headwise.settings import Settings


class HeadsDrafterSettings(Settings):
    """Heads of the model that guess the tokens after the next one."""

    kind: Literal["heads"] = "heads"


class HeadsDrafter:
    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier

    def draft(self, rows: Sequence[DraftedRow], count: int) -> Sequence[Sequence[int]]:
        if not any(row.tokens for row in rows):
            return [()] * len(rows)  # before the first round there is no state
        last = torch.tensor([row.last for row in rows], device=self._verifier.device)
        drafts: list[list[int]] = self._verifier.look_ahead(last, count).tolist()
        return drafts


def check_heads(num_heads: int, block: int) -> None:
    """Refuse blocks longer than the heads of a model can fill."""
    if num_heads >= block:
        return
    if num_heads == 0:
        raise UsageError(
            "decoding.drafter.kind=heads was asked of a model without draft heads; use "
            "decoding.drafter.kind=jacobi or ngram, or add heads to the model by training with "
            "model.draft_heads.count and model.start_from",
            "该模型没有草稿头，无法使用 decoding.drafter.kind=heads；请用 "
            "decoding.drafter.kind=jacobi 或 ngram，或以 model.draft_heads.count 与 "
            "model.start_from 训练，为模型加上草稿头",
        )
    raise UsageError(
        f"decoding.block is {block}, but the model has {num_heads} draft heads, one for each token "
        f"of a draft; set decoding.block={num_heads} or less",
        f"decoding.block 为 {block}，而模型只有 {num_heads} 个草稿头，每个词元的草稿需要一个；请设 "
        f"decoding.block={num_heads} 或更小",
    )
