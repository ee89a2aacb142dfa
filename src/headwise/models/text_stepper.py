"""Lets a search ask a language model for one token after another: language models as steppers
(decoding/stepper.py).

    Transformer      keeps keys and values of every layer
    recurrent        keeps its state
    neural n-gram    keeps the n - 1 last tokens

The "source" of a stepper is here the beginning of the text, including its first token. `start`
reads all of it but the last token. At the first step that token is fed, instead of the
beginning-of-sentence token that the search would feed. All beginnings of one call have the same
length. <pad> and <s> occur in no text and are never predicted: their probability, which a trained
network keeps small, goes to the other tokens.

A text is often written in pieces, line by line. `ContinuingStepper` then goes on with the memory of
the piece before instead of reading everything again.

Tested against: the whole text read at once, for every network.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headwise.models.decoder_only import DecoderOnly
from headwise.models.neural_ngram import NeuralNgram
from headwise.models.recurrent.language_model import RecurrentLanguageModel
from headwise.text.tokenizer import BOS, EOS

Network = NeuralNgram | RecurrentLanguageModel | DecoderOnly


@dataclass
class TextState:
    """The memory of a network, and the last token of the beginning until it is fed."""

    memory: Any
    waiting: Tensor | None


def next_token_logits(
    network: Network, hidden: Float[Tensor, "*batch dim"]
) -> Float[Tensor, "*batch vocab"]:
    """Logits in fp32, -inf for tokens that occur in no text; for use without gradients."""
    logits = network.output(hidden).float()
    logits[..., : BOS + 1] = -torch.inf  # ids 0 and 1, <pad> and <s>
    return logits


class TextStepper:
    """A stepper around a trained network."""

    def __init__(self, network: Network) -> None:
        self.network = network.eval()

    @property
    def device(self) -> torch.device:
        return self.network.output.weight.device

    @property
    def carries(self) -> bool:
        """Whether its memory takes a text of any length."""
        return not isinstance(self.network, DecoderOnly) or self.network.reach is not None

    @torch.no_grad()
    def start(self, sources: Sequence[Sequence[int]], *, width: int, max_length: int) -> TextState:
        tokens = torch.tensor(sources, device=self.device).repeat_interleave(width, dim=0)
        num_rows, length = tokens.shape
        match self.network:
            case DecoderOnly():
                memory: Any = self.network.start(num_rows=num_rows, max_length=length + max_length)
            case RecurrentLanguageModel():
                memory = self.network.start(num_rows)
            case NeuralNgram():
                memory = tokens.new_full((num_rows, self.network.num_before), BOS)
        state = TextState(memory, None)
        for place in range(length - 1):
            self._feed(state, tokens[:, place])
        state.waiting = tokens[:, -1]
        return state

    @torch.no_grad()
    def step(
        self, state: TextState, tokens: Int[Tensor, " hypothesis"]
    ) -> tuple[Float[Tensor, "hypothesis vocab"], TextState]:
        if state.waiting is not None:
            tokens, state.waiting = state.waiting, None
        hidden = self._feed(state, tokens)
        return next_token_logits(self.network, hidden).log_softmax(-1), state

    @torch.no_grad()
    def reorder(self, state: TextState, index: Int[Tensor, " new_hypothesis"]) -> TextState:
        match self.network:
            case DecoderOnly():
                for cache in state.memory.caches:
                    cache.reorder(index)
            case RecurrentLanguageModel():
                state.memory = [tuple(part[index] for part in layer) for layer in state.memory]
            case NeuralNgram():
                state.memory = state.memory[index]
        return state

    def _feed(self, state: TextState, tokens: Tensor) -> Tensor:
        match self.network:
            case DecoderOnly():
                return self.network.step(tokens, state.memory)
            case RecurrentLanguageModel():
                hidden, state.memory = self.network.step(tokens, state.memory)
                return hidden
            case NeuralNgram():
                state.memory = torch.cat([tokens[:, None], state.memory[:, :-1]], dim=1)
                return self.network.combine(state.memory)


class ContinuingStepper(TextStepper):
    """A stepper for one text: a beginning that continues what it has read is not read again."""

    def __init__(self, network: Network) -> None:
        super().__init__(network)
        self._state: TextState | None = None
        self._rows: list[list[int]] = []
        """What each row of the state has read."""
        self._scores: Tensor | None = None
        self._is_over = False
        """Whether every row has ended: what is fed then is not part of the text."""
        self.num_read = 0
        """Tokens read so far, for one row."""

    @torch.no_grad()
    def start(self, sources: Sequence[Sequence[int]], *, width: int, max_length: int) -> TextState:
        self._is_over = False
        kept = self._find_row(sources[0]) if self.carries and len(sources) == 1 else None
        if kept is None or self._state is None:
            self._rows = [[] for _ in range(len(sources) * width)]
            self._state = super().start(sources, width=width, max_length=max_length)
            return self._state
        num_known = len(self._rows[kept])
        state = self.reorder(self._state, torch.full((width,), kept, device=self.device))
        for token in sources[0][num_known:-1]:
            self._feed(state, torch.full((width,), token, device=self.device))
        state.waiting = torch.full((width,), sources[0][-1], device=self.device)
        return state

    @torch.no_grad()
    def step(
        self, state: TextState, tokens: Int[Tensor, " hypothesis"]
    ) -> tuple[Float[Tensor, "hypothesis vocab"], TextState]:
        """As for a text; the end of a piece is read as the beginning of the next one."""
        if state.waiting is None and (self._is_over or bool((tokens == EOS).all())):
            assert self._scores is not None, "a text begins with a token that waits"
            self._is_over = True
            return self._scores, state
        self._scores, state = super().step(state, tokens)
        return self._scores, state

    def reorder(self, state: TextState, index: Int[Tensor, " new_hypothesis"]) -> TextState:
        self._rows = [list(self._rows[row]) for row in index.tolist()]
        return super().reorder(state, index)

    def _find_row(self, source: Sequence[int]) -> int | None:
        """The row that has read most of this beginning, and nothing else."""
        fits = [
            (len(row), number)
            for number, row in enumerate(self._rows)
            if 0 < len(row) < len(source) and row == list(source[: len(row)])
        ]
        return max(fits)[1] if fits else None

    def _feed(self, state: TextState, tokens: Tensor) -> Tensor:
        self.num_read += 1
        for row, token in zip(self._rows, tokens.tolist(), strict=True):
            row.append(token)
        return super()._feed(state, tokens)
