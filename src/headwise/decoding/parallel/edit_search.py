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
from headwise.decoding.generator import Watcher
from headwise.decoding.parallel.edits import EditSettings, search_edits
from headwise.decoding.parallel.one_pass import certain_end
from headwise.decoding.parallel.parallel_generator import ParallelGenerator
from headwise.decoding.parallel.protocol import EditedModel
from headwise.decoding.results import SearchResult
from headwise.decoding.rules.honoured_rules import Rule
from headwise.decoding.rules.length_limit import limit_for
from headwise.text.tokenizer import BOS, EOS


class EditSearch(ParallelGenerator):
    honours: ClassVar[frozenset[Rule]] = frozenset({"allow_unknown"})

    def __init__(self, model: EditedModel) -> None:
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
        assert isinstance(settings, EditSettings)
        policies = self.model.policies(self.model.read_sources(sources))
        found = search_edits(
            policies,
            [limit_for(settings.max_length, len(source)) for source in sources],
            settings,
            traced=traced,
            before_round=watcher.before_step,
        )
        return [SearchResult((one.hypothesis,), passes=one.rounds) for one in found]

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
