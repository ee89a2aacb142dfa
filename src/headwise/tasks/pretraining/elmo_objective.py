"""Computes the loss of ELMo's pre-training: one language model reads each line forwards, another
backwards.

    loss = - Σ log P(next word | words so far) - Σ log P(word before | words that follow)
           over <s> … </s>

Words are numbered by falling frequency. As outputs, only words whose number is below the
vocabulary size are predicted; all others count as the unknown word. As inputs, all words are read
by their characters (Peters et al. 2018). Tested: resuming is bit-exact; it learns to count in both
directions; a tagger and a classifier can start from it.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from headwise.data.shards import Ragged, as_ragged
from headwise.data.shared_batches import check_accumulation
from headwise.data.splits import Part
from headwise.data.text.choices import read_texts
from headwise.data.text.text_batches import (
    TextBatch,
    cut_lines,
    pad_lines,
)
from headwise.errors import DataError
from headwise.language import say
from headwise.models.elmo import BidirectionalLanguageModel, build_bidirectional
from headwise.tasks.events import Events
from headwise.tasks.planned_step import PlannedStep, Vocabularies
from headwise.tasks.pretraining.elmo_recipe import ElmoRecipe
from headwise.tasks.pretraining.encoder_start import Start, find_start
from headwise.tasks.pretraining.vector_start import VectorStart
from headwise.tasks.recurrent_training import train_word_by_word
from headwise.tasks.shape_only_modules import SENTENCE
from headwise.text.tokenizer import BOS, EOS, PAD, SPECIAL_PIECES, UNKNOWN
from headwise.text.vocabulary import Vocabulary
from headwise.text.word_characters import BEGIN_WORD, END_WORD, NUM_LETTERS, letters_of
from headwise.text.word_tokenizer import WordTokenizer, learn_words
from headwise.training.losses import LossSums, cross_entropy
from headwise.training.prefetching import map_tensors
from headwise.training.session import Evaluate

DIFFERENT = 0.5
"""The share of different words in a batch that a plan assumes."""


@dataclass(frozen=True)
class ElmoLoss:
    """A model and its loss; `letters` spells every number of the text."""

    module: BidirectionalLanguageModel
    letters: Tensor
    label_smoothing: float

    def loss(self, batch: TextBatch) -> LossSums:
        onward, backward = self.directions(batch)
        return LossSums(*(one + other for one, other in zip(onward[:3], backward[:3], strict=True)))

    def directions(self, batch: TextBatch) -> tuple[LossSums, LossSums]:
        """The sums of the forward and of the backward language model."""
        (ahead, wanted), (back, before) = self._read(batch)
        return self._sums(ahead, wanted), self._sums(back, before)

    def predictions(self, batch: TextBatch) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Of each direction the states, the words to predict from them and their lines."""
        for hidden, targets in self._read(batch):
            wanted = targets != PAD
            yield hidden[wanted], targets[wanted], wanted.nonzero()[:, 0]

    def _read(self, batch: TextBatch) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        """States and targets, forwards and backwards."""
        whole, lengths = close_lines(batch)
        numbers, words = torch.unique(whole, return_inverse=True)
        letters = self.letters[numbers.cpu()].to(whole.device)
        asked = torch.where(whole < self.module.output.out_features, whole, UNKNOWN)
        ahead, back = self.module(letters, words, lengths)
        return (ahead[:, :-1], asked[:, 1:]), (back[:, 1:], _before(asked, lengths))

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


@dataclass(frozen=True)
class FullLines:
    """Lines of one length, for planning: how many different words a batch has is assumed, because
    tokens without content cannot be asked.
    """

    letters: Tensor
    """Of each different word."""
    words: Tensor
    """Lines from <s> to </s>, as rows of `letters`."""

    @property
    def lengths(self) -> Tensor:
        return self.words.new_full((len(self.words),), self.words.shape[1])


@dataclass(frozen=True)
class FullLinesLoss:
    """`ElmoLoss` on such lines."""

    module: BidirectionalLanguageModel
    label_smoothing: float
    chunk_size: int

    def loss(self, batch: FullLines) -> LossSums:
        ahead, back = self.module(batch.letters, batch.words, batch.lengths)
        targets, output = batch.words[:, 1:].flatten(), self.module.output
        onward, backward = (
            cross_entropy(
                hidden.flatten(0, 1),
                output.weight,
                targets=targets,
                bias=output.bias,
                smoothing=self.label_smoothing,
                chunk_size=self.chunk_size,
            )
            for hidden in (ahead[:, :-1], back[:, 1:])
        )
        return LossSums(*(one + other for one, other in zip(onward[:3], backward[:3], strict=True)))


def plan_step(recipe: ElmoRecipe, sizes: Vocabularies) -> PlannedStep:
    """The training step of a recipe as shapes: one line a row."""
    row = min(SENTENCE, recipe.data.row_tokens)

    def build(rows: int) -> BidirectionalLanguageModel:
        return build_bidirectional(recipe.model, vocabulary_size=sizes.target, generator=None)

    def trainable(module: nn.Module, chunk_size: int) -> FullLinesLoss:
        assert isinstance(module, BidirectionalLanguageModel)
        return FullLinesLoss(module, recipe.training.objective.label_smoothing, chunk_size)

    def batch(rows: int, length: int) -> FullLines:
        num_words = max(1, round(DIFFERENT * rows * length))
        letters = torch.ones(num_words, NUM_LETTERS, dtype=torch.int64)
        return FullLines(letters, torch.ones(rows, length + 1, dtype=torch.int64))

    training = train_word_by_word(recipe.training)
    return PlannedStep(
        training,
        build,
        trainable,
        batch,
        row=row,
        num_logits=sizes.target,
        refuse_share=lambda share, rows, row: check_accumulation(share, carried=False),
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
class ElmoData:
    tokenizer: WordTokenizer
    train: Ragged
    valid: list[list[int]]
    letters: Tensor
    start: Start | VectorStart | None


def prepare_elmo(recipe: ElmoRecipe, watcher: Events) -> ElmoData:
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
    every = number_words(recipe, known, ("train", "valid") if recipe.data.valid else ("train",))
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
    return ElmoData(known, cut_lines(train, longest), valid, spell_words(every), start)


def spell_words(every: WordTokenizer) -> Tensor:
    """The letters of each number."""
    special = [(0,) * NUM_LETTERS, BEGIN_WORD, END_WORD, letters_of(SPECIAL_PIECES[UNKNOWN])]
    return torch.tensor([*special, *map(letters_of, every.vocabulary.entries)])


def number_words(recipe: ElmoRecipe, known: WordTokenizer, parts: Sequence[Part]) -> WordTokenizer:
    """Every word of some parts of the text, those that may be asked for first."""
    found: set[str] = set()
    for part in parts:
        for line in read_texts(recipe.data, part, in_words=True):
            found.update(line.lower().split() if known.lowercase else line.split())
    others = sorted(found - set(known.vocabulary.entries) - set(SPECIAL_PIECES))
    return WordTokenizer(
        Vocabulary([*known.vocabulary.entries, *others]), lowercase=known.lowercase
    )


def validation(
    recipe: ElmoRecipe, prepared: ElmoData, module: BidirectionalLanguageModel
) -> Evaluate | None:
    """Perplexity of each direction, ends of lines counted; the loss is the mean over both."""
    if not prepared.valid:
        return None
    task = ElmoLoss(module, prepared.letters, 0.0)
    size = max(1, recipe.training.batch_tokens // recipe.data.row_tokens)
    order = sorted(range(len(prepared.valid)), key=lambda number: len(prepared.valid[number]))

    @torch.inference_mode()
    def evaluate(step: int) -> Mapping[str, float]:
        device = module.output.weight.device
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
