"""Counts the n-grams of a tokenized text and reports the time and memory it took.

For every order n, one sort gives the counts; smoothing turns them into probabilities
(models/ngram). Tested against KenLM's numbers, and by probabilities that sum to one.
"""

import time
from typing import Any

import numpy as np
import torch

from headwise.language import say
from headwise.models.ngram import NgramModel, NgramSettings, TokenStream, count_ngrams, estimate
from headwise.tasks.events import Events
from headwise.tasks.language.text import TokenizedText
from headwise.tasks.training_cost import TrainingCost
from headwise.weights import Weights

CHECKED_TOKENS = 300_000
"""Tokens of a text that are counted for `--check`."""
NGRAM_BYTES = 16
"""Of an n-gram in the tables: its key (8), its probability and its weight (4 each)."""
COUNTING_COPIES = 3
"""Memory while tables are counted and sorted, in multiples of what is stored in the end."""


def count_model(
    settings: NgramSettings, text: TokenizedText, watcher: Events
) -> tuple[NgramModel, dict[str, Any]]:
    """The model, and how many n-grams of each order were counted in how much time."""
    began = time.perf_counter()
    stream = TokenStream.of(text.lines.tokens, text.lines.lengths)
    label = say("orders counted", "已计数的阶")
    tables = count_ngrams(
        stream,
        order=settings.order,
        vocabulary=text.tokenizer.size,
        progress=lambda done: watcher.count(label, done, settings.order),
    )
    model = NgramModel(estimate(tables, settings.smoothing))
    seconds = round(time.perf_counter() - began, 4)
    return model, {
        "tokens": int((stream.places > 0).sum()),
        "ngrams": [len(table.keys) for table in tables],
        "parameters": model.num_parameters,
        "training_seconds": seconds,
        "counting_seconds": seconds,
    }


def predict_cost(settings: NgramSettings, text: TokenizedText) -> TrainingCost:
    """Count a part of the text and extrapolate: sorting grows a little faster than linearly,
    the number of distinct n-grams more slowly."""
    lines = text.lines.choose(np.cumsum(text.lines.lengths) - text.lines.lengths < CHECKED_TOKENS)
    began = time.perf_counter()
    stream = TokenStream.of(lines.tokens, lines.lengths)
    counts = count_ngrams(stream, order=settings.order, vocabulary=text.tokenizer.size)
    model = NgramModel(estimate(counts, settings.smoothing))
    share = len(text.lines.tokens) / max(1, len(lines.tokens))
    stored = sum(array.nbytes for array in model.tables.as_arrays().values())
    seconds = share * (time.perf_counter() - began)
    memory = round(COUNTING_COPIES * share * stored)
    return TrainingCost(
        round(share * model.num_parameters), seconds, memory, stored=round(share * stored)
    )


def bound_memory(settings: NgramSettings, text: TokenizedText) -> int:
    """Bytes of the tables if no n-gram of any order occurred twice: a key, a probability and a
    weight each.
    """
    num_ngrams = settings.order * (len(text.lines.tokens) + text.num_lines)
    return COUNTING_COPIES * NGRAM_BYTES * (num_ngrams + text.tokenizer.size)


def tables_of(model: NgramModel) -> Weights:
    """The tensors of a bundle."""
    return {name: torch.from_numpy(array) for name, array in model.tables.as_arrays().items()}
