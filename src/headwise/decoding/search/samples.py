"""Draws the samples of a training: for each source some translations from the model's distribution
and the greedy one, in one batch.

    rows of a source    greedy, sample 1, …, sample n      they share its encoded source

Every row is conditioned on its own prefix: at each step it is fed the token that it has taken
itself. Padding and the beginning of a sentence are never written, so their probability is removed
and the rest renormalised; log-probabilities in the result are those of this distribution, from
which the samples are drawn (at temperature 1). A `prefix` is forced upon all rows of its source.

With static buffers (on a GPU) the recorded engine runs it: one step of model and draw is recorded
and replayed, also after the weights have changed in place. Otherwise the plain engine does. Both
read the same table of random numbers, one generator for the batch, so the samples do not depend on
the engine but for rounding. They are returned in tables: objects of Python for thousands of samples
would take longer than to draw them.
Tested against: log-probabilities of the whole target computed at once; the enumerated distribution
of a small model; greedy search; engine against engine, while weights change.
"""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headwise.decoding.engines.plain import run_plainly
from headwise.decoding.engines.recorded import StaticStepper, play_to_end
from headwise.decoding.engines.recorded_samples import record_samples
from headwise.decoding.generator import NO_WATCHER
from headwise.decoding.results import PathTables, SearchResult
from headwise.decoding.rules.constraints import SentenceRules
from headwise.decoding.search.paths import PathSearch
from headwise.decoding.search.row_draws import GREEDY, draw_or_take_best
from headwise.decoding.search.sampling import SamplingSettings
from headwise.decoding.stepper import Stepper, capabilities_of
from headwise.randomness import numpy_generator
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
) -> PathTables:
    """The greedy output and then `count` samples of each source, which must not be empty."""
    settings = SamplingSettings(num_samples=count + 1, temperature=temperature, seed=seed)
    uniform = numpy_generator(seed, "samples").random(
        (max(limits), len(sources), count + 1), dtype=np.float32
    )
    uniform[:, :, 0] = GREEDY
    prefixes = [()] * len(sources) if prefixes is None else prefixes
    if capabilities_of(stepper).has_static_buffers:
        return _draw_recorded(
            cast("StaticStepper", stepper), sources, settings, uniform, limits, prefixes
        )
    return _draw_plainly(stepper, sources, settings, uniform, limits, prefixes)


@torch.no_grad()
def _draw_recorded(
    stepper: StaticStepper,
    sources: Sequence[Sequence[int]],
    settings: SamplingSettings,
    uniform: np.ndarray,
    limits: Sequence[int],
    prefixes: Sequence[Sequence[int]],
) -> PathTables:
    buffers = stepper.fill_buffers(sources, width=settings.num_hypotheses, max_length=max(limits))
    search = record_samples(settings, buffers, renormalizes=True)
    search.give(uniform, prefixes)
    return play_to_end(search, limits).tables(limits)


def _draw_plainly(
    stepper: Stepper[Any],
    sources: Sequence[Sequence[int]],
    settings: SamplingSettings,
    uniform: np.ndarray,
    limits: Sequence[int],
    prefixes: Sequence[Sequence[int]],
) -> PathTables:
    numbers = torch.from_numpy(uniform).to(stepper.device)

    def choose(scores: Tensor, step: int, sentences: Tensor) -> Tensor:
        here = numbers[step, sentences].flatten()
        return draw_or_take_best(scores, here, settings.temperature)

    rules = [SentenceRules(tuple(one)) for one in prefixes]
    search = _Drawing(settings, rules, choose, limits=limits, device=stepper.device)
    run_plainly(without_special(stepper), sources, search, NO_WATCHER)
    return search.tables()


class _Drawing(PathSearch):
    """Its tables are read, and no hypotheses are made."""

    def finish(self) -> list[SearchResult]:
        return []


def without_special(stepper: Stepper[Any]) -> Stepper[Any]:
    """A stepper that never writes padding or the beginning of a sentence."""
    return _WithoutSpecial(stepper)


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
