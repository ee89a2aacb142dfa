"""Required phrases: beams banked by how much of what is required a hypothesis already holds.

Each phrase is a small automaton (Knuth, Morris & Pratt 1977): its state is the length of the longest beginning of the
phrase that ends at the last token, and a phrase once complete stays complete. A hypothesis with unmet phrases u, at
positions m_u, still needs at most

    need = Σ_u length_u - max_u m_u      tokens,

so bank = Σ length - need counts constraint tokens met. Every step (dynamic beam allocation, Post & Vilar 2018, after grid
beam search, Hokamp & Liu 2017) weighs the best tokens of every row *and* the next token of every unmet phrase, deals the
beam's slots round the banks, and drops candidates that could no longer meet their need before the length limit. The end
of the sentence is allowed only when nothing is needed; the next token of the most advanced phrase always lowers
the need, so every finished hypothesis holds every phrase.
Tested by that law, with overlapping phrases and with phrases the model hates.
"""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from headwise.decoding.candidates import Candidates, weigh_rows
from headwise.decoding.constraints import MINUS_INFINITY, Phrases
from headwise.decoding.stepping import EOS, PAD


class RequiredPhrases:
    """The automata of one batch's phrases and where in them every row is."""

    def __init__(self, phrases: Sequence[Phrases], *, size: int, limits: Tensor) -> None:
        device = limits.device
        wanted = [list(dict.fromkeys(wishes.required)) for wishes in phrases]
        self.size, self.limits = size, limits
        self.num_phrases = max(map(len, wanted))
        longest = max(len(phrase) for sentence in wanted for phrase in sentence)
        shape = (len(wanted), self.num_phrases)
        tokens = np.full((*shape, longest + 1), PAD, dtype=np.int64)
        lengths = np.zeros(shape, dtype=np.int64)
        moves = np.zeros((*shape, longest + 1, longest + 1), dtype=np.int64)
        for i, sentence in enumerate(wanted):
            for j, phrase in enumerate(sentence):
                tokens[i, j, : len(phrase)] = phrase
                lengths[i, j] = len(phrase)
                moves[i, j, : len(phrase) + 1, : len(phrase)] = build_automaton(phrase)
                moves[i, j, len(phrase)] = len(phrase)
        self.num_banks = int(lengths.sum(1).max()) + 1
        self.tokens, self.lengths, self.moves = (
            torch.from_numpy(table).to(device) for table in (tokens, lengths, moves)
        )
        self.progress = torch.zeros((len(wanted), size, self.num_phrases), dtype=torch.long, device=device)

    def next_tokens(self) -> Int[Tensor, "row phrase"]:
        """The token that would advance each unmet phrase of each row, padding where none would."""
        table = self.tokens[:, None].expand(-1, self.size, -1, -1)
        return table.gather(3, self.progress[..., None])[..., 0].flatten(0, 1)

    def weigh(
        self, scores: Float[Tensor, "row vocab"], running: Float[Tensor, "sentence beam"], *, step: int
    ) -> Candidates:
        """The best tokens of every row and the next tokens of its phrases, with a place in the queue for the beam."""
        size = running.shape[1]
        per_row = min(2 * size, scores.shape[-1])
        best = weigh_rows(scores, running, per_row=per_row)
        extra = self._weigh_next_tokens(scores, running, best[3].view(-1, per_row))
        total, value, parent, token = (torch.cat(pair, dim=1) for pair in zip(best, extra, strict=True))
        progress = self._move(parent, token)
        need = self._count_needed(progress)
        remaining = (self.limits[:, None] - step - 2).clamp(min=0)
        possible = need <= torch.where(token == EOS, 0, remaining)
        total = torch.where(possible, total, MINUS_INFINITY)
        order = total.argsort(dim=1, descending=True, stable=True)
        total, value, parent, token, need = (table.gather(1, order) for table in (total, value, parent, token, need))
        progress = progress.gather(1, order[..., None].expand(-1, -1, self.num_phrases))
        rank = self._rank_in_bank(need)
        # Once round all banks before anyone's second turn, the most advanced bank first.
        priority = -(rank * self.num_banks + need).to(total.dtype)
        priority = torch.where(total > MINUS_INFINITY, priority, MINUS_INFINITY)
        return Candidates(total, value, parent, token, rank < size, priority, progress)

    def _weigh_next_tokens(
        self, scores: Tensor, running: Tensor, known: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        num_sentences, size = running.shape
        wanted = self.next_tokens()
        values = scores.gather(1, wanted)
        repeated = (wanted[:, :, None] == known[:, None, :]).any(-1)
        same = wanted[:, :, None] == wanted[:, None, :]
        repeated |= same.tril(-1).any(-1)
        values = values.masked_fill(repeated, MINUS_INFINITY)
        totals = running[:, :, None] + values.view(num_sentences, size, -1)
        parents = torch.arange(size, device=scores.device).repeat_interleave(self.num_phrases)
        return (
            totals.view(num_sentences, -1),
            values.view(num_sentences, -1),
            parents.expand(num_sentences, -1),
            wanted.view(num_sentences, -1),
        )

    def _move(self, parent: Tensor, token: Tensor) -> Int[Tensor, "sentence candidate phrase"]:
        """Positions after each candidate's token."""
        before = self.progress.gather(1, parent[..., None].expand(-1, -1, self.num_phrases))
        # The first place at which a phrase holds the token stands for it; a token the phrase lacks takes the last column.
        holds = self.tokens[:, None, :, :-1] == token[:, :, None, None]
        column = torch.where(holds.any(-1), holds.int().argmax(-1), self.tokens.shape[-1] - 1)
        moves = self.moves[:, None].expand(-1, token.shape[1], -1, -1, -1)
        after = moves.gather(3, before[..., None, None].expand(-1, -1, -1, -1, moves.shape[-1]))[..., 0, :]
        return after.gather(3, column[..., None])[..., 0]

    def _count_needed(self, progress: Tensor) -> Int[Tensor, "sentence candidate"]:
        lengths = self.lengths[:, None]
        unmet = progress < lengths
        return (lengths * unmet).sum(-1) - (progress * unmet).amax(-1)

    def _rank_in_bank(self, need: Tensor) -> Int[Tensor, "sentence candidate"]:
        """How many candidates of the same bank stand before each one."""
        return (need[:, :, None] == need[:, None, :]).tril(-1).sum(-1)

    def advance(self, progress: Int[Tensor, "sentence beam phrase"]) -> None:
        self.progress = progress

    def keep(self, sentences: Tensor, limits: Tensor) -> None:
        """Forget all sentences but these."""
        self.limits = limits
        self.tokens, self.lengths, self.moves = self.tokens[sentences], self.lengths[sentences], self.moves[sentences]
        self.progress = self.progress[sentences]


def build_automaton(phrase: Sequence[int]) -> list[list[int]]:
    """Row = position 0 … length, column i = reading phrase[i] (a token's first place counts): the next position.

    A token the phrase lacks leads to 0; so does the unused padding of the table. Complete stays complete.
    """
    rows: list[list[int]] = []
    fallback = 0
    for position, expected in enumerate(phrase):
        if position == 0:
            rows.append([int(token == expected) for token in phrase])
            continue
        rows.append([position + 1 if token == expected else rows[fallback][i] for i, token in enumerate(phrase)])
        fallback = rows[fallback][phrase.index(expected)]
    rows.append([len(phrase)] * len(phrase))
    return rows
