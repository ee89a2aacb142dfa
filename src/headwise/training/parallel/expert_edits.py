"""The expert of the Levenshtein Transformer: the fewest insertions and deletions between sequences.

Words are deleted and inserted and never substituted, so the words that stay are a longest common
subsequence (LCS) of start and target:

    L[i, j] = max(L[i-1, j], L[i, j-1], L[i-1, j-1] + [start_i = target_j])
    number of edits = |start| + |target| - 2 L[|start|, |target|]        (Indel distance)

A row of L depends on the row above and on itself from left to right. The latter is a running
maximum, so all pairs and all columns of a row are computed at once:

    L[i, ·] = cummax(max(L[i-1, ·], L[i-1, · - 1] + [start_i = target_·]))

On the way back, from the last row to the first with the current column j, token i is kept if
L[i, j] > L[i-1, j]. It is matched with the first column k whose L[i, k] = L[i, j], and the path
goes on at k - 1. The columns of all possible steps are computed for the whole table at once, so
each row costs one lookup. Of several shortest edits, this one keeps the earlier of equal words.
A row may hold several sentences, each from <s> to </s>. Tokens of different sentences are not
equal, so the longest common subsequence of the rows is that of the first sentences, of the second
ones, and so on, one after the other: the same two loops find the edits of all sentences.

Tables take about ten bytes for each pair, start token and target token: 25 MB for 1,000 pairs of
50 tokens.

Paper: Gu, Wang & Zhao 2019, "Levenshtein Transformer" (arXiv 1905.11006), the expert policy.
Tested against: the LCS of a plain Python program, all shortest edits by enumeration, hand-worked
cases; the edits turn any start into the target.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Int
from torch import Tensor

from headwise.data.token_edits import move, places_after_deletion, sentence_numbers
from headwise.text.tokenizer import PAD


class ExpertEdits(NamedTuple):
    """What turns each start into its target: delete, then insert placeholders, then fill them."""

    deleted: Bool[Tensor, "pair position"]
    """Start tokens to delete; never <s>, </s> or padding."""
    inserted: Int[Tensor, "pair gap"]
    """Placeholders for each gap between two tokens that are left after the deletion; gap g lies
    between the tokens g and g + 1 of `delete_tokens(start, deleted)`."""
    filled: Bool[Tensor, "pair label"]
    """Target tokens that fill the placeholders; the others come from the start."""


def expert_edits(
    start: Int[Tensor, "pair position"], target: Int[Tensor, "pair label"]
) -> ExpertEdits:
    """The shortest edits of each pair.

    Both sequences begin with <s> and end with </s>, which occur nowhere else; a row holds the same
    number of sentences on both sides and is padded at the right. Then <s> and </s> are always kept,
    because no other token can match them.
    """
    column = trace_back(common_lengths(start, target))
    kept, matched = column[:, 1:] > column[:, :-1], column[:, :-1]
    num_labels = target.shape[1]
    is_matched = move(
        torch.ones_like(start), torch.where(kept, matched, num_labels), width=num_labels
    ).bool()
    deleted = ~kept & start.ne(PAD)
    left = move(
        matched, places_after_deletion(start, deleted), width=start.shape[1], empty=num_labels
    )
    before, after = left[:, :-1], left[:, 1:]
    inserted = torch.where(after < num_labels, after - before - 1, 0)
    return ExpertEdits(deleted, inserted, ~is_matched & target.ne(PAD))


def common_lengths(
    start: Int[Tensor, "pair position"], target: Int[Tensor, "pair label"]
) -> Int[Tensor, "rows pair columns"]:
    """L: the length of the longest common subsequence of the first i and the first j tokens.

    There is one more row than start tokens and one more column than target tokens: the empty
    beginnings. Padding matches nothing.
    """
    equal = start.t()[:, :, None].eq(target) & target.ne(PAD)
    equal &= sentence_numbers(start).t()[:, :, None].eq(sentence_numbers(target))
    table = torch.zeros(
        start.shape[1] + 1,
        start.shape[0],
        target.shape[1] + 1,
        dtype=torch.int16,
        device=start.device,
    )
    for above, row, match in zip(table[:-1], table[1:], equal, strict=True):
        longest = torch.maximum(above[:, 1:], above[:, :-1] + match)
        row[:, 1:] = longest.cummax(1).values
    return table


def trace_back(table: Int[Tensor, "rows pair columns"]) -> Int[Tensor, "pair rows"]:
    """The column of the path in each row of L, from (0, 0) to the last row and column.

    Between two rows the column grows by at least one if the token of the lower row is kept: it is
    matched with the target token whose index is the column of the upper row.
    """
    column = torch.arange(table.shape[2], dtype=table.dtype, device=table.device)[1:]
    grows = table[1:, :, 1:] > table[1:, :, :-1]
    first = torch.where(grows, column, 0).cummax(2).values
    is_needed = table[1:, :, 1:] > table[:-1, :, 1:]
    step = F.pad(torch.where(is_needed, first - 1, column), (1, 0)).long()
    path = [torch.full_like(step[0, :, :1], table.shape[2] - 1)]
    for row in reversed(step.unbind(0)):
        path.append(row.gather(1, path[-1]))
    return torch.cat(path[::-1], dim=1)
