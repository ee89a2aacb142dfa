"""Generates a batch in rounds of draft and verify: the next tokens are guessed, and one pass of the
model keeps those that are right. The output is that of greedy search.

    draft      d_1 … d_k after the verified tokens y_1 … y_n of a row
    verify     p_0 … p_k: one pass over y_n d_1 … d_k
    accept     the longest d_1 … d_a whose every token is the best one of p_0 … p_{a-1}
    write      d_1 … d_a and the best token of p_a: a + 1 tokens for one pass

Each row accepts its own number of tokens. Where no draft is right a round is one step of greedy
search. An end of sentence inside an accepted draft ends the row at once. Tokens of a prefix are
known, so they take the place of drafts. Finished rows are dropped when they are a quarter of the
batch, as in the plain engine.

Stern et al. 2018, *Blockwise parallel decoding for deep autoregressive models*.
Tested: every drafter, a random one included, against greedy search, token for token; a drafter that
knows the output has all its drafts accepted; a batch against its sentences one by one.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from headwise.decoding.drafting.acceptance import AcceptanceSettings
from headwise.decoding.drafting.block_rules import BlockRules
from headwise.decoding.drafting.protocol import DraftedRow, Drafter, Verifier
from headwise.decoding.engines.plain import pays_to_compact
from headwise.decoding.generator import Watcher
from headwise.decoding.records import DraftRecord, DraftRound
from headwise.decoding.results import SearchResult
from headwise.text.tokenizer import PAD


@torch.no_grad()
def run_rounds(
    verifier: Verifier,
    drafter: Drafter,
    rows: Sequence[DraftedRow],
    *,
    rules: BlockRules,
    accept: AcceptanceSettings,
    block: int,
    watcher: Watcher,
    traced: bool = False,
) -> list[SearchResult]:
    """Write all rows; results are in their order. At most `block` tokens are drafted a round."""
    alive = list(rows)
    while True:
        _tell(rows[0], watcher)
        drafts = _draft(drafter, alive, block)
        fed = _block_of(alive, drafts, verifier.device)
        scores = verifier.score(fed)
        rules.mask(scores, alive, fed)
        counts = _take(scores, fed, alive, drafts, accept)
        for row, count in zip(alive, counts, strict=True):
            if count:
                rules.advance(row, row.tokens[-count:])
        left = [place for place, row in enumerate(alive) if not row.is_done]
        if watcher.on_result is not None and left:
            for row, count in zip(alive, counts, strict=True):
                if count and row.is_done:
                    watcher.on_result(row.number, _result(row, traced=traced))
        if not left:
            return [_result(row, traced=traced) for row in rows]
        verifier.accept(counts)
        if len(left) < len(alive) and pays_to_compact(len(alive) - len(left), len(alive)):
            verifier.keep(left)
            alive = [alive[place] for place in left]


def _tell(first: DraftedRow, watcher: Watcher) -> None:
    if watcher.before_step is not None:
        watcher.before_step()
    if watcher.on_tokens is not None and not first.is_done:
        watcher.on_tokens(tuple(first.tokens))


def _draft(drafter: Drafter, rows: Sequence[DraftedRow], block: int) -> Sequence[Sequence[int]]:
    """The drafts of every row: what is left of its prefix, then what the drafter proposes.

    Without a prefix the first token is the verifier's own, so a draft is one shorter than the room.
    """
    drafts = []
    for row, draft in zip(rows, drafter.draft(rows, block), strict=True):
        known = row.prefix[len(row.tokens) :]
        room = 0 if row.is_done else min(block, row.num_left - 1)
        drafts.append((known or draft)[:room])
    return drafts


def _block_of(
    rows: Sequence[DraftedRow], drafts: Sequence[Sequence[int]], device: torch.device
) -> Tensor:
    width = 1 + max(map(len, drafts))
    table = [
        [row.last, *draft, *[PAD] * (width - 1 - len(draft))]
        for row, draft in zip(rows, drafts, strict=True)
    ]
    return torch.tensor(table, device=device)


def _take(
    scores: Tensor,
    fed: Tensor,
    rows: Sequence[DraftedRow],
    drafts: Sequence[Sequence[int]],
    accept: AcceptanceSettings,
) -> list[int]:
    """Every row writes its accepted drafts and one token of the verifier; how many, by row."""
    best_values, best = scores.max(-1)
    drafted = fed[:, 1:]
    allowed = accept.allows(scores[:, :-1], best[:, :-1], drafted).tolist()
    values = scores[:, :-1].gather(-1, drafted[:, :, None])[:, :, 0].tolist()
    own, own_values = best.tolist(), best_values.tolist()
    counts = []
    for place, (row, draft) in enumerate(zip(rows, drafts, strict=True)):
        before = len(row.tokens)
        if not row.is_done:
            row.num_rounds += 1
            row.choices.update(zip([row.last, *draft], own[place], strict=False))
            for step in range(len(draft) + 1):
                is_accepted = step < len(draft) and allowed[place][step]
                if is_accepted:
                    row.take(draft[step], values[place][step])
                    if not row.is_done:
                        continue
                else:
                    row.take(own[place][step], own_values[place][step])
                row.guesses = own[place][step + 1 : len(draft) + 1]
                row.rounds.append(_round(row, draft, values[place], is_accepted=is_accepted))
                break
        counts.append(len(row.tokens) - before)
    return counts


def _round(
    row: DraftedRow, draft: Sequence[int], values: Sequence[float], *, is_accepted: bool
) -> DraftRound:
    """The round that has just been written; `is_accepted`: its last token was a draft, too."""
    before = sum(one.num_accepted + (one.own is not None) for one in row.rounds)
    return DraftRound(
        tuple(draft),
        tuple(values[: len(draft)]),
        len(row.tokens) - before - (not is_accepted),
        None if is_accepted else row.tokens[-1],
        None if is_accepted else row.values[-1],
    )


def _result(row: DraftedRow, *, traced: bool) -> SearchResult:
    record = DraftRecord(tuple(row.rounds)) if traced else None
    return SearchResult((row.hypothesis(),), num_steps=row.num_rounds, record=record)
