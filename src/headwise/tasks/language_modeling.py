"""A language model from recipe to bundle: read the text, learn the tokenizer, count or train, measure, publish.

    runs/mine/  recipe.yaml   log.jsonl   model/

n-grams are learnt by counting: one pass over the text for the vocabulary, one to turn it into numbers, then one sort for
every order. Perplexity is measured on `data.valid` and `data.test`, one end of sentence a line.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from headwise.data.splitting import Part
from headwise.data.texts import TextDataSettings, read_texts
from headwise.errors import DataError
from headwise.language import say
from headwise.models.ngram import NgramModel, TokenStream, count_ngrams, estimate
from headwise.tasks.arguments import require_path
from headwise.tasks.events import Events, Silence
from headwise.tasks.language_bundle import save_language_bundle
from headwise.tasks.language_model import LanguageModel
from headwise.tasks.language_recipe import LanguageRecipe
from headwise.tasks.run_beginning import RunSummary, begin_run
from headwise.text.choices import learn_tokenizer
from headwise.text.tokenizer import Tokenizer

BLOCK = 16384


@dataclass(frozen=True)
class TokenizedText:
    """A text as numbers."""

    tokenizer: Tokenizer
    stream: TokenStream
    num_lines: int


def train_language_model(
    recipe: LanguageRecipe, *, run: Path | str, resume: bool = False, events: Events | None = None
) -> RunSummary:
    """Learn by a recipe in a run directory; the bundle ends up in `run/model`."""
    watcher = events or Silence()
    directory = require_path(run, "run", "runs/mine")
    opened, (model, tokenizer, results) = begin_run(directory, recipe, lambda: _count(recipe, watcher), resume=resume)
    with opened:
        results |= measure(LanguageModel(tokenizer, model), recipe.data, watcher)
        opened.journal.write(
            {"kind": "count", "step": 0, **{k: v for k, v in results.items() if not isinstance(v, dict)}}
        )
        weights = {name: torch.from_numpy(array) for name, array in model.tables.as_arrays().items()}
        save_language_bundle(opened.model, recipe=recipe, tokenizer=tokenizer, weights=weights, results=results)
    return RunSummary(directory, recipe, results)


def check_language_run(recipe: LanguageRecipe, *, events: Events | None = None) -> RunSummary:
    """Read the text of a recipe and learn its tokenizer, but count nothing."""
    text = tokenize(recipe, events or Silence())
    return RunSummary(None, recipe, {"lines": text.num_lines, "vocabulary": text.tokenizer.size})


def tokenize(recipe: LanguageRecipe, watcher: Events) -> TokenizedText:
    """Two passes over the training text: its vocabulary, its numbers."""
    for part in ("valid", "test"):
        _check_part(recipe.data, part)
    watcher.note(say("reading the text …", "正在读取文本……"))
    looked = say("lines looked through", "已浏览行数")
    lines = _counted(read_texts(recipe.data, "train"), lambda done: watcher.count(looked, done, None))
    tokenizer = learn_tokenizer(recipe.text, lines, seed=recipe.training.seed)
    read = say("lines read", "已读行数")
    lines = _counted(read_texts(recipe.data, "train"), lambda done: watcher.count(read, done, None))
    tokens: list[np.ndarray] = []
    lengths: list[np.ndarray] = []
    while block := list(islice(lines, BLOCK)):
        encoded = tokenizer.encode_batch(block)
        sizes = np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded))
        tokens.append(np.fromiter(chain.from_iterable(encoded), dtype=np.int32, count=int(sizes.sum())))
        lengths.append(sizes)
    sizes = np.concatenate(lengths)
    return TokenizedText(tokenizer, TokenStream.of(np.concatenate(tokens), sizes), len(sizes))


def _check_part(data: TextDataSettings, part: Part) -> None:
    """A mistake in what is read last must not show after the work is done."""
    if data.texts(part) and not any(True for _ in read_texts(data, part)):
        raise DataError(
            f"data.{part} has no line with text; give another file, or set data.{part}=null",
            f"data.{part} 没有含文字的行；请换一个文件，或设 data.{part}=null",
        )


def _counted(lines: Iterator[str], tell: Callable[[int], None]) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        if number % BLOCK == 0:
            tell(number)
        yield line


def _count(recipe: LanguageRecipe, watcher: Events) -> tuple[NgramModel, Tokenizer, dict[str, Any]]:
    started = time.monotonic()
    text = tokenize(recipe, watcher)
    settings = recipe.model
    label = say("orders counted", "已计数的阶")
    tables = count_ngrams(
        text.stream,
        order=settings.order,
        vocabulary=text.tokenizer.size,
        progress=lambda done: watcher.count(label, done, settings.order),
    )
    model = NgramModel(estimate(tables, settings.smoothing))
    results = {
        "lines": text.num_lines,
        "tokens": int((text.stream.places > 0).sum()),
        "vocabulary": text.tokenizer.size,
        "ngrams": [len(table.keys) for table in tables],
        "parameters": model.num_parameters,
        "training_seconds": round(time.monotonic() - started, 1),
    }
    return model, text.tokenizer, results


def measure(model: LanguageModel, data: TextDataSettings, watcher: Events) -> dict[str, Any]:
    """Perplexity of the validation and test texts."""
    parts: Sequence[Part] = ("valid", "test")
    results: dict[str, Any] = {}
    for part in parts:
        if data.texts(part):
            watcher.note(say(f"measuring the {part} text …", f"正在度量 {part} 文本……"))
            results[part] = model.score_text(read_texts(data, part)).as_dict()
    return results
