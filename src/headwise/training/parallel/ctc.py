"""Computes the loss of CTC: the likelihood of a target that is shorter than the decoder, over all
ways to spread it out.

Each of T positions writes a label or a blank ∅. A sequence of T such symbols is an *alignment*;
merging equal neighbours and then deleting the blanks turns it into the target y = y_1 … y_n:

    T = 7:    a ∅ ∅ a a b b  →  a ∅ a b  →  a a b       equal neighbours of y need a blank between

The model predicts all positions at once and independently. Which position should write which label
is not known, so the loss adds up every alignment of the target:

    loss = -log p(y) = -log Σ_{alignments a of y} Π_t p_t(a_t)

The sum has exponentially many terms. It is computed by a recursion over positions with two numbers
per prefix y_1 … y_j: the log-probability that position t ends with this prefix written and holds a
blank, or holds its last label. With ⊕ = log-add-exp,

    written_t(j) = blank_t(j) ⊕ label_t(j)
    blank_t(j)   = written_{t-1}(j) + log p_t(∅)
    label_t(j)   = (label_{t-1}(j) ⊕ enter_{t-1}(j)) + log p_t(y_j)
    enter_t(j)   = blank_t(j - 1)   if y_j = y_{j-1}   else   written_t(j - 1)

The gradient is the posterior: how probable it is, given the target, that position t holds a state.

    d loss / d log p_t(symbol) = -Σ_{states of the symbol} exp(α_t + β_t - log p_t - log p(y))

where α is the recursion above and β the same from the end. Read backwards, both the positions and
the target, β is the same recursion again: a batch of P pairs is therefore run as 2 P sequences, and
likelihoods and gradients together take T sequential steps of four operations, in fp32.

A target with n labels and r equal neighbours fits into T positions if n + r ≤ T. Where it does not,
no alignment exists (an infinite loss, which would hide the fault in a mean): such a pair has zero
loss and zero gradient, and the caller counts it with `fits`. If a target fits but the model gives
it probability zero, the loss is infinite and the gradient zero.

Papers: Graves et al. 2006; Libovický & Helcl 2018 (CTC for non-autoregressive translation: the
decoder has k positions for each source token); Saharia et al. 2020. Tested against enumeration of
all alignments with its gradients, and against `torch.nn.functional.ctc_loss`.
"""

from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from headwise.gpu import runs_kernels

BLANK, LABEL = 0, 1
"""The two states of a prefix: its last position holds a blank, or its last label."""


class BestAlignment(NamedTuple):
    """The most probable way to spread each target over its positions."""

    column: Int[Tensor, "pair position"]
    """What each position writes, as a column of the scores: 0 is the blank (and the padding), j the
    j-th label. Of a pair that does not fit: zeros."""
    log_probability: Float[Tensor, " pair"]
    """Of this one alignment; minus infinity if there is none."""


def fits(
    labels: Int[Tensor, "pair label"],
    *,
    position_count: Int[Tensor, " pair"],
    label_count: Int[Tensor, " pair"],
) -> Bool[Tensor, " pair"]:
    """Whether a target has an alignment: one position a label and one between equal neighbours."""
    index = torch.arange(labels.shape[1], device=labels.device)
    repeats = _find_repeats(labels) & (index < label_count[:, None])
    return label_count + repeats.sum(dim=1) <= position_count


def ctc_loss(
    scores: Float[Tensor, "pair position 1+label"],
    labels: Int[Tensor, "pair label"],
    *,
    position_count: Int[Tensor, " pair"],
    label_count: Int[Tensor, " pair"],
) -> Float[Tensor, " pair"]:
    """-log p(target) of each pair, at least fp32; pairs that do not fit have a loss of zero.

    Column 0 of `scores` is log p(blank), column j log p(the j-th label). What stands in positions
    and labels after the counts makes no difference.
    """
    loss: Tensor = _CtcLoss.apply(scores, labels, position_count, label_count)
    return loss


@torch.no_grad()
def best_alignment(
    scores: Float[Tensor, "pair position 1+label"],
    labels: Int[Tensor, "pair label"],
    *,
    position_count: Int[Tensor, " pair"],
    label_count: Int[Tensor, " pair"],
) -> BestAlignment:
    """The alignment with the highest probability (Viterbi): the recursion with ⊕ = maximum.

    It takes T sequential steps forward and T back, over all pairs at once.
    """
    counts = _RealLengths(position_count, label_count)
    symbols, repeats = _lay_out(scores), _find_repeats(labels)
    table = _run_recursion(symbols, repeats, counts.positions, best=True)
    final = _final_states(table, counts)
    possible = fits(labels, position_count=position_count, label_count=label_count)
    column = _trace_back(_point_back(table, repeats), final, counts)
    return BestAlignment(
        column.masked_fill(~possible[:, None], 0),
        final.amax(dim=1).masked_fill(~possible, -torch.inf),
    )


class _RealLengths(NamedTuple):
    """How many positions and labels of each pair are real."""

    positions: Tensor
    labels: Tensor


class _CtcLoss(torch.autograd.Function):
    """Runs α and β side by side in the forward pass; keeps the gradient, not the tables."""

    @staticmethod
    def forward(
        ctx: Any, scores: Tensor, labels: Tensor, position_count: Tensor, label_count: Tensor
    ) -> Tensor:
        counts = _RealLengths(position_count, label_count)
        possible = fits(labels, position_count=position_count, label_count=label_count)
        if not ctx.needs_input_grad[0]:
            repeats = _find_repeats(labels)
            table = _run_recursion(_lay_out(scores), repeats, position_count, best=False)
            return _final_states(table, counts).logsumexp(dim=1).neg().masked_fill(~possible, 0)
        backwards = _Backwards.of(counts, scores.shape[1], labels.shape[1])
        symbols = _lay_out(torch.cat([scores, backwards.turn_scores(scores)]))
        repeats = _find_repeats(torch.cat([labels, backwards.turn_labels(labels)]))
        both = torch.cat([position_count, position_count])
        alpha, beta = _run_recursion(symbols, repeats, both, best=False).chunk(2, dim=2)
        likelihood = _final_states(alpha, counts).logsumexp(dim=1)
        passing = alpha[1:] + backwards.turn_table(beta)
        posterior = (passing - symbols.chunk(2, dim=2)[0] - likelihood[:, None]).exp()
        # Two infinities may have met in states that no alignment passes.
        passed = _real_states(counts, alpha) & possible[:, None] & (passing > -torch.inf)
        posterior = torch.where(passed, posterior, 0)
        blanks = posterior[:, BLANK].sum(dim=-1, keepdim=True)
        gradient = -torch.cat([blanks, posterior[:, LABEL, :, 1:]], dim=-1)
        ctx.save_for_backward(gradient.transpose(0, 1).to(scores.dtype))
        return likelihood.neg().masked_fill(~possible, 0)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_loss: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = ctx.saved_tensors
        return gradient * grad_loss[:, None, None].to(gradient.dtype), None, None, None


def _find_repeats(labels: Int[Tensor, "pair label"]) -> Bool[Tensor, "pair label"]:
    """Where a label equals the one before it."""
    repeats = torch.zeros_like(labels, dtype=torch.bool)
    repeats[:, 1:] = labels[:, 1:] == labels[:, :-1]
    return repeats


def _lay_out(scores: Tensor) -> Float[Tensor, "position state=2 pair 1+label"]:
    """What each state writes: the blank, whatever the prefix, or the last label of the prefix."""
    by_position = scores.transpose(0, 1)
    dtype = torch.promote_types(scores.dtype, torch.float32)
    symbols = torch.stack([by_position[..., :1].expand_as(by_position), by_position], 1).to(dtype)
    symbols[:, LABEL, :, 0] = -torch.inf  # the empty prefix has no last label
    return symbols


def _run_recursion(
    symbols: Float[Tensor, "position state=2 pair 1+label"],
    repeats: Bool[Tensor, "pair label"],
    position_count: Int[Tensor, " pair"],
    *,
    best: bool,
) -> Float[Tensor, "1+position state=2 pair 1+label"]:
    """The states before the first position and after each; ⊕ is the maximum if the `best` alignment
    is wanted.

    Values move only from earlier to later positions and labels, so padding reaches nothing real.
    """
    if runs_kernels(symbols):
        from headwise.gpu import ctc_recursion

        return ctc_recursion.run_recursion(symbols, repeats, position_count, best=best)
    return run_recursion(symbols, repeats, best=best)


def run_recursion(
    symbols: Float[Tensor, "position state=2 pair 1+label"],
    repeats: Bool[Tensor, "pair label"],
    *,
    best: bool,
) -> Float[Tensor, "1+position state=2 pair 1+label"]:
    """The same in torch, through all positions of the longest pair."""
    combine = torch.maximum if best else torch.logaddexp
    num_positions, *shape = symbols.shape
    table = symbols.new_full((1 + num_positions, *shape), -torch.inf)
    table[0, BLANK, :, 0] = 0
    for before, after, symbol in zip(table[:-1], table[1:], symbols, strict=True):
        (blank, label), (written, lengthened) = before, after
        combine(blank, label, out=written)
        entering = torch.where(repeats, blank[:, :-1], written[:, :-1])
        combine(label[:, 1:], entering, out=lengthened[:, 1:])
        after.add_(symbol)
    return table


def _final_states(table: Tensor, counts: _RealLengths) -> Float[Tensor, "pair state=2"]:
    """Both states of the whole target after the last position of each pair."""
    pair = torch.arange(table.shape[2], device=table.device)
    return table[counts.positions, :, pair, counts.labels]


def _real_states(counts: _RealLengths, table: Tensor) -> Bool[Tensor, "position 1 pair 1+label"]:
    """Which positions and prefixes are no padding."""
    num_positions, _, _, width = table.shape
    position = torch.arange(num_positions - 1, device=table.device)[:, None, None]
    prefix = torch.arange(width, device=table.device)
    real = (position < counts.positions[:, None]) & (prefix <= counts.labels[:, None])
    return real[:, None]


class _Backwards(NamedTuple):
    """Indices that turn the real positions and labels of every pair around; padding: index 0."""

    position: Tensor
    """[pair, position] of the scores."""
    label: Tensor
    """[pair, label] of the labels."""
    column: Tensor
    """[pair, 1 + label]: the blank stays, label j and label n + 1 - j change places. It is the
    same for the states that hold a label."""
    prefix: Tensor
    """[pair, 1 + label]: before a blank, j labels are written; after it, n - j are."""

    @classmethod
    def of(cls, counts: _RealLengths, num_positions: int, num_labels: int) -> "_Backwards":
        position = torch.arange(num_positions, device=counts.positions.device)
        column = torch.arange(1 + num_labels, device=counts.labels.device)
        last_position, num_real = counts.positions[:, None] - 1, counts.labels[:, None]
        return cls(
            position=(last_position - position).clamp_min(0),
            label=(num_real - 1 - column[:-1]).clamp_min(0),
            column=torch.where(column > 0, num_real + 1 - column, 0).clamp_min(0),
            prefix=(num_real - column).clamp_min(0),
        )

    def turn_scores(self, scores: Tensor) -> Tensor:
        columns = scores.gather(2, self.column[:, None].expand_as(scores))
        return columns.gather(1, self.position[:, :, None].expand_as(scores))

    def turn_labels(self, labels: Tensor) -> Tensor:
        return labels.gather(1, self.label)

    def turn_table(self, beta: Tensor) -> Float[Tensor, "position state=2 pair 1+label"]:
        """β of each position and state as α counts them; a table begins before the first
        position."""
        shape = beta[1:].shape
        turned = beta[1:].gather(0, self.position.t()[:, None, :, None].expand(shape))
        return turned.gather(3, torch.stack([self.prefix, self.column]).expand(shape))


def _point_back(
    table: Float[Tensor, "1+position state=2 pair 1+label"], repeats: Bool[Tensor, "pair label"]
) -> Int[Tensor, "position pair states"]:
    """The best state before each state, for all positions at once.

    A state is a number: j for a blank after the prefix y_1 … y_j, 1 + label + j for its last label.
    """
    blank, label = table[:-1].unbind(1)
    width = blank.shape[-1]
    prefix = torch.arange(width, device=table.device)
    ends_in_label = label > blank
    to_blank = prefix + width * ends_in_label
    from_label = ends_in_label[..., :-1] & ~repeats
    entering = torch.where(from_label, label[..., :-1], blank[..., :-1])
    to_label = torch.where(
        entering > label[..., 1:], prefix[:-1] + width * from_label, prefix[1:] + width
    )
    return torch.cat([to_blank, to_blank[..., :1], to_label], dim=-1)


def _trace_back(
    pointers: Int[Tensor, "position pair states"],
    final: Float[Tensor, "pair state=2"],
    counts: _RealLengths,
) -> Int[Tensor, "pair position"]:
    """Follow the pointers of each pair from its last position; columns of the scores, or 0."""
    start = final.argmax(dim=1) * (pointers.shape[2] // 2) + counts.labels
    if runs_kernels(pointers):
        from headwise.gpu import ctc_recursion

        return ctc_recursion.trace_back(pointers, start, counts.positions)
    return trace_back(pointers, start, counts.positions)


def trace_back(
    pointers: Int[Tensor, "position pair states"],
    start: Int[Tensor, " pair"],
    position_count: Int[Tensor, " pair"],
) -> Int[Tensor, "pair position"]:
    """The same in torch; `start` is the state after the last position."""
    num_positions, num_pairs, num_states = pointers.shape
    width, state = num_states // 2, start[:, None]
    columns = pointers.new_zeros(num_positions, num_pairs, 1)
    for position in range(num_positions - 1, -1, -1):
        real = (position < position_count)[:, None]
        columns[position] = torch.where(real, state - width, 0).clamp_min(0)
        state = torch.where(real, pointers[position].gather(1, state), state)
    return columns[..., 0].t()
