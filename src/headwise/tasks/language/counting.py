"""A language model from recipe to bundle: read the text, learn the tokenizer, count or train, measure, publish.

    runs/mine/  recipe.yaml   log.jsonl   model/

n-grams are learnt by counting: one pass over the text for the vocabulary, one to turn it into numbers, then one sort for
every order. Perplexity is measured on `data.valid` and `data.test`, one end of sentence a line.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from headwise.language import say
from headwise.models.ngram import NgramModel, NgramSettings, TokenStream, count_ngrams, estimate
from headwise.tasks.arguments import require_path
from headwise.tasks.events import Events, Silence
from headwise.tasks.language.bundle import save_language_bundle
from headwise.tasks.language.language_model import LanguageModel
from headwise.tasks.language.neural_training import check_neural, train_neural
from headwise.tasks.language.recipe import LanguageRecipe
from headwise.tasks.language.text import TokenizedText, check_measured, measure, tokenize
from headwise.tasks.run_start import RunSummary, begin_run
from headwise.tasks.training_cost import TrainingCost
from headwise.text.tokenizer import Tokenizer

CHECKED_TOKENS = 300_000
"""Of a text, so many are counted for `--check`."""
COUNTING_COPIES = 3
"""Tables while they are counted and sorted, in sizes of what is stored in the end."""


def train_language_model(
    recipe: LanguageRecipe, *, run: Path | str, resume: bool = False, events: Events | None = None
) -> RunSummary:
    """Learn by a recipe in a run directory; the bundle ends up in `run/model`."""
    watcher = events or Silence()
    if not isinstance(recipe.model, NgramSettings):
        return train_neural(recipe, run=run, resume=resume, watcher=watcher)
    directory = require_path(run, "run", "runs/mine")
    opened, (model, tokenizer, results) = begin_run(
        directory, recipe, lambda: _count(recipe, watcher), resume=resume
    )
    with opened:
        results |= measure(LanguageModel(tokenizer, model), recipe, watcher)
        opened.log.write(
            {
                "kind": "count",
                "step": 0,
                **{k: v for k, v in results.items() if not isinstance(v, dict)},
            }
        )
        weights = {
            name: torch.from_numpy(array) for name, array in model.tables.as_arrays().items()
        }
        save_language_bundle(
            opened.model, recipe=recipe, tokenizer=tokenizer, weights=weights, results=results
        )
    return RunSummary(directory, recipe, results)


def check_language_run(recipe: LanguageRecipe, *, events: Events | None = None) -> RunSummary:
    """Read the text of a recipe, learn its tokenizer and say what training would cost, but train nothing."""
    check_measured(recipe)
    watcher = events or Silence()
    text = tokenize(recipe, watcher)
    cost = (
        _check_counting(recipe, text, watcher) if isinstance(recipe.model, NgramSettings) else None
    )
    results = {
        "lines": text.num_lines,
        "tokens": len(text.lines.tokens),
        "vocabulary": text.tokenizer.size,
    }
    return RunSummary(None, recipe, {**results, **(cost or check_neural(recipe, text, watcher))})


def _check_counting(recipe: LanguageRecipe, text: TokenizedText, watcher: Events) -> dict[str, int]:
    """Count a part of the text and draw it out: sorting grows a little faster, different n-grams grow more slowly."""
    settings = recipe.model
    assert isinstance(settings, NgramSettings)
    lines = text.lines.choose(np.cumsum(text.lines.lengths) - text.lines.lengths < CHECKED_TOKENS)
    began = time.perf_counter()
    stream = TokenStream.of(lines.tokens, lines.lengths)
    counts = count_ngrams(stream, order=settings.order, vocabulary=text.tokenizer.size)
    model = NgramModel(estimate(counts, settings.smoothing))
    share = len(text.lines.tokens) / max(1, len(lines.tokens))
    stored = sum(array.nbytes for array in model.tables.as_arrays().values())
    seconds = share * (time.perf_counter() - began)
    return TrainingCost(
        round(share * model.num_parameters), seconds, round(COUNTING_COPIES * share * stored)
    ).tell(watcher)


def _count(recipe: LanguageRecipe, watcher: Events) -> tuple[NgramModel, Tokenizer, dict[str, Any]]:
    check_measured(recipe)
    started = time.perf_counter()
    text = tokenize(recipe, watcher)
    counting = time.perf_counter()
    settings = recipe.model
    assert isinstance(settings, NgramSettings)
    stream = TokenStream.of(text.lines.tokens, text.lines.lengths)
    label = say("orders counted", "已计数的阶")
    tables = count_ngrams(
        stream,
        order=settings.order,
        vocabulary=text.tokenizer.size,
        progress=lambda done: watcher.count(label, done, settings.order),
    )
    model = NgramModel(estimate(tables, settings.smoothing))
    results = {
        "lines": text.num_lines,
        "tokens": int((stream.places > 0).sum()),
        "vocabulary": text.tokenizer.size,
        "ngrams": [len(table.keys) for table in tables],
        "parameters": model.num_parameters,
        "training_seconds": round(time.perf_counter() - started, 4),
        "counting_seconds": round(time.perf_counter() - counting, 4),
    }
    return model, text.tokenizer, results
