"""Draws the samples of a training: for each source some translations from the model's distribution
and the greedy one, in one batch.

    rows of a source    greedy, sample 1, …, sample n      they share its encoded source

Every row is conditioned on its own prefix: at each step it is fed the token that it has taken
itself. Padding and the beginning of a sentence are never written, so their probability is removed
and the rest renormalised; log-probabilities in the result are those of this distribution, from
which the samples are drawn (at temperature 1). A `prefix` is forced upon all rows of its source.

The plain engine runs it: weights change at every update, and a recorded step would have to be
recorded again each time.
Tested against: log-probabilities of the whole target computed at once; the enumerated distribution
of a small model; greedy search.
"""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from headwise.decoding.engines.plain import run_plainly
from headwise.decoding.generator import NO_WATCHER
from headwise.decoding.results import Hypothesis
from headwise.decoding.rules.constraints import SentenceRules
from headwise.decoding.search.greedy import choose_best
from headwise.decoding.search.paths import Choose, PathSearch
from headwise.decoding.search.sampling import SamplingSettings, make_sampler
from headwise.decoding.stepper import Stepper
from headwise.text.tokenizer import EOS


def draw_samples(
    stepper: Stepper[Any],
    sources: Sequence[Sequence[int]],
    *,
    count: int,
    temperature: float,
    seed: int,
    limits: Sequence[int],
    prefixes: Sequence[Sequence[int]] | None = None,
) -> list[tuple[Hypothesis, ...]]:
    """The greedy output and then `count` samples of each source, which must not be empty."""
    settings = SamplingSettings(num_samples=count + 1, temperature=temperature, seed=seed)
    rules = [SentenceRules(tuple(one)) for one in prefixes or [()] * len(sources)]
    drawn = make_sampler(settings, range(len(sources)), longest=max(limits), device=stepper.device)
    search = PathSearch(
        settings, rules, _greedy_first(drawn, count + 1), limits=limits, device=stepper.device
    )
    results = run_plainly(_WithoutSpecial(stepper), sources, search, NO_WATCHER)
    return [result.hypotheses for result in results]


def _greedy_first(draw: Choose, width: int) -> Choose:
    """The first row of each source takes the most probable token."""

    def choose(scores: Tensor, step: int, sentences: Tensor) -> Tensor:
        tokens = draw(scores, step, sentences)
        tokens[::width] = choose_best(scores[::width], step, sentences)
        return tokens

    return choose


class _WithoutSpecial:
    """A stepper whose distributions have no padding and no beginning of a sentence."""

    def __init__(self, stepper: Stepper[Any]) -> None:
        self.inner = stepper
        self.start, self.reorder = stepper.start, stepper.reorder

    @property
    def device(self) -> torch.device:
        return self.inner.device

    def step(self, state: Any, tokens: Tensor) -> tuple[Float[Tensor, "row vocab"], Any]:
        scores, state = self.inner.step(state, tokens)
        special = scores[:, :EOS].exp().sum(1, keepdim=True)
        return scores - torch.log1p(-special), state
