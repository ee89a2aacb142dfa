"""Asks a trained network (neural n-gram, recurrent model, Transformer) for the probabilities of
tokens, in the form that all language models share (`TokenModel`).

A `TokenModel` answers two questions in token ids: how probable is this text, and which token comes
next? A sentence is read from <s>; a model trained on a stream reads it from </s>, the token that
preceded every line in training.

A Transformer reads at most as many tokens as in training. A longer text is read in windows that
begin at multiples of half a window. A token is predicted in the first window that contains it, so
it has at least half a window of context, and the same context whether a text is scored or
generated. A recurrent model, and a Transformer with a memory, carry their state through any length:
then nothing is read twice, and a token sees the same context wherever windows begin. <pad> and <s>
are never predicted.

Tested: probabilities sum to 1; texts in a batch = one by one; windows with a carried state = the
whole text; the score of a text is the product of its predictions, for texts of any length.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headwise.data.text.text_batches import pad_lines
from headwise.models.choices import LanguageNetwork
from headwise.models.decoder_only import DecoderOnly
from headwise.models.recurrent.language_model import RecurrentLanguageModel
from headwise.models.segment_memory import Past
from headwise.models.text_stepper import next_token_logits
from headwise.text.tokenizer import EOS

BATCH_TOKENS = 8192
CHUNK_LOGITS = 1 << 22
WINDOW = 256

Scores = NDArray[np.float32]


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

    @property
    def num_parameters(self) -> int:
        return sum(parameter.numel() for parameter in self.network.parameters())

    @property
    def device(self) -> torch.device:
        return self.network.output.weight.device

    @torch.no_grad()
    def score(self, sentences: Sequence[Sequence[int]]) -> list[Scores]:
        """Of each sentence the log-probability of each token, and of its end."""
        found: list[Scores] = [np.zeros(0, dtype=np.float32)] * len(sentences)
        short = [
            i for i, one in enumerate(sentences) if self.context is None or len(one) < self.context
        ]
        for group in _batches(short, sentences):
            batch = pad_lines([sentences[i] for i in group], first=self.first)
            scores = self._log_probabilities(self._read(batch.tokens), batch.targets).numpy()
            for row, i in enumerate(group):
                found[i] = scores[row, : len(sentences[i]) + 1]
        for i in set(range(len(sentences))) - set(short):
            found[i] = self.score_running(np.array([self.first, *sentences[i], EOS]))
        return found

    @torch.no_grad()
    def score_running(self, text: NDArray[np.int64], *, rows: int = 1) -> Scores:
        """Every token of one text but the first, from all that stands before it.

        `rows` > 1: as so many texts read side by side, faster and with so many places where nothing
        is remembered.
        """
        if not self.carries:
            return self._score_windows(text)
        length = -(-(len(text) - 1) // rows)
        padded = np.pad(text, (0, rows * length + 1 - len(text)))
        tokens, targets = (
            torch.from_numpy(padded[ahead : ahead + rows * length]).view(rows, length)
            for ahead in (0, 1)
        )
        parts, begin = [], 0
        for hidden in self._read_on(tokens):
            end = begin + hidden.shape[1]
            parts.append(self._log_probabilities(hidden, targets[:, begin:end]))
            begin = end
        return torch.cat(parts, dim=1).flatten()[: len(text) - 1].numpy()

    @torch.no_grad()
    def next_words(self, prefixes: Sequence[Sequence[int]]) -> Scores:
        """Log-probabilities of every token after each beginning of a sentence, [prefix,
        vocabulary].
        """
        cut = [self._last([self.first, *prefix]) for prefix in prefixes]
        rows = np.zeros((len(prefixes), self.network.output.out_features), dtype=np.float32)
        for length in sorted({len(prefix) for prefix in cut}):
            same = [i for i, prefix in enumerate(cut) if len(prefix) == length]
            hidden = self._read(torch.tensor([cut[i] for i in same]))[:, -1]
            rows[same] = next_token_logits(self.network, hidden).log_softmax(-1).cpu().numpy()
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

    def _read(self, tokens: Tensor) -> Tensor:
        """Hidden states of rows that begin with nothing read."""
        if isinstance(self.network, RecurrentLanguageModel):
            return self.network(tokens.to(self.device))[0]
        if self.carries and self.context is not None and tokens.shape[1] > self.context:
            return torch.cat(list(self._read_on(tokens)), dim=1)
        return self.network(tokens.to(self.device))

    def _read_on(self, tokens: Tensor) -> Iterator[Tensor]:
        """Hidden states of rows of any length, window by window; the state is carried."""
        network, length = self.network, max(WINDOW, self.reach or 0)
        windows = tokens.to(self.device).split(length, dim=1)
        if isinstance(network, RecurrentLanguageModel):
            states = None
            for window in windows:
                hidden, states = network(window, states)
                yield hidden
        else:
            assert isinstance(network, DecoderOnly)
            assert self.reach is not None, "other Transformers read windows by themselves"
            like = network.embedding.table.weight
            past = Past.nothing(len(network.blocks), len(tokens), like=like)
            for window in windows:
                hidden, read = network.read_on(window, past)
                past = past.after(read, keep=self.reach)
                yield hidden

    def _score_windows(self, text: NDArray[np.int64]) -> Scores:
        total = len(text) - 1
        width = self.context or total
        stride = max(1, width // 2)
        begins = range(0, self.window_begin(total) + 1, stride)
        found = np.zeros(total, dtype=np.float32)
        size = max(1, BATCH_TOKENS // width)
        # The last window alone may be shorter: it begins where it would if more followed.
        groups = [begins[:-1][first : first + size] for first in range(0, len(begins) - 1, size)]
        for group in [*groups, begins[-1:]]:
            places = np.array(group)[:, None] + np.arange(min(width, total - group[-1]))
            hidden = self._read(torch.from_numpy(text[places]))
            scores = self._log_probabilities(hidden, torch.from_numpy(text[places + 1])).numpy()
            for begin, row in zip(group, scores, strict=True):
                fresh = 0 if begin == 0 else width - stride  # what the window before did not reach
                found[begin + fresh : begin + len(row)] = row[fresh:]
        return found

    def _log_probabilities(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """Of the targets, a chunk of logits at a time."""
        states, wanted = hidden.flatten(0, 1), targets.flatten().to(hidden.device)
        size = max(1, CHUNK_LOGITS // self.network.output.out_features)
        parts = []
        for begin in range(0, len(wanted), size):
            logits = next_token_logits(self.network, states[begin : begin + size])
            chosen = logits.gather(1, wanted[begin : begin + size, None])[:, 0]
            parts.append(chosen - logits.logsumexp(-1))
        return torch.cat(parts).view(targets.shape).cpu()


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
