"""Encodes a block of sentence pairs: filters, tokenizers, limits on length.

It is a pure function: the result for a pair depends on the pair alone, so blocks can be encoded in
any order and in other processes (`encoding_workers.py`). Only duplicates depend on earlier blocks:
each pair gets a hash, and the caller drops pairs whose hash it has seen (`Gate`).

Tested against: the same steps one pair at a time, and the same blocks encoded in other processes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from headwise.data.pairs.filtering import (
    REASONS,
    FilterReport,
    FilterSettings,
    LengthLimits,
    SeenHashes,
    check_lengths,
    check_text,
    hash_pair,
)
from headwise.data.pairs.held_out import HeldOut
from headwise.data.pairs.parallel_files import Pair
from headwise.data.shards import Ragged, as_ragged
from headwise.text.tokenizer_pair import TokenizerPair

KEPT = 0
CODES = {reason: code for code, reason in enumerate(REASONS, start=1)}
"""The reason a pair was dropped, as a small number; 0 is a pair that is kept."""
NAMES = {code: reason for reason, code in CODES.items()}


@dataclass(frozen=True)
class EncodedBlock:
    """The result for each pair, its hash (0 if a text filter dropped it), and the ids of the kept
    pairs.
    """

    reasons: np.ndarray
    hashes: np.ndarray
    source: Ragged
    target: Ragged


@dataclass(frozen=True)
class BlockEncoder:
    """Everything the result for a pair depends on, apart from duplicates."""

    tokenizers: TokenizerPair
    settings: FilterSettings
    limits: LengthLimits
    held_out: HeldOut

    def __call__(self, pairs: Sequence[Pair]) -> EncodedBlock:
        reasons = np.zeros(len(pairs), dtype=np.uint8)
        hashes = np.zeros(len(pairs), dtype=np.uint64)
        places, clean = [], []
        for number, pair in enumerate(pairs):
            reason, cleaned = check_text(pair, self.settings)
            if reason is not None:
                reasons[number] = CODES[reason]
                continue
            if self.settings.drop_duplicates:
                hashes[number] = hash_pair(cleaned)
            if self.held_out.holds(cleaned):
                reasons[number] = CODES["leaked"]
                continue
            places.append(number)
            clean.append(cleaned)
        sources = self.tokenizers.source.encode_batch([pair.source for pair in clean])
        targets = self.tokenizers.target.encode_batch([pair.target for pair in clean])
        kept = []
        for index, (source, target) in enumerate(zip(sources, targets, strict=True)):
            reason = check_lengths(
                len(source), len(target), limits=self.limits, max_ratio=self.settings.max_ratio
            )
            if reason is None:
                kept.append(index)
            else:
                reasons[places[index]] = CODES[reason]
        return EncodedBlock(
            reasons,
            hashes,
            as_ragged([sources[i] for i in kept]),
            as_ragged([targets[i] for i in kept]),
        )


@dataclass
class Gate:
    """Takes encoded blocks in order, drops duplicates of earlier pairs, and counts for the
    report.
    """

    drop_duplicates: bool
    report: FilterReport = field(default_factory=FilterReport)
    _seen: SeenHashes = field(default_factory=SeenHashes)

    def admit(self, pairs: Sequence[Pair], block: EncodedBlock) -> tuple[Ragged, Ragged]:
        """Both sides of the pairs that are kept."""
        reasons = block.reasons.copy()
        if self.drop_duplicates:
            passed = np.flatnonzero(block.hashes)
            reasons[passed[~self._seen.add(block.hashes[passed])]] = CODES["duplicate"]
        for number in np.flatnonzero(reasons).tolist():
            self.report.drop(NAMES[int(reasons[number])], pairs[number])
        self.report.read += len(pairs)
        chosen = reasons[block.reasons == KEPT] == KEPT
        self.report.kept += int(chosen.sum())
        return block.source.choose(chosen), block.target.choose(chosen)
