"""The training step of the Levenshtein Transformer: both policies learn from the expert's edits.

The insertion policy starts from a target whose words were deleted at random; the deletion policy
starts from what the model itself fills in. The decoder runs three times, once for each head:

    start    = target without a random share of its words        → counts of placeholders
    shown    = target with placeholders for the words that lack  → these words
    written  = shown, filled with the model's best words         → which of them to delete

    loss = Σ_gaps -log P(count) + Σ_placeholders -log P(word) + Σ_words -log P(keep or delete)

The counts and the words that lack are those of the expert (expert_edits.py) from start to target,
the deletions those from written to target. Of n words, 0 … n are deleted, each number equally
likely. Whole targets are among the starts, so that the model learns where to insert nothing. Counts
are smoothed by 0.01, words by 0.1, deletions not. The model fills in the most probable words (no
sampling, no gradient). The results are sums, as in losses.py; all three are divided by the number
of words that lack.

A row holds one target or several, one after the other, each from <s> to </s>. All shapes are
static: what does not count is computed and left out of the sums, so that nothing waits for the
device and an update can be recorded as a CUDA graph (training/cuda_graph.py).

Paper: Gu, Wang & Zhao 2019, "Levenshtein Transformer" (arXiv 1905.11006). Tested against: the same
losses for one pair at a time in a plain Python program, a model whose heads imitate the expert
(loss 0), the share of deleted words, one call of the decoder for each head; and with the search
(decoding/parallel/edits.py), by learning to reverse strings.
"""

from typing import NamedTuple, Protocol

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from headwise.data.token_edits import PLACEHOLDER, delete_tokens, is_word, sentence_numbers
from headwise.text.tokenizer import BOS, EOS, PAD
from headwise.training.losses import LossSums, choose_chunk_size, cross_entropy
from headwise.training.parallel.expert_edits import expert_edits

COUNT_SMOOTHING = 0.01
WORD_SMOOTHING = 0.1
IGNORED = -100
"""The class of an item that does not count."""


class EditModel(Protocol):
    """A decoder without a causal mask, which has read the sources of the pairs, and its heads."""

    @property
    def output(self) -> nn.Linear:
        """From states to the logits of words."""
        ...

    def states(
        self, tokens: Int[Tensor, "pair position"], known: Bool[Tensor, "pair position"]
    ) -> Float[Tensor, "pair position dim"]:
        """The decoder's states; where `known` is false, a learned vector is read, not the token.

        Padding is what has the token PAD.
        """
        ...

    def deletion_logits(
        self, hidden: Float[Tensor, "pair position dim"], may_go: Bool[Tensor, "pair position"]
    ) -> Float[Tensor, "pair position 2"]:
        """Keep and delete; what must not go has -inf for it."""
        ...

    def insertion_logits(
        self, hidden: Float[Tensor, "pair position dim"]
    ) -> Float[Tensor, "pair gap count"]:
        """How many placeholders each gap needs, 0, 1, …"""
        ...


class EditSums(NamedTuple):
    """What a batch contributes to the three losses."""

    counts: LossSums
    """Of the gaps."""
    words: LossSums
    """Of the placeholders."""
    deletions: LossSums
    """Of the words that the model wrote, and those that it was given."""

    @property
    def total(self) -> LossSums:
        """The sum of the losses, for each word that is filled in; `exp` of the mean of its
        `negative_log_likelihood` is the perplexity of these words.

        A small batch may lack no word at all: it counts as one that lacks one.
        """
        loss = self.counts.loss + self.words.loss + self.deletions.loss
        words = self.words
        return LossSums(loss, words.negative_log_likelihood, words.num_tokens.clamp(min=1))


def edit_losses(
    model: EditModel,
    target: Int[Tensor, "pair label"],
    deleted: Bool[Tensor, "pair label"],
    *,
    word_smoothing: float = WORD_SMOOTHING,
    count_smoothing: float = COUNT_SMOOTHING,
    chunk_size: int | None = None,
) -> EditSums:
    """The losses of one batch. Targets begin with <s> and end with </s>; rows are padded at the
    right.

    `deleted` are the words that the model starts without: in training those of `draw_deletions`.
    """
    start = delete_tokens(target, deleted)
    edits = expert_edits(start, target)
    hidden = model.states(start, torch.ones_like(start, dtype=torch.bool))
    counts = class_loss(
        model.insertion_logits(hidden),
        edits.inserted,
        start[:, 1:] > BOS,  # no gap lies before padding or before the next target
        smoothing=count_smoothing,
    )
    shown = target.masked_fill(edits.filled, PLACEHOLDER)
    hidden = model.states(shown, ~edits.filled).flatten(0, 1)
    words = cross_entropy(
        hidden,
        model.output.weight,
        targets=torch.where(edits.filled, target, PAD).flatten(),
        bias=model.output.bias,
        smoothing=word_smoothing,
        count_correct=True,
        chunk_size=chunk_size,
    )
    best = best_words(hidden, model.output, chunk_size=chunk_size).view_as(target)
    written = torch.where(edits.filled, best, target)
    may_go = is_word(written)
    hidden = model.states(written, torch.ones_like(written, dtype=torch.bool))
    deletions = class_loss(
        model.deletion_logits(hidden, may_go), expert_edits(written, target).deleted.long(), may_go
    )
    return EditSums(counts, words, deletions)


def draw_deletions(
    target: Int[Tensor, "pair label"], *, generator: torch.Generator | None
) -> Bool[Tensor, "pair label"]:
    """The words to delete: their number is uniform in 0 … n, and each set of so many is as likely.

    0 is needed: from whole targets the model learns to insert nothing, where the search must end.
    Without a generator, the random numbers are torch's on the device of the targets, which the
    training loop seeds for each step.
    """
    words, number = is_word(target), sentence_numbers(target)
    width = target.shape[1] + 1
    num_words = number.new_zeros(len(target), width).scatter_add_(1, number, words.long())
    share = torch.rand(num_words.shape, device=target.device, generator=generator)
    # Rounding may carry the product to n + 1.
    num_deleted = torch.minimum((share * (num_words + 1)).long(), num_words)
    draw = torch.rand(target.shape, device=target.device, dtype=torch.float64, generator=generator)
    # Sorted by sentence, and by the draw within one; of a sentence the first words are deleted.
    rank = (number + draw).masked_fill(~words, width).argsort(1).argsort(1)
    last = num_words.cumsum(1) - num_words + num_deleted
    return words & (rank < last.gather(1, number))


@torch.no_grad()
def best_words(
    hidden: Float[Tensor, "token dim"], output: nn.Linear, *, chunk_size: int | None = None
) -> Int[Tensor, " token"]:
    """The most probable word at each position: never padding, <s> or </s>."""
    if chunk_size is None:
        chunk_size = choose_chunk_size(len(hidden), output.out_features, device=hidden.device.type)
    first = EOS + 1
    return first + torch.cat(
        [output(chunk)[:, first:].argmax(-1) for chunk in hidden.split(chunk_size)]
    )


def class_loss(
    logits: Float[Tensor, "pair item class"],
    targets: Int[Tensor, "pair item"],
    counted: Bool[Tensor, "pair item"],
    *,
    smoothing: float = 0.0,
) -> LossSums:
    """Cross-entropy summed over the counted items; targets above the last class are taken as it."""
    known = targets.clamp(max=logits.shape[-1] - 1)
    wanted = torch.where(counted, known, IGNORED).flatten()
    scores = logits.flatten(0, 1).float()
    plain = F.cross_entropy(scores.detach(), wanted, reduction="sum", ignore_index=IGNORED)
    return LossSums(
        F.cross_entropy(
            scores, wanted, reduction="sum", label_smoothing=smoothing, ignore_index=IGNORED
        ),
        plain,
        counted.sum(),
        scores.argmax(-1).eq(wanted).sum(),
    )
