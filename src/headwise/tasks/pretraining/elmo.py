"""ELMo's pre-training from recipe to bundle: one language model reads each line onwards, one backwards, and both are asked for words.

    loss = - Σ log P(next word | words so far) - Σ log P(word before | words that follow)          over <s> … </s>

runs/mine/  recipe.yaml   log.jsonl   checkpoints/   model/

Every different word of the text has a number, the most frequent ones the lowest: below the size of the vocabulary it is what the softmax is
asked for, above it is the unknown word there; its letters are read in any case. Tested by resuming bit for bit, by learning to count
in both directions, and by starting a tagger and a classifier from it.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from headwise.data.shards import Ragged, as_ragged
from headwise.data.splits import Part
from headwise.data.text.choices import read_texts
from headwise.data.text.text_batches import (
    PaddedLines,
    TextBatch,
    cut_lines,
    fingerprint,
    pad_lines,
)
from headwise.errors import DataError
from headwise.language import say
from headwise.models.elmo import BidirectionalLanguageModel, build_bidirectional
from headwise.randomness import torch_generator
from headwise.tasks.arguments import require_path
from headwise.tasks.events import Events, Silence
from headwise.tasks.labels.bundle import save_encoder_bundle
from headwise.tasks.labels.training import count_parameters, training_results
from headwise.tasks.pretraining.elmo_recipe import BidirectionalRecipe
from headwise.tasks.pretraining.encoder_start import find_start
from headwise.tasks.recurrent_training import train_word_by_word
from headwise.tasks.run_start import RunSummary, begin_run
from headwise.tasks.training_cost import first_batch, measure_cost
from headwise.text.tokenizer import BOS, EOS, NUM_SPECIAL, PAD, SPECIAL_PIECES, UNKNOWN
from headwise.text.vocabulary import Vocabulary
from headwise.text.word_characters import BEGIN_WORD, END_WORD, NUM_LETTERS, letters_of
from headwise.text.word_tokenizer import WordTokenizer, learn_words
from headwise.training.loop import train as run_training
from headwise.training.losses import LossSums, cross_entropy
from headwise.training.precision import choose_device
from headwise.training.prefetching import map_tensors


@dataclass(frozen=True)
class BidirectionalTask:
    """A model and its objective, as the training loop wants them; `letters` spells every number of the text."""

    module: BidirectionalLanguageModel
    letters: Tensor
    label_smoothing: float

    def loss(self, batch: TextBatch) -> LossSums:
        onward, backward = self.directions(batch)
        return LossSums(*(one + other for one, other in zip(onward[:3], backward[:3], strict=True)))

    def directions(self, batch: TextBatch) -> tuple[LossSums, LossSums]:
        """The sums of the forward and of the backward language model."""
        whole, lengths = close_lines(batch)
        numbers, words = torch.unique(whole, return_inverse=True)
        letters = self.letters[numbers.cpu()].to(whole.device)
        asked = torch.where(whole < self.module.output.out_features, whole, UNKNOWN)
        ahead, back = self.module(letters, words, lengths)
        return self._sums(ahead[:, :-1], asked[:, 1:]), self._sums(
            back[:, 1:], _before(asked, lengths)
        )

    def _sums(self, hidden: Tensor, targets: Tensor) -> LossSums:
        wanted = targets != PAD
        output = self.module.output
        return cross_entropy(
            hidden[wanted],
            output.weight,
            targets=targets[wanted],
            bias=output.bias,
            smoothing=self.label_smoothing,
        )


def close_lines(batch: TextBatch) -> tuple[Tensor, Tensor]:
    """Lines from <s> to </s>, and their lengths with both."""
    lengths = (batch.targets != PAD).sum(1) + 1
    whole = torch.nn.functional.pad(batch.tokens, (0, 1), value=PAD)
    place = torch.arange(whole.shape[1], device=whole.device)
    return torch.where(place == lengths[:, None] - 1, EOS, whole), lengths


def _before(whole: Tensor, lengths: Tensor) -> Tensor:
    """At every place but the first the word before it; nothing after the end."""
    place = torch.arange(1, whole.shape[1], device=whole.device)
    return torch.where(place < lengths[:, None], whole[:, :-1], PAD)


@dataclass(frozen=True)
class _Prepared:
    tokenizer: WordTokenizer
    train: Ragged
    valid: list[list[int]]
    letters: Tensor
    model: BidirectionalLanguageModel


def train_bidirectional(
    recipe: BidirectionalRecipe,
    *,
    run: Path | str,
    resume: bool = False,
    events: Events | None = None,
) -> RunSummary:
    """Pre-train by a recipe in a run directory; the bundle ends up in `run/model`."""
    watcher = events or Silence()
    directory = require_path(run, "run", "runs/mine")
    choose_device(recipe.training.device)
    opened, prepared = begin_run(
        directory, recipe, lambda: _prepare(recipe, watcher), resume=resume
    )
    with opened:
        model, training = prepared.model, recipe.training
        watcher.note(_describe(recipe, prepared))
        # Sentences have no fixed shape, and a recurrent layer is one call of torch's: nothing to compile or record.
        name = fingerprint(prepared.train, recipe.data.model_dump_json())
        outcome = run_training(
            BidirectionalTask(model, prepared.letters, training.objective.label_smoothing),
            PaddedLines(prepared.train, training.batch_tokens, training.seed, name),
            train_word_by_word(training),
            opened,
            evaluate=_evaluation(recipe, prepared),
            progress=watcher.training,
        )
        results = training_results(model, outcome)
        if (measure := _evaluation(recipe, prepared)) is not None:
            model.eval()
            results |= {f"valid_{name}": round(value, 6) for name, value in measure(0).items()}
        save_encoder_bundle(
            opened.model,
            recipe=recipe,
            tokenizer=prepared.tokenizer,
            labels=(),
            model=model,
            results=results,
        )
    return RunSummary(directory, recipe, results)


def check_bidirectional_run(
    recipe: BidirectionalRecipe, *, events: Events | None = None
) -> RunSummary:
    """Read the text of a recipe and build its model, but train nothing."""
    watcher = events or Silence()
    prepared = _prepare(recipe, watcher)
    training = recipe.training
    task = BidirectionalTask(prepared.model, prepared.letters, training.objective.label_smoothing)
    # Sentences have no fixed length: a whole batch is taken.
    batch = first_batch(PaddedLines(prepared.train, training.batch_tokens, training.seed, "check"))
    cost = measure_cost(task, lambda _: batch, rows=1, training=training)
    return RunSummary(None, recipe, {**_sizes(prepared), **cost.tell(watcher)})


def _sizes(prepared: _Prepared) -> dict[str, Any]:
    return {
        "lines": len(prepared.train.lengths),
        "tokens": len(prepared.train.tokens),
        "words": len(prepared.letters) - NUM_SPECIAL,
        "vocabulary": prepared.tokenizer.size,
        "parameters": count_parameters(prepared.model),
    }


def _prepare(recipe: BidirectionalRecipe, watcher: Events) -> _Prepared:
    watcher.note(say("reading the text …", "正在读取文本……"))
    start, text = find_start(recipe.model, recipe.text), recipe.text
    if start is None:
        lines = read_texts(recipe.data, "train", in_words=True)
        known = learn_words(
            lines, size=text.size, min_count=text.min_count, lowercase=text.lowercase
        )
    else:
        assert isinstance(start.tokenizer, WordTokenizer), "the recipes are compared"
        known = start.tokenizer
    every = _number_all(recipe, known)
    train = as_ragged(every.encode_batch(list(read_texts(recipe.data, "train", in_words=True))))
    if len(train.tokens) < 2:
        raise DataError(
            "data.train has fewer than two words, there is nothing to predict; give more text",
            "data.train 中的词不足两个，没有可预测的；请给出更多文本",
        )
    longest = recipe.data.row_tokens - 2
    valid = (
        every.encode_batch(list(read_texts(recipe.data, "valid", in_words=True)))
        if recipe.data.valid
        else []
    )
    valid = [
        line[first : first + longest] for line in valid for first in range(0, len(line), longest)
    ]
    model = build_bidirectional(
        recipe.model,
        vocabulary_size=known.size,
        generator=torch_generator(recipe.training.seed, "weights"),
    )
    if start is not None:
        start.put_into(model.encoder)
    special = [(0,) * NUM_LETTERS, BEGIN_WORD, END_WORD, letters_of(SPECIAL_PIECES[UNKNOWN])]
    letters = torch.tensor([*special, *map(letters_of, every.vocabulary.entries)])
    return _Prepared(known, cut_lines(train, longest), valid, letters, model)


def _number_all(recipe: BidirectionalRecipe, known: WordTokenizer) -> WordTokenizer:
    """Every word of the text, those that may be asked for first."""
    parts: tuple[Part, ...] = ("train", "valid") if recipe.data.valid else ("train",)
    found: set[str] = set()
    for part in parts:
        for line in read_texts(recipe.data, part, in_words=True):
            found.update(line.lower().split() if known.lowercase else line.split())
    others = sorted(found - set(known.vocabulary.entries) - set(SPECIAL_PIECES))
    return WordTokenizer(
        Vocabulary([*known.vocabulary.entries, *others]), lowercase=known.lowercase
    )


def _evaluation(
    recipe: BidirectionalRecipe, prepared: _Prepared
) -> Callable[[int], Mapping[str, float]] | None:
    """Perplexity of each direction, ends of lines counted; the loss is the mean over both."""
    if not prepared.valid:
        return None
    task = BidirectionalTask(prepared.model, prepared.letters, 0.0)
    size = max(1, recipe.training.batch_tokens // recipe.data.row_tokens)
    order = sorted(range(len(prepared.valid)), key=lambda number: len(prepared.valid[number]))

    @torch.inference_mode()
    def evaluate(step: int) -> Mapping[str, float]:
        device = prepared.model.output.weight.device
        sums = torch.zeros(2, dtype=torch.float64)
        count = 0
        for first in range(0, len(order), size):
            batch = pad_lines(
                [prepared.valid[number] for number in order[first : first + size]], first=BOS
            )
            found = task.directions(map_tensors(batch, lambda tensor: tensor.to(device)))
            sums += torch.tensor(
                [float(one.negative_log_likelihood) for one in found], dtype=torch.float64
            )
            count += int(found[0].num_tokens)
        onward, backward = (sums / count).tolist()
        loss = (onward + backward) / 2
        found_values = {
            "loss": loss,
            "perplexity": loss,
            "forward_perplexity": onward,
            "backward_perplexity": backward,
        }
        return {
            name: value if name == "loss" else math.exp(min(value, 700.0))
            for name, value in found_values.items()
        }

    return evaluate


def _describe(recipe: BidirectionalRecipe, prepared: _Prepared) -> str:
    sizes = _sizes(prepared)
    return say(
        f"{recipe.data.language}: {sizes['lines']:,} lines, {sizes['tokens']:,} tokens, {sizes['words']:,} different words, "
        f"{sizes['vocabulary']:,} of them asked for; {sizes['parameters']:,} parameters; {recipe.training.steps:,} steps",
        f"{recipe.data.language}：{sizes['lines']:,} 行，{sizes['tokens']:,} 词元，{sizes['words']:,} 种词，"
        f"其中 {sizes['vocabulary']:,} 种供预测；参数 {sizes['parameters']:,}；共 {recipe.training.steps:,} 步",
    )
