"""Generates all sentences of a batch at once: what every search of a parallel translator shares.

An empty source gets an empty result and is not shown to the model. Every result is reported to the
watcher, in the order of the sources. A search writes `write_batch`, which never sees an empty
source.

Tested with each search: an empty source in a batch, and a sentence alone = in any batch.
"""

from abc import abstractmethod
from collections.abc import Sequence

import torch

from headwise.decoding.generation_settings import GenerationSettings
from headwise.decoding.generator import NO_WATCHER, Generator, Watcher
from headwise.decoding.results import EMPTY_RESULT, SearchResult
from headwise.decoding.rules.constraints import SentenceRules


class ParallelGenerator(Generator):
    """A parallel translator with one way to search."""

    @torch.no_grad()
    def generate_batch(
        self,
        sources: Sequence[Sequence[int]],
        settings: GenerationSettings,
        rules: SentenceRules | Sequence[SentenceRules] | None = None,
        *,
        numbers: Sequence[int] | None = None,
        traced: bool = False,
        watcher: Watcher = NO_WATCHER,
    ) -> list[SearchResult]:
        filled = [i for i, source in enumerate(sources) if len(source)]
        results = [EMPTY_RESULT] * len(sources)
        if not filled:
            return results
        given = [sources[i] for i in filled]
        names = filled if numbers is None else [numbers[i] for i in filled]
        found = self.write_batch(given, settings, numbers=names, traced=traced, watcher=watcher)
        for i, result in zip(filled, found, strict=True):
            results[i] = result
            if watcher.on_result is not None:
                watcher.on_result(i, result)
        return results

    @abstractmethod
    def write_batch(
        self,
        sources: Sequence[Sequence[int]],
        settings: GenerationSettings,
        *,
        numbers: Sequence[int],
        traced: bool,
        watcher: Watcher,
    ) -> list[SearchResult]:
        """The results of these sources; `watcher.on_result` is called by `generate_batch`."""
