"""A way to generate that is no search: all tokens at once, without a stepper.

`test_new_kind.py` copies this file into the library as `decoding/token_mapping.py`.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from headwise.decoding.generation_settings import GenerationSettings
from headwise.decoding.generator import NO_WATCHER, Generator, Watcher
from headwise.decoding.results import (
    EMPTY_RESULT,
    Hypothesis,
    SearchResult,
    SearchTrace,
    TracedToken,
)
from headwise.decoding.rules.constraints import SentenceRules
from headwise.decoding.rules.honoured_rules import Rule
from headwise.text.tokenizer import EOS


class TokenMappingSettings(GenerationSettings):
    """All tokens at once."""

    kind: Literal["token_mapping"] = "token_mapping"


class TokenMapping(Generator):
    """Maps every source token to the token of the same number, all positions at once."""

    honours: ClassVar[frozenset[Rule]] = frozenset({"prefix"})

    def __init__(self, model: Any) -> None:
        self.vocab = model.model.output.weight.shape[0]

    def predict(self, source: Sequence[int], length: int) -> Tensor:
        """Log-probabilities of all positions, [length, vocab]; after the source comes the end."""
        expected = [*source, *[EOS] * (length - len(source))][:length]
        tokens = torch.tensor([token % self.vocab for token in expected])
        logits = torch.full((length, self.vocab), -9.0)
        logits[torch.arange(length), tokens] = 0.0
        return logits.log_softmax(-1)

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
        each = [rules or SentenceRules()] * len(sources) if not isinstance(rules, list) else rules
        if watcher.before_step is not None:
            watcher.before_step()
        return [
            self.write(source, one.prefix, traced=traced)
            for source, one in zip(sources, each, strict=True)
        ]

    def write(
        self, source: Sequence[int], prefix: tuple[int, ...], *, traced: bool
    ) -> SearchResult:
        if not source:
            return EMPTY_RESULT
        scores = self.predict(source, len(source) + 1)
        tokens = [*prefix, *scores.argmax(-1).tolist()[len(prefix) :]][: len(source)] + [EOS]
        values = [float(row[token]) for row, token in zip(scores, tokens, strict=True)]
        total = sum(values)
        best = Hypothesis(tuple(tokens[:-1]), total, total / len(values), tuple(values), True)
        return SearchResult((best,), trace_of(tokens, values) if traced else None)

    def read(
        self,
        sources: Sequence[Sequence[int]],
        target: Sequence[int],
        *,
        before_step: Callable[[], None] | None = None,
    ) -> Iterator[Tensor]:
        tables = torch.stack([self.predict(source, len(target) + 1) for source in sources])
        return iter(tables.unbind(1))


def trace_of(tokens: Sequence[int], values: Sequence[float]) -> SearchTrace:
    """One slot, which every token continues; the last one finishes."""
    steps, total = [], 0.0
    for token, value in zip(tokens, values, strict=True):
        total += value
        is_end = token == EOS
        fate: Literal["finished", "kept"] = "finished" if is_end else "kept"
        slot = None if is_end else 0
        steps.append((TracedToken(0, token, value, total, total, fate, slot),))
    return SearchTrace(tuple(steps))
