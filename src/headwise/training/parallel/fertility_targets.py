"""Computes what a fertility classifier learns, how often each source token of a batch is to be
copied, and its loss.

The links of a batch follow from the table of an aligner (`data/pairs/alignment/`), so nothing has
to be stored beside the tokens, and other cuts of a sentence into pieces are aligned too:

    a_j = argmax_i p(i | j) · t(y_j | x_i)        f_i = |{j : a_j = i}|

over the source tokens of the same pair, where p is the diagonal prior. The end of the target is
linked to the end of the source. So the fertilities of a pair sum to the length of its target with
its end, and the copies of the source (`models/parallel/fertility.py`) have the segments and
positions of the target.

All target tokens of a row are compared with all of its source tokens, and links between two pairs
are left out. That is a few times more than is needed, but all shapes are static and nothing is
read from the batch: a GPU does it within a recorded update, in about a millisecond.

What a token has above the largest fertility goes round in its sentence, from token to token, until
it finds room. With d_i = f_i - most and S_i = d_1 + … + d_i, of which S_n ≤ 0, token i hands on

    c_i = S_i + max(c_n, max_{j ≤ i} -S_j)        c_n = S_n - min_j S_j

where c_n comes round from the last token to the first.

The loss is the cross-entropy of the fertilities, summed over source tokens.

Gu et al. 2018, *Non-Autoregressive Neural Machine Translation*.
Tested against: the numpy version (`links.py`), pair by pair; sums are target lengths.
"""

from dataclasses import dataclass, replace

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
    def of(table: LexicalTable, *, most: int) -> "BatchAligner":
        keys = torch.from_numpy(np.ascontiguousarray(table.keys))
        values = torch.from_numpy(np.ascontiguousarray(table.probabilities))
        return BatchAligner(keys, values, table.num_targets, table.tension, most)

    def to(self, device: torch.device) -> "BatchAligner":
        """The same on a device; itself if it is there."""
        if self.keys.device == device:
            return self
        keys, probabilities = self.keys.to(device), self.probabilities.to(device)
        return replace(self, keys=keys, probabilities=probabilities)

    def find_links(self, batch: PackedBatch) -> Int[Tensor, "row target"]:
        """The index in the row of the source token of each target token; 0 in padding."""
        target, source = batch.target_output[:, :, None], batch.source[:, None, :]
        same = batch.target_segment[:, :, None] == batch.source_segment[:, None, :]
        same &= batch.target_segment[:, :, None] > 0
        words = same & (target != EOS) & (source != EOS)
        # Padding looks up the same tokens everywhere, which is quicker.
        score = self._look_up(torch.where(words, source, 0), torch.where(words, target, 0))
        score = torch.where(words, score * self._weigh(batch), -1.0)
        # A pair without source words has all its target linked to the end.
        score.masked_fill_(same & (source == EOS), 0.0)
        score.masked_fill_(same & (source == EOS) & (target == EOS), 1.0)
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

    def _weigh(self, batch: PackedBatch) -> Float[Tensor, "row target source"]:
        """exp(λ h) of each cell; its sum over the source tokens does not change the argmax."""
        target = _shares(batch.target_segment, batch.target_position)[:, :, None]
        source = _shares(batch.source_segment, batch.source_position)[:, None, :]
        return torch.exp(-self.tension * (target - source).abs())


def _shares(
    segment: Int[Tensor, "row time"], position: Int[Tensor, "row time"]
) -> Float[Tensor, "row time"]:
    """How far along its sentence each word stands; any number at its end and in padding."""
    num_words = sum_sentences(torch.ones_like(segment), segment) - 1
    return (position + 1).double() / num_words.double()


def sum_sentences(
    values: Int[Tensor, "row time"], segment: Int[Tensor, "row time"]
) -> Int[Tensor, "row time"]:
    """The sum of the values of its sentence, at each token."""
    sums = values.new_zeros(len(segment), segment.shape[1] + 1)
    return sums.scatter_add_(1, segment, values).gather(1, segment)


def limit_fertilities(
    fertility: Int[Tensor, "row source"],
    segment: Int[Tensor, "row source"],
    position: Int[Tensor, "row source"],
    *,
    most: int,
) -> Int[Tensor, "row source"]:
    """Fertilities of at most `most`: what is too many goes to the next token of the sentence, and
    from its last token to its first.

    That a sentence has room for all is checked where nothing has to be waited for, on a CPU; and of
    all data before a training (tasks/translation/fertile_batches.py).
    """
    surplus = (fertility - most).masked_fill(segment == 0, 0)
    if segment.device.type == "cpu":
        check_room(surplus, segment, most=most)
    sums = surplus.cumsum(1)
    # What is summed before a sentence is known at its first token.
    before = sum_sentences((sums - surplus).masked_fill(position > 0, 0), segment)
    sums = sums - before
    # Each sentence is laid so far below the one before it that it has minima of its own.
    depth = segment << 32
    lowest = (sums - depth).cummin(1).values + depth
    is_last = F.pad(segment[:, 1:], (0, 1)) != segment
    comes_round = sum_sentences((sums - lowest).masked_fill(~is_last, 0), segment)
    handed = sums + torch.maximum(comes_round, -lowest)
    received = torch.where(position == 0, comes_round, F.pad(handed[:, :-1], (1, 0)))
    return torch.where(segment > 0, fertility + received - handed, fertility)


def check_room(
    surplus: Int[Tensor, "row source"], segment: Int[Tensor, "row source"], *, most: int
) -> None:
    """Refuse a sentence whose tokens have a surplus all together."""
    if bool((sum_sentences(surplus, segment) > 0).any()):
        raise DataError(
            f"a target is more than {most} times as long as its source, each token of which is "
            f"copied {most} times at most; raise the largest fertility, or drop such pairs with "
            "data.filter.max_ratio",
            f"有目标句长于源句的 {most} 倍，而每个源词元最多复制 {most} 次；请增大最大繁衍率，"
            "或用 data.filter.max_ratio 去掉这样的句对",
        )


def fertility_loss(
    logits: Float[Tensor, "row source fertility"],
    fertility: Int[Tensor, "row source"],
    segment: Int[Tensor, "row source"],
) -> Float[Tensor, ""]:
    """Cross-entropy of the fertilities, summed over the source tokens that are not padding."""
    real = segment > 0
    losses = F.cross_entropy(logits.flatten(0, 1).float(), fertility.flatten(), reduction="none")
    return losses.masked_fill(~real.flatten(), 0).sum()
