"""Prepares the text of a language model: learns its tokenizer, encodes its lines. Also measures the
perplexity of a finished model on a split of that text, and saves the share of each line in the run
directory.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from headwise.data.shards import Ragged
from headwise.data.splits import Part
from headwise.data.text.choices import read_texts
from headwise.errors import DataError
from headwise.language import say
from headwise.tasks.events import Events
from headwise.tasks.item_scores import save_item_scores
from headwise.tasks.language.answers import LineScores
from headwise.tasks.language.language_model import LanguageModel
from headwise.tasks.language.recipe import LanguageRecipe, StreamReading
from headwise.tasks.language.taken_tokenizer import find_tokenizer
from headwise.tasks.result_rows import part_name
from headwise.tasks.vocabulary_progress import watch_vocabulary
from headwise.text.choices import learn_tokenizer
from headwise.text.tokenizer import Tokenizer

BLOCK = 16384


@dataclass(frozen=True)
class TokenizedText:
    """A text as numbers."""

    tokenizer: Tokenizer
    lines: Ragged

    @property
    def num_lines(self) -> int:
        return len(self.lines.lengths)


def tokenize(
    recipe: LanguageRecipe, watcher: Events, given: Tokenizer | None = None
) -> TokenizedText:
    """Two passes over the training text: its vocabulary, its numbers. A vocabulary that is given or
    taken over needs no pass."""
    taken = given or find_tokenizer(recipe)
    watcher.note(say("reading the text …", "正在读取文本……"))
    tokenizer = taken or _learn_vocabulary(recipe, watcher)
    read = say("lines read", "已读行数")
    lines = _counted(read_part(recipe, "train"), lambda done: watcher.count(read, done, None))
    tokens: list[np.ndarray] = []
    lengths: list[np.ndarray] = []
    while block := list(islice(lines, BLOCK)):
        encoded = tokenizer.encode_batch(block)
        sizes = np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded))
        tokens.append(
            np.fromiter(chain.from_iterable(encoded), dtype=np.int32, count=int(sizes.sum()))
        )
        lengths.append(sizes)
    text = TokenizedText(tokenizer, Ragged(np.concatenate(tokens), np.concatenate(lengths)))
    if len(text.lines.tokens) < 2:
        raise DataError(
            f"data.train has {len(text.lines.tokens)} word(s), and nothing can be learnt of what "
            "follows what; give more text",
            f"data.train 只有 {len(text.lines.tokens)} 个词，无从学习词与词的先后；请给出更多文本",
        )
    return text


def _learn_vocabulary(recipe: LanguageRecipe, watcher: Events) -> Tokenizer:
    looked = say("lines looked through", "已浏览行数")
    lines = _counted(read_part(recipe, "train"), lambda done: watcher.count(looked, done, None))
    return learn_tokenizer(
        recipe.text, lines, seed=recipe.training.seed, watch=watch_vocabulary(watcher)
    )


def read_part(recipe: LanguageRecipe, part: Part) -> Iterator[str]:
    """The lines of a part, as this recipe reads them."""
    return read_texts(recipe.data, part, in_words=recipe.text.kind == "words")


def check_measured(recipe: LanguageRecipe) -> None:
    """A mistake in what is read last must not show after the work is done: every line is read once
    before.
    """
    parts: Sequence[Part] = ("valid", "test")
    for part in parts:
        if recipe.data.texts(part) and not sum(1 for _ in read_part(recipe, part)):
            raise DataError(
                f"data.{part} has no line with text; give another file, or set data.{part}=null",
                f"data.{part} 没有含文字的行；请换一个文件，或设 data.{part}=null",
            )


def _counted(lines: Iterator[str], tell: Callable[[int], None]) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        if number % BLOCK == 0:
            tell(number)
        yield line


def measure(
    model: LanguageModel, recipe: LanguageRecipe, watcher: Events, directory: Path | None
) -> dict[str, Any]:
    """Perplexity of the validation and test texts, read as the training text was; the loss of each
    line goes into the run directory.
    """
    parts: Sequence[Part] = ("valid", "test")
    results: dict[str, Any] = {}
    for part in parts:
        if recipe.data.texts(part):
            watcher.note(
                say(f"measuring on the {part_name(part)} …", f"正在评测{part_name(part)}……")
            )
            continuous = isinstance(recipe.reading, StreamReading)
            lines = LineScores()
            results[part] = model.score_text(
                read_part(recipe, part), continuous=continuous, line_scores=lines
            ).as_dict()
            if directory is not None and lines.sums:
                columns = {
                    "loss": -np.concatenate(lines.sums),
                    "tokens": np.concatenate(lines.counts),
                }
                save_item_scores(directory, part, columns)
    return results
