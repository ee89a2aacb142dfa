"""The memory of a translator (kNN-MT): mixes a store into the search, and tells which stored
examples voted for a word. pair_reader.py builds the store.

    key     the state of the decoder before target token t, with source and y_<t given
    value   token t of the reference
    p(w | x, y_<t) = λ p_kNN(w) + (1 - λ) p_model(w)

The votes of a translation come from one pass over the finished text: the search itself keeps none.

Khandelwal et al. 2021, *Nearest Neighbor Machine Translation*.
Tested against: a stepper over the same prefix, brute force, the model alone at λ = 0, and pairs
that are translated as they were stored.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from headwise.decoding.batches import plan_batches
from headwise.decoding.generation_settings import Batching
from headwise.decoding.results import Hypothesis
from headwise.errors import UsageError
from headwise.models.state_keys import KeyTap
from headwise.models.translation_model import TranslationModel
from headwise.neighbours.memory import RememberingSteppers, TokenMemory
from headwise.neighbours.mixture import mix_chosen, vote, weigh
from headwise.neighbours.search import FoundNeighbours, NearestSearch
from headwise.neighbours.settings import MemorySettings
from headwise.neighbours.store import NeighbourStore, StoredEntry
from headwise.text.tokenizer import BOS, EOS, PAD

if TYPE_CHECKING:
    from headwise.tasks.translation.translator import Translator

BATCHING = Batching(sentences=128, tokens=4096)
SHOWN_VOTES = 8
Tokens = Sequence[int]


@dataclass(frozen=True)
class ForcedBatch:
    """Pairs that a translator has read with the target given; rows in the order of `numbers`."""

    numbers: Sequence[int]
    hidden: Tensor
    keys: Tensor
    lengths: Sequence[int]


class ForcedReading:
    """A translator that reads finished pairs."""

    def __init__(self, model: TranslationModel) -> None:
        self.model, self.tap = model, KeyTap(model)

    @torch.no_grad()
    def read(self, sources: Sequence[Tokens], targets: Sequence[Tokens]) -> Iterator[ForcedBatch]:
        """The states that predict each token of each target, and its end."""
        sizes = [max(len(x), len(y)) + 1 for x, y in zip(sources, targets, strict=True)]
        for batch in plan_batches(sizes, BATCHING):
            source = self._pad([[*sources[i], EOS] for i in batch])
            given = self._pad([[BOS, *targets[i]] for i in batch])
            hidden = self.model(
                source,
                given,
                source_segment=(source != PAD).long(),
                target_segment=(given != PAD).long(),
                source_position=_positions(source),
                target_position=_positions(given),
            )
            lengths = [len(targets[i]) + 1 for i in batch]
            yield ForcedBatch(batch, hidden, self.tap.keys_of(hidden), lengths)

    @torch.no_grad()
    def scores(self, hidden: Tensor, tokens: Tensor) -> Tensor:
        """The log-probability of one token for each state."""
        parts = [
            self.model.logits(states).float().log_softmax(-1).gather(1, wanted[:, None])[:, 0]
            for states, wanted in zip(hidden.split(1024), tokens.split(1024), strict=True)
        ]
        return torch.cat(parts)

    def _pad(self, rows: Sequence[Tokens]) -> Tensor:
        width = max(map(len, rows))
        padded = [[*row, *[PAD] * (width - len(row))] for row in rows]
        return torch.tensor(padded, device=self.model.output.weight.device)


def _positions(tokens: Tensor) -> Tensor:
    return torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens)


@dataclass(frozen=True)
class ExampleVote:
    """A stored example that spoke at one word: its token, and its share among the neighbours."""

    piece: str
    share: float
    distance: float
    entry: StoredEntry

    def as_dict(self) -> dict[str, Any]:
        entry = self.entry
        return {
            "token": self.piece,
            "share": self.share,
            "distance": self.distance,
            "entry": entry.number,
            "corpus": entry.corpus,
            "line": entry.line,
            "position": entry.position,
            "source": entry.source,
            "target": entry.target,
        }


@dataclass(frozen=True)
class WordVotes:
    """How one written token came about: the model's probability, the mixture's, and the votes."""

    piece: str
    weight: float
    """λ at this token."""
    alone: float
    """Its probability by the model alone."""
    remembered: float
    """Its probability by the neighbours alone."""
    mixed: float
    votes: tuple[ExampleVote, ...]
    """The neighbours with the largest shares."""

    def as_dict(self) -> dict[str, Any]:
        return {
            "token": self.piece,
            "weight": self.weight,
            "model_probability": self.alone,
            "memory_probability": self.remembered,
            "probability": self.mixed,
            "votes": [one.as_dict() for one in self.votes],
        }


@dataclass(frozen=True)
class ReadPlaces:
    """The places of a finished translation, its end included: states, tokens, neighbours."""

    hidden: Tensor
    tokens: Tensor
    found: FoundNeighbours


def open_memory(translator: "Translator", settings: MemorySettings) -> NearestSearch:
    """The store of a memory, opened for search; one of another model is refused."""
    refuse_parallel(translator, translator.bundle.directory)
    store = NeighbourStore.open(settings.store)
    bundle = translator.bundle.directory
    fingerprint = translator.asked_models.fingerprint
    store.check_model(fingerprint, "translation", model=bundle)
    return TokenMemory.open(store, settings).search


class TranslatorMemory:
    """The memory of one translator, asked as the settings say."""

    def __init__(
        self, translator: "Translator", search: NearestSearch, settings: MemorySettings
    ) -> None:
        self.translator, self.memory = translator, TokenMemory(search, settings)

    def steppers(self) -> RememberingSteppers:
        """The translator as a search asks it, with the memory."""
        tap = self.translator.forced_reading.tap
        return RememberingSteppers(self.translator.offer, self.memory, tap.of_step)

    @torch.no_grad()
    def read(self, source: Tokens, written: Hypothesis) -> ReadPlaces:
        """One pass over a translation, and the search for the neighbours of every place."""
        (batch,) = self.translator.forced_reading.read([source], [written.tokens])
        size = len(written.tokens) + written.finished
        tokens = torch.tensor([*written.tokens, EOS], device=batch.hidden.device)[:size]
        found = self.memory.find(batch.keys[0, :size])
        return ReadPlaces(batch.hidden[0, :size], tokens, found)

    def votes(self, source: Tokens, written: Hypothesis) -> tuple[WordVotes, ...]:
        """Which stored examples spoke at each token of a translation, and at its end."""
        return self.votes_at(self.read(source, written)) if source else ()

    @torch.no_grad()
    def votes_at(self, read: ReadPlaces, *, shown: int = SHOWN_VOTES) -> tuple[WordVotes, ...]:
        """The same at places that have been read."""
        found, tokens = read.found, read.tokens
        reading, pieces = self.translator.forced_reading, self.translator.tokenizers.target
        alone = reading.scores(read.hidden, tokens)
        mixed = mix_chosen(alone, tokens, found, self.memory.mixing)
        shares = vote(found, self.memory.mixing.temperature)
        weights = weigh(found, self.memory.mixing).tolist()
        same = found.tokens == tokens.to(found.tokens.device)[:, None]
        remembered = (shares * same).sum(1).tolist()
        answers = []
        for place in range(len(tokens)):
            ranked = shares[place].sort(descending=True, stable=True).indices[:shown]
            votes = tuple(
                ExampleVote(
                    pieces.pieces([int(found.tokens[place, i])])[0],
                    float(shares[place, i]),
                    float(found.distances[place, i]),
                    self.memory.store.show(int(found.entries[place, i])),
                )
                for i in ranked.tolist()
            )
            answers.append(
                WordVotes(
                    pieces.pieces([int(tokens[place])])[0],
                    weights[place],
                    math.exp(float(alone[place])),
                    remembered[place],
                    math.exp(float(mixed[place])),
                    votes,
                )
            )
        return tuple(answers)


def refuse_parallel(translator: "Translator", path: Path) -> None:
    """Only a model that writes from left to right has one state for each next token."""
    if translator.offer.output_form != "steps":
        raise UsageError(
            f"{path} writes all words at once, and a memory is asked word after word; use a "
            "translator with model.kind=encoder_decoder or recurrent",
            f"{path} 一次写出所有词，而记忆要逐词查询；请用 model.kind=encoder_decoder 或 "
            "recurrent 的翻译模型",
        )
