"""Trains word vectors on running text.

    task: word_vectors
    data: {train: corpus/english.txt}      # one sentence or paragraph a line; .gz, .xz, known:…
    model: {kind: skip_gram, dim: 100}

The text is cut into pieces of some thousand words. Each piece is subsampled, cut into windows and
learnt from with random numbers that depend on (seed, epoch, piece) alone. With one thread a run
repeats to the last bit; with several, the order of updates depends on the machine. The bundle is in
runs/words/model (bundle.py).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from headwise.data.text.choices import TextFile, read_each
from headwise.data.text.context_bags import BagCutter
from headwise.data.text.context_windows import NegativeSampler, WindowCutter, keep_probabilities
from headwise.data.text.word_stream import WordStream, in_characters, in_words, read_words
from headwise.errors import DataError, SettingsError
from headwise.models.huffman import build_huffman
from headwise.models.word_vectors import (
    BlockTargets,
    WordTables,
    learn_cbow,
    learn_skip_gram,
    path_targets,
    sample_targets,
    start_tables,
)
from headwise.randomness import numpy_generator
from headwise.tasks.word_vectors.recipe import NegativeSampling, WordVectorRecipe
from headwise.training.hogwild import learn_pieces

PIECE_WORDS = (8_000, 16_000)
"""Words of text that share a learning rate and are cut at once, in a short text and in a long one:
a piece has a cost of its own (a tenth of 8,000 words of CBOW), but a rate that falls in a few steps
is no straight line, and what is cut should stay in a cache."""
NUM_PIECES = 64
"""A text that has as many of the longer pieces is a long one."""
BATCH_WORDS = 512
"""Centres at most whose changes are computed from the same state of the tables."""
BATCH_RATE = 3.0
"""Rate × pairs of the most frequent word in a batch, negative samples included: its changes add
up, and too many overshoot."""
MANY_WORDS = 0.2
"""Questions about the most frequent word, of one centre, below which a text counts as one of many
words: there CBOW stands twice the batch."""


Learn = Callable[[np.ndarray, np.ndarray, np.random.Generator, float], None]
"""Learns words of text, given with the sentences they stand in, at a rate."""


@dataclass(frozen=True)
class WordProgress:
    """Where training stands."""

    words: int
    """Words of text read so far, in all epochs."""
    total: int
    seconds: float

    @property
    def rate(self) -> float:
        """Words a second."""
        return self.words / max(self.seconds, 1e-9)


def learn_word_vectors(
    stream: WordStream,
    recipe: WordVectorRecipe,
    *,
    watch: Callable[[WordProgress], None] = lambda progress: None,
) -> WordTables:
    """Train on a text that is in memory."""
    training = recipe.training
    tables, learn = _prepare(stream, recipe)
    size = piece_words(len(stream))
    pieces = -(-len(stream) // size)
    keep = keep_probabilities(stream.counts, training.subsample)
    total, started = len(stream) * training.epochs, time.perf_counter()
    highest = first_rate(recipe)

    def learn_piece(number: int, progress: float) -> int:
        epoch, piece = divmod(number, pieces)
        generator = numpy_generator(training.seed, "words", epoch, piece)
        start, stop = piece * size, min((piece + 1) * size, len(stream))
        ids = stream.ids[start:stop]
        kept = generator.random(len(ids)) < keep[ids]
        if kept.any():
            rate = highest * max(1 - progress, 1e-4)
            learn(ids[kept], stream.sentences(start, stop)[kept], generator, rate)
        return len(ids)

    learn_pieces(
        learn_piece,
        pieces * training.epochs,
        total=total,
        threads=training.threads,
        watch=lambda words: watch(WordProgress(words, total, time.perf_counter() - started)),
    )
    if not tables.inputs.sum(
        dtype=torch.float64
    ).isfinite():  # a sum of float32 cannot leave float64
        raise SettingsError(
            f"the vectors grew beyond all numbers at training.rate={highest}; use a smaller rate, "
            "e.g. 0.025",
            f"training.rate={highest} 时向量发散到无穷；请用更小的学习率，例如 0.025",
        )
    return tables


def piece_words(num_words: int) -> int:
    """Words a piece has, in a text of so many."""
    shortest, longest = PIECE_WORDS
    return max(shortest, min(longest, num_words // NUM_PIECES))


def first_rate(recipe: WordVectorRecipe) -> float:
    """The learning rate at the start."""
    if recipe.training.rate is not None:
        return recipe.training.rate
    return 0.025 if recipe.model.kind == "skip_gram" else 0.05


def num_negative_samples(recipe: WordVectorRecipe, output: NegativeSampling) -> int:
    """Negative samples drawn for a block.

    CBOW computes one loss a centre, not one a pair: samples take a larger share of its time, and
    fewer are enough.
    """
    if output.pool is not None:
        return output.pool
    return 24 if recipe.model.kind == "skip_gram" else 20


def batch_words(recipe: WordVectorRecipe, answers: float) -> int:
    """Centres of a batch, for an output that answers this many questions for each pair on
    average."""
    if recipe.model.kind == "skip_gram":
        pairs = recipe.model.window + 1.0
    else:  # a mean moves less than its words
        pairs = 1.5 if answers < MANY_WORDS else 3.0
    return max(1, int(min(BATCH_WORDS, BATCH_RATE / first_rate(recipe) / (pairs * answers))))


def _prepare(stream: WordStream, recipe: WordVectorRecipe) -> tuple[WordTables, Learn]:
    """The tables at their start, and what learns one piece of text into them."""
    model, output = recipe.model, recipe.model.output
    generator = numpy_generator(recipe.training.seed, "word vectors")
    num_words = len(stream.words)
    if isinstance(output, NegativeSampling):
        sampler = NegativeSampler(stream.counts, output.power)
        tables = start_tables(num_words, num_words, model.dim, generator=generator)
        left = keep_probabilities(stream.counts, recipe.training.subsample) * stream.counts
        answers = (1 + output.negatives) * left.max() / left.sum()
        share, batch, pool = (
            output.share,
            batch_words(recipe, answers),
            num_negative_samples(recipe, output),
        )

        def ask(centres: Tensor, generator: np.random.Generator) -> BlockTargets:
            samples = sampler.draw((len(centres), pool), generator)
            return sample_targets(centres, samples, negatives=output.negatives)
    else:
        paths = build_huffman(stream.counts)
        tables = start_tables(num_words, paths.num_nodes, model.dim, generator=generator)
        share, batch = 1, batch_words(recipe, answers=1.0)  # the root of the tree is on every path

        def ask(centres: Tensor, generator: np.random.Generator) -> BlockTargets:
            return path_targets(centres, paths)

    if model.kind == "skip_gram":
        windows_of = WindowCutter(window=model.window, share=share)

        def learn(
            ids: np.ndarray, sentences: np.ndarray, generator: np.random.Generator, rate: float
        ) -> None:
            windows = windows_of.cut(ids, sentences, generator=generator)
            questions = ask(windows.centres, generator)
            learn_skip_gram(tables, windows, questions, rate=rate, blocks=max(1, batch // share))
    else:
        bags_of = BagCutter(window=model.window, share=share, batch=batch)

        def learn(
            ids: np.ndarray, sentences: np.ndarray, generator: np.random.Generator, rate: float
        ) -> None:
            bags = bags_of.cut(ids, sentences, generator=generator)
            learn_cbow(tables, bags, ask(bags.centres.view(-1, share), generator), rate=rate)

    return tables, learn


def read_text(recipe: WordVectorRecipe) -> WordStream:
    """The words of the recipe's texts."""
    by_words = recipe.text.unit == "words"
    cut = in_words if by_words else in_characters
    lines = read_each(recipe.data.train, recipe.data.language, in_words=by_words)
    try:
        return read_words(
            cut(lines, lowercase=recipe.text.lowercase),
            min_count=recipe.text.min_count,
            max_words=recipe.text.max_words,
        )
    except DataError as error:
        first = recipe.data.train[0]
        if error.file is None and isinstance(first, TextFile):
            raise DataError(error.en, error.zh, file=first.path) from error
        raise
