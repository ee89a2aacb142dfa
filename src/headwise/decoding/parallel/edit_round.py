"""One round of the Levenshtein Transformer: delete words, insert placeholders, fill them.

    <s> a b b </s>  →  delete  →  <s> a b </s>
                    →  insert  →  <s> a b _ _ </s>
                    →  fill    →  <s> a b c d </s>

Each of the three policies decides about all positions of all sentences at once:

    deleted    P(delete) > P(keep)
    count      argmax over 0, 1, …; a penalty is subtracted from log P(0)
    word       argmax over the words that are not excluded

A sentence must not become longer than its limit: the gaps, from left to right, share what is left
of it. A policy is not asked if no sentence has something for it to decide.

Paper: Gu, Wang & Zhao 2019, "Levenshtein Transformer" (arXiv 1905.11006). Tested through the search
(edits.py), and by hand-worked rounds.
"""

from dataclasses import dataclass, replace
from typing import Protocol

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headwise.data.token_edits import (
    insert_placeholders,
    is_word,
    move,
    places_after_deletion,
    places_after_insertion,
)
from headwise.decoding.parallel.excluded_tokens import exclude
from headwise.text.tokenizer import PAD


class EditPolicies(Protocol):
    """A decoder with the heads of the Levenshtein Transformer, which has read all sources.

    `sentences` are the numbers of the sources that the rows belong to. Sequences begin with <s> and
    end with </s>; padding is what has the token PAD. The search may change the tensors returned.
    """

    @property
    def device(self) -> torch.device: ...

    def delete(
        self, tokens: Int[Tensor, "row position"], sentences: Int[Tensor, " row"]
    ) -> Float[Tensor, "row position 2"]:
        """Log-probabilities of keeping and of deleting each token."""
        ...

    def insert(
        self, tokens: Int[Tensor, "row position"], sentences: Int[Tensor, " row"]
    ) -> Float[Tensor, "row gap count"]:
        """Log-probabilities of 0, 1, … placeholders between each two neighbouring tokens."""
        ...

    def fill(
        self,
        tokens: Int[Tensor, "row position"],
        known: Bool[Tensor, "row position"],
        sentences: Int[Tensor, " row"],
    ) -> Float[Tensor, "row position vocab"]:
        """Log-probabilities of words; where `known` is false stands a placeholder."""
        ...


@dataclass(frozen=True)
class EditedRows:
    """Sentences that are being edited: <s>, words, </s>, padding."""

    tokens: Int[Tensor, "row position"]
    scores: Float[Tensor, "row position"]
    """Log-probabilities of the words when they were filled in; 0 for all other tokens."""
    sentences: Int[Tensor, " row"]
    limits: Int[Tensor, " row"]
    """Most words of each sentence."""

    def select(self, index: Int[Tensor, " chosen"]) -> "EditedRows":
        """Some of the sentences, in rows as wide as the longest of them."""
        tokens = self.tokens[index]
        width = int(tokens.ne(PAD).sum(1).max())
        return EditedRows(
            tokens[:, :width],
            self.scores[index][:, :width],
            self.sentences[index],
            self.limits[index],
        )


@dataclass(frozen=True)
class RoundTensors:
    """What one round did, for all rows."""

    before: EditedRows
    deleted: Bool[Tensor, "row position"]
    deletion_probability: Float[Tensor, "row position"]
    is_cut: Bool[Tensor, " row"]
    """Whether the limit allowed fewer placeholders than the policy chose."""
    known: Bool[Tensor, "row position_after"]
    after: EditedRows


def run_round(
    policies: EditPolicies,
    rows: EditedRows,
    *,
    insertion_penalty: float,
    excluded: tuple[int, ...],
) -> RoundTensors:
    """Delete, insert and fill once."""
    left, deleted, deletion_probability = delete_words(policies, rows)
    wanted = count_insertions(policies, left, penalty=insertion_penalty)
    counts = share_room(wanted, left.limits - is_word(left.tokens).sum(1))
    width = int((left.tokens.ne(PAD).sum(1) + counts.sum(1)).max())
    tokens, known = insert_placeholders(left.tokens, counts, width=width)
    place = places_after_insertion(left.tokens, counts, width=width)
    longer = replace(left, tokens=tokens, scores=move(left.scores, place, width=width, empty=0.0))
    return RoundTensors(
        rows,
        deleted,
        deletion_probability,
        wanted.ne(counts).any(1),
        known,
        fill_placeholders(policies, longer, known, excluded=excluded),
    )


def delete_words(
    policies: EditPolicies, rows: EditedRows
) -> tuple[EditedRows, Bool[Tensor, "row position"], Float[Tensor, "row position"]]:
    """The sentences that are left, which words went, and the probability of it for every token."""
    tokens, words = rows.tokens, is_word(rows.tokens)
    if not bool(words.any()):
        return rows, torch.zeros_like(words), torch.zeros_like(rows.scores)
    table = policies.delete(tokens, rows.sentences).float()
    deleted = (table[..., 1] > table[..., 0]) & words
    place, width = places_after_deletion(tokens, deleted), tokens.shape[1]
    left = replace(
        rows,
        tokens=move(tokens, place, width=width),
        scores=move(rows.scores, place, width=width, empty=0.0),
    )
    return left, deleted, table[..., 1].exp().masked_fill(~words, 0.0)


def count_insertions(
    policies: EditPolicies, rows: EditedRows, *, penalty: float
) -> Int[Tensor, "row gap"]:
    """The number of placeholders that the policy wants in each gap."""
    table = policies.insert(rows.tokens, rows.sentences).float()
    table[..., 0] -= penalty
    return torch.where(rows.tokens[:, 1:].ne(PAD), table.argmax(-1), 0)


def share_room(wanted: Int[Tensor, "row gap"], room: Int[Tensor, " row"]) -> Int[Tensor, "row gap"]:
    """The counts of the gaps, from left to right, until `room` placeholders are given out."""
    total = torch.minimum(wanted.cumsum(1), room.clamp(min=0)[:, None])
    return total.diff(dim=1, prepend=torch.zeros_like(total[:, :1]))


def fill_placeholders(
    policies: EditPolicies,
    rows: EditedRows,
    known: Bool[Tensor, "row position"],
    *,
    excluded: tuple[int, ...],
) -> EditedRows:
    """The most probable word at each placeholder, with its log-probability."""
    if bool(known.all()):
        return rows
    scores = policies.fill(rows.tokens, known, rows.sentences)
    exclude(scores, excluded)
    best = scores.max(dim=-1)
    return replace(
        rows,
        tokens=torch.where(known, rows.tokens, best.indices),
        scores=torch.where(known, rows.scores, best.values.float()),
    )
