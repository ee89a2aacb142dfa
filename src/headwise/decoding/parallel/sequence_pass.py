"""Translates in one pass with a model that scores neighbouring tokens together (a chain), or whose
decoder reads copies of the source tokens.

    candidates   the `lengths` most probable lengths, or copies by the most likely fertilities
    y            the best tokens of each candidate: argmax, or Viterbi for a chain (crf.py)
    result       the candidate with the largest mean log-probability per token

What one_pass.py does for independent positions of a given length, this file does where lengths
follow from fertilities, or where neighbouring tokens are scored together. The log-probability of
the end of a sentence is that of the length, or that of all fertilities. `noisy_pass.py` has a judge
choose among more candidates.

Gu et al. 2018; Sun et al. 2019. Tested against: a fake model, enumeration of all sequences, and: a
sentence alone = in any batch.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headwise.decoding.generation_settings import GenerationSettings
from headwise.decoding.generator import Watcher
from headwise.decoding.parallel.crf import find_best_path, follow_path
from headwise.decoding.parallel.excluded_tokens import exclude, excluded_tokens
from headwise.decoding.parallel.one_pass import (
    OnePassSettings,
    certain_end,
    of_lengths,
    propose_lengths,
)
from headwise.decoding.parallel.parallel_generator import ParallelGenerator
from headwise.decoding.parallel.protocol import CopiedSources, PartialTargets, SequenceModel
from headwise.decoding.records import FertilityRecord
from headwise.decoding.results import Hypothesis, SearchResult, written_at_once
from headwise.decoding.rules.honoured_rules import Rule
from headwise.decoding.rules.length_limit import limit_for
from headwise.text.tokenizer import BOS, EOS, PAD

MOST_POSITIONS = 16_384
"""Positions whose distributions are held at once: with 32,000 words about 2 GB."""


class Proposals(NamedTuple):
    """The candidates of all sentences, the most probable ones of a sentence first."""

    candidates: PartialTargets
    ends: Float[Tensor, " candidate"]
    """The log-probabilities of their lengths, or of their fertilities."""
    copies: CopiedSources | None = None
    """What the decoder reads, if that follows from fertilities."""


class SequencePass(ParallelGenerator):
    honours: ClassVar[frozenset[Rule]] = frozenset({"min_length", "allow_unknown"})

    def __init__(self, model: SequenceModel) -> None:
        self.model = model

    def write_batch(
        self,
        sources: Sequence[Sequence[int]],
        settings: GenerationSettings,
        *,
        numbers: Sequence[int],
        traced: bool,
        watcher: Watcher,
    ) -> list[SearchResult]:
        if watcher.before_step is not None:
            watcher.before_step()
        memory = self.model.read_sources(sources)
        limits = [limit_for(settings.max_length, len(source)) for source in sources]
        proposed = self.propose(memory, limits, settings, numbers)
        found = fill_in(self.model, memory, proposed.candidates, proposed.ends, settings)
        results = []
        for row, (number, best) in enumerate(self.choose(sources, found, settings)):
            result = SearchResult((best,))
            if traced:
                record = _record(proposed, row, number, len(sources[row]) + 1)
                result = SearchResult((best,), passes=written_at_once(best), record=record)
            results.append(result)
        return results

    def propose(
        self,
        memory: Any,
        limits: Sequence[int],
        settings: GenerationSettings,
        numbers: Sequence[int],
    ) -> Proposals:
        """What is filled in."""
        assert isinstance(settings, OnePassSettings)
        shortest = settings.min_length + 1
        if self.model.copies_by_fertility:
            least = [shortest] * len(limits)
            return of_copies(self.model.likely_copies(memory, least=least, most=limits))
        return Proposals(
            *propose_lengths(self.model, memory, limits, count=settings.lengths, shortest=shortest)
        )

    def choose(
        self,
        sources: Sequence[Sequence[int]],
        found: Sequence[Sequence[Hypothesis]],
        settings: GenerationSettings,
    ) -> list[tuple[int, Hypothesis]]:
        """The best candidate of each sentence, and its number among those of the sentence."""
        return [max(enumerate(hypotheses), key=lambda one: one[1].score) for hypotheses in found]

    @torch.no_grad()
    def read(
        self,
        sources: Sequence[Sequence[int]],
        target: Sequence[int],
        *,
        before_step: Callable[[], None] | None = None,
    ) -> Iterator[Float[Tensor, "source vocab"]]:
        """The distributions of one pass that knows the length of the target; in a chain each token
        also knows those before it."""
        if before_step is not None:
            before_step()
        memory = self.model.read_sources(sources)
        candidates = known_lengths(self.model, memory, [len(target) + 1] * len(sources))
        if self.model.is_chain:
            scores = read_chain(self.model, memory, candidates, target)
        else:
            scores = self.model.predict(memory, candidates)
        yield from scores[:, : len(target)].unbind(1)
        yield certain_end(scores[:, 0])


def known_lengths(model: SequenceModel, memory: Any, lengths: Sequence[int]) -> PartialTargets:
    """One candidate for each sentence, of which the length is given."""
    if model.copies_by_fertility:
        return of_copies(model.likely_copies(memory, least=lengths, most=lengths)).candidates
    device = model.device
    sentence = torch.arange(len(lengths), device=device)
    return of_lengths(sentence, torch.tensor(lengths, device=device), ends_known=True)


def of_copies(copies: CopiedSources) -> Proposals:
    """Candidates whose decoder reads these copies."""
    length = (copies.tokens != PAD).sum(1)
    known = of_lengths(copies.sentence, length, ends_known=True).known
    candidates = PartialTargets(copies.sentence, length, known, copies.tokens)
    return Proposals(candidates, copies.log_probability, copies)


def _record(
    proposed: Proposals, sentence: int, number: int, num_tokens: int
) -> FertilityRecord | None:
    """The fertilities of a candidate of a sentence with so many source tokens."""
    if proposed.copies is None:
        return None
    row = (proposed.candidates.sentence == sentence).nonzero()[number, 0]
    return FertilityRecord(
        tuple(proposed.copies.fertility[row, :num_tokens].tolist()),
        tuple(proposed.copies.fertility_log_probability[row, :num_tokens].tolist()),
    )


def fill_in(
    model: SequenceModel,
    memory: Any,
    candidates: PartialTargets,
    ends: Float[Tensor, " candidate"],
    settings: GenerationSettings,
) -> list[list[Hypothesis]]:
    """The best tokens of each candidate, by sentence."""
    count, width = candidates.known.shape
    everything = torch.arange(count, device=candidates.known.device)
    found: list[list[Hypothesis]] = [[] for _ in range(int(candidates.sentence.max()) + 1)]
    for part in everything.split(max(1, MOST_POSITIONS // width)):
        here = candidates.choose(part)
        tokens, values = best_tokens(model, memory, here, settings)
        columns = (here.sentence, here.length - 1, ends[part], tokens, values)
        for sentence, length, end, row, scores in zip(*(x.tolist() for x in columns), strict=True):
            written, total = tuple(row[:length]), sum(scores[:length])
            found[sentence].append(
                Hypothesis(
                    written,
                    total + end,
                    total / max(1, length),
                    (*scores[:length], end),
                    finished=True,
                )
            )
    return found


def best_tokens(
    model: SequenceModel,
    memory: Any,
    candidates: PartialTargets,
    settings: GenerationSettings,
) -> tuple[Int[Tensor, "candidate position"], Float[Tensor, "candidate position"]]:
    """The tokens of all positions and their log-probabilities: each by itself, or of a chain."""
    excluded = excluded_tokens(settings)
    if model.is_chain:
        chain = model.predict_chain(memory, candidates, excluded=excluded)
        path = find_best_path(
            chain.emissions,
            chain.transitions,
            candidates=chain.tokens,
            lengths=candidates.length - 1,
        )
        return path.tokens, path.token_log_probabilities
    scores = model.predict(memory, candidates)
    exclude(scores, excluded)
    values, tokens = scores.max(-1)
    return tokens, values


def read_chain(
    model: SequenceModel, memory: Any, candidates: PartialTargets, target: Sequence[int]
) -> Float[Tensor, "candidate position vocab"]:
    """log p(token | the tokens of the target before it); tokens that are no choice have -inf."""
    chain = model.predict_chain(memory, candidates, excluded=(PAD, BOS, EOS), wanted=target)
    wanted = torch.tensor([*target, PAD], device=chain.tokens.device)
    path = (chain.tokens == wanted[None, :, None]).int().argmax(-1)
    values = follow_path(
        chain.emissions, chain.transitions, path=path, lengths=candidates.length - 1
    )
    size = (*chain.tokens.shape[:2], model.vocabulary_size)
    return values.new_full(size, -torch.inf).scatter_(2, chain.tokens, values)
