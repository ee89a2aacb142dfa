"""Generation by edits: rounds of deletion and insertion, by a model that has learnt both.

    decoding: {kind: edits, rounds: 10, insertion_penalty: 0}

The search itself is in edits.py; here are its batches, limits and results. The distributions of a
given target are those of one pass that knows its length alone, as for other parallel models.

Gu, Wang & Zhao 2019. Tested with policies that follow the expert, and with a trained model.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from headwise.data.token_edits import PLACEHOLDER
from headwise.decoding.generation_settings import GenerationSettings
from headwise.decoding.generator import NO_WATCHER, Generator, Watcher
from headwise.decoding.parallel.edits import EditSettings, search_edits
from headwise.decoding.parallel.one_pass import certain_end
from headwise.decoding.parallel.protocol import EditedModel
from headwise.decoding.results import EMPTY_RESULT, SearchResult
from headwise.decoding.rules.constraints import SentenceRules
from headwise.decoding.rules.honoured_rules import Rule
from headwise.decoding.rules.length_limit import limit_for
from headwise.text.tokenizer import BOS, EOS


class EditSearch(Generator):
    honours: ClassVar[frozenset[Rule]] = frozenset({"allow_unknown"})

    def __init__(self, model: EditedModel) -> None:
        self.model = model

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
        assert isinstance(settings, EditSettings)
        filled = [i for i, source in enumerate(sources) if len(source)]
        results = [EMPTY_RESULT] * len(sources)
        if not filled:
            return results
        policies = self.model.policies(self.model.read_sources([sources[i] for i in filled]))
        found = search_edits(
            policies,
            [limit_for(settings.max_length, len(sources[i])) for i in filled],
            settings,
            traced=traced,
            before_round=watcher.before_step,
        )
        for i, one in zip(filled, found, strict=True):
            results[i] = SearchResult((one.hypothesis,), passes=one.rounds)
            if watcher.on_result is not None:
                watcher.on_result(i, results[i])
        return results

    @torch.no_grad()
    def read(
        self,
        sources: Sequence[Sequence[int]],
        target: Sequence[int],
        *,
        before_step: Callable[[], None] | None = None,
    ) -> Iterator[Float[Tensor, "source vocab"]]:
        """The distributions at as many placeholders as the target has words."""
        if before_step is not None:
            before_step()
        policies = self.model.policies(self.model.read_sources(sources))
        row = [BOS, *([PLACEHOLDER] * len(target)), EOS]
        tokens = torch.tensor([row] * len(sources), device=policies.device)
        sentences = torch.arange(len(sources), device=policies.device)
        scores = policies.fill(tokens, tokens.ne(PLACEHOLDER), sentences)
        yield from scores[:, 1 : len(target) + 1].unbind(1)
        yield certain_end(scores[:, 0])
