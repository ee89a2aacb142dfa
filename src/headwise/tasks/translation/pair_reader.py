"""A translator that reads parallel text into a memory: the decoder's state before each token of the
reference, with source and earlier tokens given.

Corpora are named as in `data.train` of a recipe. Pairs that are longer than the model reads, or
empty on one side, are left out.
Tested against: the states of a stepper over the same prefixes; interrupted = in one go.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from headwise.data.pairs.choices import DataSettings, read_corpus
from headwise.data.pairs.filtering import KEEP_ALL, check_text
from headwise.models.limits import target_limits
from headwise.models.state_keys import key_width
from headwise.neighbours.writing import StoredLine
from headwise.settings import check_settings, read_yaml
from headwise.tasks.memory_reader import Predicted, ReadBlock
from headwise.tasks.translation.bundle import require_one_direction
from headwise.tasks.translation.memory import ForcedBatch, refuse_parallel
from headwise.tasks.translation.translator import Translator
from headwise.text.tokenizer import EOS

BLOCK_PAIRS = 512
Tokens = Sequence[int]


@dataclass(frozen=True)
class _ReadPair:
    """A pair as text and as tokens, and where it stands."""

    source: str
    target: str
    file: str
    line: int
    source_ids: tuple[int, ...]
    target_ids: tuple[int, ...]


class PairReader:
    """A translator that reads parallel text into a store; what it cannot read is left out."""

    def __init__(self, bundle: Path) -> None:
        self.translator = Translator.load(bundle)
        require_one_direction(self.translator.recipe.data, bundle)
        refuse_parallel(self.translator, bundle)
        self.reading = self.translator.forced_reading
        self.key, self.dim = self.reading.tap.layer, key_width(self.translator.model)
        limits = target_limits(self.translator.recipe.model)
        self.longest_target = min((one.tokens for one in limits), default=None)

    def count(self, texts: Sequence[str]) -> int:
        return sum(1 for _ in self._pairs(texts))

    def read(self, texts: Sequence[str], *, skip: int) -> Iterator[ReadBlock]:
        for block, read in self._blocks(texts, skip):
            yield ReadBlock(self._stored(block), read)

    def predict(self, texts: Sequence[str]) -> Iterator[Predicted]:
        for block, _ in self._blocks(texts, 0):
            for batch in self._read(block):
                for row, (i, length) in enumerate(zip(batch.numbers, batch.lengths, strict=True)):
                    tokens = torch.tensor([*block[i].target_ids, EOS], device=batch.hidden.device)
                    scores = self.reading.scores(batch.hidden[row, :length], tokens)
                    yield Predicted(scores.cpu(), tokens.cpu(), batch.keys[row, :length].cpu())

    def _stored(self, block: Sequence[_ReadPair]) -> list[StoredLine]:
        found: dict[int, StoredLine] = {}
        for batch in self._read(block):
            keys = batch.keys.cpu().numpy()
            for row, (i, length) in enumerate(zip(batch.numbers, batch.lengths, strict=True)):
                one = block[i]
                values = np.array([*one.target_ids, EOS])
                found[i] = StoredLine(
                    one.file, one.line, one.source, one.target, keys[row, :length].copy(), values
                )
        return [found[i] for i in sorted(found)]

    def _read(self, block: Sequence[_ReadPair]) -> Iterator[ForcedBatch]:
        sources, targets = [one.source_ids for one in block], [one.target_ids for one in block]
        return self.reading.read(sources, targets)

    def _blocks(self, texts: Sequence[str], skip: int) -> Iterator[tuple[list[_ReadPair], int]]:
        rest, read = islice(self._pairs(texts), skip, None), skip
        tokenizers = self.translator.tokenizers
        while block := list(islice(rest, BLOCK_PAIRS)):
            sources = tokenizers.source.encode_batch([one[0] for one in block])
            targets = tokenizers.target.encode_batch([one[1] for one in block])
            read += len(block)
            found = [
                _ReadPair(*one, tuple(source), tuple(target))
                for one, source, target in zip(block, sources, targets, strict=True)
                if self._fits(source, target)
            ]
            if found:
                yield found, read

    def _fits(self, source: Tokens, target: Tokens) -> bool:
        longest = self.longest_target or self.translator.longest_source.tokens
        is_short = len(source) < self.translator.longest_source.tokens and len(target) < longest
        return bool(source) and bool(target) and is_short

    def _pairs(self, texts: Sequence[str]) -> Iterator[tuple[str, str, str, int]]:
        data = self.translator.recipe.data
        names = [read_yaml(one) if one.startswith("{") else one for one in texts]
        wanted = {"source": data.source, "target": data.target, "train": names}
        for corpus in check_settings(DataSettings, wanted).train:
            for pair in read_corpus(corpus, source=data.source, target=data.target):
                reason, cleaned = check_text(pair, KEEP_ALL)
                if reason is None:
                    yield cleaned.source, cleaned.target, cleaned.file, cleaned.line
