"""Asks a trained network (neural n-gram, recurrent model, Transformer) for the probabilities of
tokens, in the form that all language models share (`TokenModel`).

A `TokenModel` answers two questions in token ids: how probable is this text, and which token comes
next? A sentence is read from <s>; a model trained on a stream reads it from </s>, the token that
preceded every line in training.

A Transformer reads at most as many tokens as in training. A longer text is read in windows that
begin at multiples of half a window. A token is predicted in the first window that contains it, so
it has at least half a window of context, and the same context whether a text is scored or
generated. A recurrent model, and a Transformer with a memory of segments, carry their state through
any length: then nothing is read twice, and a token sees the same context wherever windows begin.
<pad> and <s> are never predicted. With a memory of neighbours (neighbours/) each prediction is
mixed with those of stored neighbours.

Tested: probabilities sum to 1; texts in a batch = one by one; windows with a carried state = the
whole text; the score of a text is the product of its predictions, for texts of any length.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headwise.data.text.text_batches import pad_lines
from headwise.models.choices import LanguageNetwork
from headwise.models.decoder_only import DecoderOnly
from headwise.models.recurrent.language_model import RecurrentLanguageModel
from headwise.models.segment_memory import Past
from headwise.models.state_keys import KeyTap
from headwise.models.text_stepper import ContinuingStepper, next_token_logits
from headwise.neighbours.memory import RememberingStepper, TokenMemory
from headwise.text.tokenizer import EOS

BATCH_TOKENS = 8192
CHUNK_LOGITS = 1 << 22
WINDOW = 256

Scores = NDArray[np.float32]


@dataclass(frozen=True)
class ReadPart:
    """A batch that the network has read: states, the tokens that follow, and which count."""

    hidden: Tensor
    targets: Tensor
    places: NDArray[np.int64]
    """[row, time]: the number that each prediction has in the whole text; -1: it does not count."""
    keys: Tensor | None = None
    """The states by which a memory is asked, if there is a tap (models/state_keys.py)."""


class NeuralTokenModel:
    """`first` is what a sentence begins with; `context` is how many tokens a Transformer reads at
    once: as many as it sees from the last of them, if it has a memory. `carries`: texts of any
    length are read on with a state.
    """

    def __init__(self, network: LanguageNetwork, *, first: int, context: int | None) -> None:
        self.network, self.first = network, first
        is_recurrent = isinstance(network, RecurrentLanguageModel)
        self.reach = network.reach if isinstance(network, DecoderOnly) else None
        self.carries = is_recurrent or self.reach is not None
        if self.reach is not None:
            context = self.reach + 1
        self.context = None if is_recurrent else context
        self._tap: KeyTap | None = None
        self._memory: TokenMemory | None = None

    @property
    def num_parameters(self) -> int:
        return sum(parameter.numel() for parameter in self.network.parameters())

    @property
    def device(self) -> torch.device:
        return self.network.output.weight.device

    @property
    def tap(self) -> KeyTap:
        """Reads the states by which a memory is asked."""
        if self._tap is None:
            self._tap = KeyTap(self.network)
        return self._tap

    def remember(self, memory: TokenMemory) -> None:
        """Mix every prediction from now on with those of a memory."""
        self._memory = memory
        self.tap  # noqa: B018 - it watches from now on

    def make_stepper(self) -> ContinuingStepper | RememberingStepper:
        """The network as a search of one text asks it, with its neighbours if it has any."""
        stepper = ContinuingStepper(self.network)
        if self._memory is None:
            return stepper
        return RememberingStepper(stepper, self._memory, self.tap.of_step)

    def score(self, sentences: Sequence[Sequence[int]]) -> list[Scores]:
        """Of each sentence the log-probability of each token, and of its end."""
        ends = np.cumsum([0, *(len(one) + 1 for one in sentences)])
        found = self._score_parts(self.read_sentences(sentences), int(ends[-1]))
        return [found[begin:end] for begin, end in pairwise(ends.tolist())]

    def score_running(self, text: NDArray[np.int64], *, rows: int = 1) -> Scores:
        """Every token of one text but the first, from all that stands before it.

        `rows` > 1: as so many texts read side by side, faster and with so many places where nothing
        is remembered.
        """
        return self._score_parts(self.read_running(text, rows=rows), len(text) - 1)

    @torch.no_grad()
    def read_sentences(self, sentences: Sequence[Sequence[int]]) -> Iterator[ReadPart]:
        """The states that predict each token of each sentence, and its end."""
        begins = np.cumsum([0, *(len(one) + 1 for one in sentences)])
        short = [
            i for i, one in enumerate(sentences) if self.context is None or len(one) < self.context
        ]
        for group in _batches(short, sentences):
            batch = pad_lines([sentences[i] for i in group], first=self.first)
            places = np.full(tuple(batch.tokens.shape), -1)
            for row, i in enumerate(group):
                count = len(sentences[i]) + 1
                places[row, :count] = begins[i] + np.arange(count)
            yield self._read_part(batch.tokens, batch.targets, places)
        for i in sorted(set(range(len(sentences))) - set(short)):
            text = np.array([self.first, *sentences[i], EOS])
            yield from self._read_text(text, first=int(begins[i]), rows=1)

    @torch.no_grad()
    def read_running(self, text: NDArray[np.int64], *, rows: int = 1) -> Iterator[ReadPart]:
        """The states that predict each token of one text but the first."""
        yield from self._read_text(text, first=0, rows=rows)

    def _read_text(self, text: NDArray[np.int64], *, first: int, rows: int) -> Iterator[ReadPart]:
        """One text; `first` is the number of its first prediction."""
        if not self.carries:
            yield from self._read_windows(text, first)
            return
        total = len(text) - 1
        length = -(-total // rows)
        padded = np.pad(text, (0, rows * length + 1 - len(text)))
        tokens, targets = (
            torch.from_numpy(padded[ahead : ahead + rows * length]).view(rows, length)
            for ahead in (0, 1)
        )
        places = np.arange(rows * length).reshape(rows, length)
        places = np.where(places < total, places + first, -1)
        begin = 0
        for hidden, keys in self._read_on(tokens):
            window = slice(begin, begin + hidden.shape[1])
            yield ReadPart(hidden, targets[:, window], places[:, window], keys)
            begin = window.stop

    @torch.no_grad()
    def next_words(self, prefixes: Sequence[Sequence[int]]) -> Scores:
        """Log-probabilities of every token after each beginning of a sentence, [prefix,
        vocabulary].
        """
        cut = [self._last([self.first, *prefix]) for prefix in prefixes]
        rows = np.zeros((len(prefixes), self.network.output.out_features), dtype=np.float32)
        for length in sorted({len(prefix) for prefix in cut}):
            same = [i for i, prefix in enumerate(cut) if len(prefix) == length]
            hidden, keys = self._read(torch.tensor([cut[i] for i in same]))
            scores = next_token_logits(self.network, hidden[:, -1]).log_softmax(-1)
            if self._memory is not None and keys is not None:
                scores = self._memory.mix(scores, keys[:, -1])
            rows[same] = scores.cpu().numpy()
        return rows

    def window_begin(self, num_read: int) -> int:
        """Where the window begins in which the token after so many (the first included) is
        predicted.
        """
        if self.carries or self.context is None or num_read <= self.context:
            return 0
        stride = max(1, self.context // 2)
        return -(-(num_read - self.context) // stride) * stride

    def _last(self, tokens: list[int]) -> list[int]:
        return tokens[self.window_begin(len(tokens)) :]

    def _read(self, tokens: Tensor) -> tuple[Tensor, Tensor | None]:
        """Hidden states of rows that begin with nothing read, and their keys."""
        if self.carries:
            hidden, keys = zip(*self._read_on(tokens), strict=True)
            return torch.cat(hidden, dim=1), None if keys[0] is None else torch.cat(keys, dim=1)
        whole: Tensor = self.network(tokens.to(self.device))
        return whole, self._keys_of(whole)

    def _read_on(self, tokens: Tensor) -> Iterator[tuple[Tensor, Tensor | None]]:
        """The same of rows of any length, window by window; the state is carried."""
        network, length = self.network, max(WINDOW, self.reach or 0)
        windows = tokens.to(self.device).split(length, dim=1)
        if isinstance(network, RecurrentLanguageModel):
            states = None
            for window in windows:
                hidden, states = network(window, states)
                yield hidden, self._keys_of(hidden)
        else:
            assert isinstance(network, DecoderOnly)
            assert self.reach is not None, "other Transformers read windows by themselves"
            like = network.embedding.table.weight
            past = Past.nothing(len(network.blocks), len(tokens), like=like)
            for window in windows:
                hidden, read = network.read_on(window, past)
                past = past.after(read, keep=self.reach)
                yield hidden, self._keys_of(hidden)

    def _read_part(self, tokens: Tensor, targets: Tensor, places: NDArray[np.int64]) -> ReadPart:
        hidden, keys = self._read(tokens)
        return ReadPart(hidden, targets, places, keys)

    def _keys_of(self, hidden: Tensor) -> Tensor | None:
        return None if self._tap is None else self._tap.keys_of(hidden)

    def _read_windows(self, text: NDArray[np.int64], first: int) -> Iterator[ReadPart]:
        """One text in windows; `first` is the number of its first prediction."""
        total = len(text) - 1
        width = self.context or total
        stride = max(1, width // 2)
        begins = range(0, self.window_begin(total) + 1, stride)
        size = max(1, BATCH_TOKENS // width)
        # The last window alone may be shorter: it begins where it would if more followed.
        groups = [begins[:-1][first : first + size] for first in range(0, len(begins) - 1, size)]
        for group in [*groups, begins[-1:]]:
            read = np.array(group)[:, None] + np.arange(min(width, total - group[-1]))
            places = read + first
            for row, begin in enumerate(group):
                # What the window before has reached is predicted there.
                places[row, : 0 if begin == 0 else width - stride] = -1
            yield self._read_part(
                torch.from_numpy(text[read]), torch.from_numpy(text[read + 1]), places
            )

    @torch.no_grad()
    def _score_parts(self, parts: Iterable[ReadPart], total: int) -> Scores:
        found = np.zeros(total, dtype=np.float32)
        for part in parts:
            counts = part.places >= 0
            found[part.places[counts]] = self.log_probabilities(part)[counts]
        return found

    @torch.no_grad()
    def log_probabilities(self, part: ReadPart) -> Scores:
        """Of the targets, [row, time], a chunk of logits at a time."""
        states, wanted = part.hidden.flatten(0, 1), part.targets.flatten().to(self.device)
        size = max(1, CHUNK_LOGITS // self.network.output.out_features)
        scores = []
        for begin in range(0, len(wanted), size):
            logits = next_token_logits(self.network, states[begin : begin + size])
            chosen = logits.gather(1, wanted[begin : begin + size, None])[:, 0]
            scores.append(chosen - logits.logsumexp(-1))
        found = torch.cat(scores)
        if self._memory is not None and part.keys is not None:
            counts = torch.from_numpy(part.places.flatten() >= 0).to(self.device)
            keys = part.keys.flatten(0, 1)[counts]
            found[counts] = self._memory.mix_chosen(found[counts], wanted[counts], keys)
        return found.view(part.targets.shape).cpu().numpy()


def _batches(numbers: Sequence[int], sentences: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Sentences of like length, at most BATCH_TOKENS with padding."""
    group: list[int] = []
    for i in sorted(numbers, key=lambda number: len(sentences[number])):
        if group and (len(sentences[i]) + 1) * (len(group) + 1) > BATCH_TOKENS:
            yield group
            group = []
        group.append(i)
    if group:
        yield group
