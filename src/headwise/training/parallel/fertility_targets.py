"""Computes what a fertility classifier learns, how often each source token of a batch is to be
copied, and its loss.

The links of a batch follow from the table of an aligner (`data/pairs/alignment/`), so nothing has
to be stored beside the tokens, and other cuts of a sentence into pieces are aligned too:

    a_j = argmax_i p(i | j) · t(y_j | x_i)        f_i = |{j : a_j = i}|

over the source tokens of the same pair, where p is the diagonal prior. The end of the target is
linked to the end of the source. So the fertilities of a pair sum to the length of its target with
its end, and the copies of the source (`models/parallel/fertility.py`) have the segments and
positions of the target. Only pairs of tokens of the same sentence pair are looked up; how many they
are is read from the batch.

The loss is the cross-entropy of the fertilities, summed over source tokens.

Gu et al. 2018, *Non-Autoregressive Neural Machine Translation*.
Tested against: the numpy version (`links.py`), pair by pair; sums are target lengths.
"""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from headwise.data.packing import PackedBatch
from headwise.data.pairs.alignment.lexical_table import UNSEEN, LexicalTable
from headwise.errors import DataError
from headwise.text.tokenizer import EOS


@dataclass(frozen=True)
class BatchAligner:
    """The table of an aligner on the device of the batches."""

    keys: Int[Tensor, " entry"]
    probabilities: Float[Tensor, " entry"]
    num_targets: int
    tension: float
    most: int
    """The largest fertility."""

    @staticmethod
    def of(table: LexicalTable, *, most: int, device: torch.device | str = "cpu") -> "BatchAligner":
        keys = torch.from_numpy(np.ascontiguousarray(table.keys)).to(device)
        values = torch.from_numpy(np.ascontiguousarray(table.probabilities)).to(device)
        return BatchAligner(keys, values, table.num_targets, table.tension, most)

    def find_links(self, batch: PackedBatch) -> Int[Tensor, "row target"]:
        """The index in the row of the source token of each target token; 0 in padding."""
        same = batch.target_segment[:, :, None] == batch.source_segment[:, None, :]
        same &= batch.target_segment[:, :, None] > 0
        ends = (batch.target_output == EOS)[:, :, None] & (batch.source == EOS)[:, None, :]
        words = (batch.target_output != EOS)[:, :, None] & (batch.source != EOS)[:, None, :]
        row, target, source = (same & words).nonzero(as_tuple=True)
        # A pair without source words has all its target linked to the end.
        score = torch.full(same.shape, -1.0, dtype=torch.float64, device=same.device)
        score.masked_fill_(same & (batch.source == EOS)[:, None, :], 0.0)
        score.masked_fill_(same & ends, 1.0)
        score[row, target, source] = self._look_up(
            batch.source[row, source], batch.target_output[row, target]
        ) * self._weigh(batch, row, target, source)
        return score.argmax(-1)

    def find_fertilities(self, batch: PackedBatch) -> Int[Tensor, "row source"]:
        """How many target tokens each source token is linked to, at most `most`; 0 in padding."""
        real = (batch.target_segment > 0).long()
        counts = torch.zeros_like(batch.source).scatter_add_(1, self.find_links(batch), real)
        return limit_fertilities(
            counts, batch.source_segment, batch.source_position, most=self.most
        )

    def _look_up(self, source: Tensor, target: Tensor) -> Tensor:
        wanted = source * self.num_targets + target
        place = torch.searchsorted(self.keys, wanted).clamp_max(len(self.keys) - 1)
        return torch.where(self.keys[place] == wanted, self.probabilities[place], UNSEEN)

    def _weigh(self, batch: PackedBatch, row: Tensor, target: Tensor, source: Tensor) -> Tensor:
        """exp(λ h) of each cell; its sum over the source tokens does not change the argmax."""
        shares = []
        for segment, position, place in (
            (batch.target_segment, batch.target_position, target),
            (batch.source_segment, batch.source_position, source),
        ):
            number = segment[row, place]
            length = position.new_zeros(len(segment), segment.shape[1] + 1)
            length = length.scatter_reduce_(1, segment, position, "amax")[row, number]
            shares.append((position[row, place] + 1).double() / length.double())
        return torch.exp(-self.tension * (shares[0] - shares[1]).abs())


def limit_fertilities(
    fertility: Int[Tensor, "row source"],
    segment: Int[Tensor, "row source"],
    position: Int[Tensor, "row source"],
    *,
    most: int,
) -> Int[Tensor, "row source"]:
    """Fertilities of at most `most`: what is too many goes to the next token of the sentence."""
    if not bool((fertility > most).any()):
        return fertility
    room = (fertility - most).masked_fill(segment == 0, 0)
    surplus = room.new_zeros(len(segment), segment.shape[1] + 1).scatter_add_(1, segment, room)
    if bool((surplus > 0).any()):
        raise DataError(
            f"a target is more than {most} times as long as its source, each token of which is "
            f"copied {most} times at most; raise the largest fertility, or drop such pairs with "
            "data.filter.max_ratio",
            f"有目标句长于源句的 {most} 倍，而每个源词元最多复制 {most} 次；请增大最大繁衍率，"
            "或用 data.filter.max_ratio 去掉这样的句对",
        )
    place = torch.arange(segment.shape[1], device=segment.device)
    goes_on = F.pad(segment[:, 1:], (0, 1)) == segment
    # After the last token of a sentence comes its first.
    following = torch.where(goes_on, place + 1, place - position)
    following = following.masked_fill(segment == 0, 0)
    while bool((fertility > most).any()):
        handed = (fertility - most).clamp_min(0)
        fertility = (fertility - handed).scatter_add(1, following, handed)
    return fertility


def fertility_loss(
    logits: Float[Tensor, "row source fertility"],
    fertility: Int[Tensor, "row source"],
    segment: Int[Tensor, "row source"],
) -> Float[Tensor, ""]:
    """Cross-entropy of the fertilities, summed over the source tokens that are not padding."""
    real = segment > 0
    losses = F.cross_entropy(logits.flatten(0, 1).float(), fertility.flatten(), reduction="none")
    return losses.masked_fill(~real.flatten(), 0).sum()
