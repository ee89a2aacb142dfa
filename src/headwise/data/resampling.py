"""Text cut anew each time it is seen: BPE-dropout and unigram sampling over a tokenised store.

The stored ids are decoded and segmented again at random (Provilkov et al. 2020; Kudo 2018), so the model meets a word
in many cuts. The cut is a pure function of the chunk's key (seed, epoch, chunk), like the order itself. A pair whose new
cut would not fit a row keeps the stored one. It costs time: about 15,000 pairs a second on one core.

Tested against: decoded text unchanged, equal keys equal cuts, the stored ids when the amount is nearly zero.
"""

from collections.abc import Sequence
from typing import cast

import numpy as np

from headwise.data.shards import CorpusRange, Ragged, TokenStore
from headwise.errors import SettingsError
from headwise.randomness import seed_from
from headwise.text.pair import TokenizerPair
from headwise.text.tokenizer import SamplingTokenizer, Tokenizer


class ResampledStore:
    """A store whose pairs are segmented anew on every visit; give it to `batches` in place of the store."""

    def __init__(
        self, store: TokenStore, tokenizers: TokenizerPair, *, amount: float, source_row: int, target_row: int
    ) -> None:
        self.store, self.amount = store, amount
        self.source_row, self.target_row = source_row, target_row
        self.source_tokenizer = sampling_tokenizer(tokenizers.source)
        self.target_tokenizer = sampling_tokenizer(tokenizers.target)

    @property
    def corpora(self) -> Sequence[CorpusRange]:
        return self.store.corpora

    def __len__(self) -> int:
        return len(self.store)

    def gather(self, pairs: np.ndarray, key: Sequence[int | str] = ()) -> tuple[Ragged, Ragged]:
        source, target = self.store.gather(pairs)
        return (
            self._cut(source, self.source_tokenizer, self.source_row, seed_from(*key, "source cut")),
            self._cut(target, self.target_tokenizer, self.target_row, seed_from(*key, "target cut")),
        )

    def _cut(self, stored: Ragged, tokenizer: SamplingTokenizer, row: int, seed: int) -> Ragged:
        sequences = [sequence.tolist() for sequence in stored.split()]
        texts = [tokenizer.decode(sequence) for sequence in sequences]
        drawn = tokenizer.sample_batch(texts, amount=self.amount, seed=seed)
        kept = [new if 0 < len(new) < row else old for new, old in zip(drawn, sequences, strict=True)]
        lengths = np.fromiter(map(len, kept), np.int64, len(kept))
        return Ragged(np.fromiter((t for ids in kept for t in ids), np.int64, int(lengths.sum())), lengths)


def sampling_tokenizer(tokenizer: Tokenizer) -> SamplingTokenizer:
    """The tokenizer, if it can cut a text in several ways."""
    if not hasattr(tokenizer, "sample_batch"):
        raise SettingsError(
            "text.sampling needs pieces of words, which alone can be cut in several ways; use text.kind=sentencepiece",
            "text.sampling 需要可多种切分的词片；请用 text.kind=sentencepiece",
        )
    return cast(SamplingTokenizer, tokenizer)
