"""Start from word vectors (`model.start_from` names a bundle of word2vec): its words become the
vocabulary, its vectors the initial embedding.

    E[word] = (vector - m) / (r √dim)      m: the mean of all vectors; r: the root mean square after
    E[unknown word] = 0                    subtraction, so that the scale is that of a new table

The mean is subtracted because all words share it, so that it does not distinguish them (Mu &
Viswanath 2018). The meaning of words is then learnt from unlabelled text, and only their role in
the task from labels (Collobert et al. 2011; Kim 2014). All other weights are initialised as usual.
Tested: the rows of the embedding; another width, pieces instead of words and another case are
refused.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from headwise.errors import CheckpointError
from headwise.models.sentence_encoder import SentenceEncoder, SentenceEncoderSettings
from headwise.tasks.word_vectors.bundle import load_word_vectors
from headwise.text.choices import TextSettings, WordSettings
from headwise.text.tokenizer import NUM_SPECIAL, SPECIAL_PIECES, UNKNOWN, Tokenizer
from headwise.text.vocabulary import Vocabulary
from headwise.text.word_tokenizer import WordTokenizer


@dataclass(frozen=True)
class VectorStart:
    """What is taken over: words and a vector for each."""

    tokenizer: Tokenizer
    vectors: np.ndarray

    def put_into(self, encoder: nn.Module) -> None:
        """The embedding's rows; what stands above it stays as it was drawn."""
        assert isinstance(encoder, SentenceEncoder), "find_start is asked for these alone"
        table = encoder.embedding.table.weight
        with torch.no_grad():
            table[NUM_SPECIAL:].copy_(torch.from_numpy(self.vectors))
            table[UNKNOWN] = 0

    def put_heads_into(self, model: nn.Module) -> None:
        """Nothing stood on them."""


def start_from_vectors(
    path: Path, model: SentenceEncoderSettings, text: TextSettings
) -> VectorStart:
    """The words and vectors of a bundle, checked against the recipe."""
    bundle = load_word_vectors(path)
    lowercase = None if bundle.recipe is None else bundle.recipe.text.lowercase
    if not isinstance(text, WordSettings):
        raise _refuse("text.kind", "words", text.kind, path)
    if lowercase is not None and lowercase != text.lowercase:
        raise _refuse("text.lowercase", lowercase, text.lowercase, path)
    if bundle.space.dim != model.dim:
        raise _refuse("model.dim", bundle.space.dim, model.dim, path)
    kept = [number for number, word in enumerate(bundle.space.words) if word not in SPECIAL_PIECES]
    vectors = bundle.space.vectors[kept]
    vectors = vectors - vectors.mean(0)
    size = float(np.sqrt(np.mean(vectors.astype(np.float64) ** 2))) or 1.0
    words = WordTokenizer(
        Vocabulary([bundle.space.words[number] for number in kept]), lowercase=text.lowercase
    )
    return VectorStart(words, vectors / (size * math.sqrt(model.dim)))


def _refuse(key: str, theirs: Any, ours: Any, path: Path) -> CheckpointError:
    return CheckpointError(
        f"cannot be started from: word vectors with {key}={theirs}, here {key}={ours}; set "
        f"{key}={theirs}, or start from others",
        f"不能由此开始：词向量的 {key}={theirs}，此处 {key}={ours}；请设 {key}={theirs}，"
        "或换用别的词向量",
        file=path,
    )
