"""Sampling: draw each token from the model's distribution, sharpened and cut as asked.

    p'(w) ∝ p(w)^(1 / temperature)   over the top_k most probable tokens, and of these the fewest whose p' sums to top_p

Top-k is Fan et al. 2018, top-p (nucleus) Holtzman et al. 2020. The draw is the inverse of the cumulative distribution at
a uniform number that belongs to (seed, number of the sentence, step, sample): a sentence gets the same output whatever
else is in its batch, up to the rounding of the model's own numbers there. Log-probabilities in the result are the model's own, before temperature and cuts.
Tested by laws (temperature near 0 is greedy, top_k = 1 is greedy, cuts are kept) and by frequencies.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor

from headwise.decoding.results import SearchResult, Tell
from headwise.decoding.rules.constraints import Phrases, SearchSettings
from headwise.decoding.rules.length import limit_for
from headwise.decoding.search.paths import follow_paths
from headwise.decoding.stepper import State, Stepper
from headwise.randomness import numpy_generator


class SamplingSettings(SearchSettings):
    kind: Literal["sampling"] = "sampling"
    temperature: float = Field(default=1.0, gt=0)
    """Below 1 sharpens the distribution, above 1 flattens it; near 0 is greedy search."""
    top_k: int = Field(default=0, ge=0)
    """Draw from this many most probable tokens only; 0 for all."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Draw from the fewest most probable tokens that hold this much probability together."""
    num_samples: int = Field(default=1, ge=1, le=1024)
    """Hypotheses drawn for each sentence."""
    seed: int = 1


@torch.no_grad()
def sample(
    stepper: Stepper[State],
    sources: Sequence[Sequence[int]],
    settings: SamplingSettings,
    *,
    phrases: Sequence[Phrases],
    sentence_numbers: Sequence[int],
    tell: Tell | None = None,
) -> list[SearchResult]:
    """`num_samples` drawn hypotheses for each non-empty source; `sentence_numbers` name the sentences to the generator."""
    longest = max(limit_for(settings.max_length, len(source)) for source in sources)
    uniform = torch.from_numpy(
        np.stack([draw_uniform(settings, number, num_steps=longest) for number in sentence_numbers])
    ).to(stepper.device)

    def choose(scores: Tensor, step: int, sentences: Tensor) -> Tensor:
        return draw_tokens(scores, uniform[sentences, step].reshape(-1), settings)

    paths = follow_paths(
        stepper,
        sources,
        choose,
        settings=settings,
        phrases=phrases,
        width=settings.num_samples,
        tell=tell,
    )
    return [SearchResult(tuple(hypotheses)) for hypotheses in paths]


def draw_uniform(settings: SamplingSettings, number: int, *, num_steps: int) -> np.ndarray:
    """Numbers in [0, 1) by [step, sample]; the first steps do not depend on how many follow."""
    return numpy_generator(settings.seed, "sampling", number).random(
        (num_steps, settings.num_samples), dtype=np.float32
    )


NUCLEUS = 256
"""Tokens looked at first for top_p; a row whose nucleus is larger is sorted whole."""


def draw_tokens(
    scores: Float[Tensor, "row vocab"], uniform: Float[Tensor, "row"], settings: SamplingSettings
) -> Int[Tensor, "row"]:
    """The token at which each row's cumulative probability passes its uniform number."""
    order: Tensor | None = None
    if 0 < settings.top_k < scores.shape[-1]:
        scores, order = scores.topk(settings.top_k, dim=-1)
    # The greatest score is taken off first: dividing by a tiny temperature must not overflow.
    probabilities = (
        (scores - scores.amax(-1, keepdim=True)).double() / settings.temperature
    ).softmax(-1)
    if settings.top_p == 1:
        choice = _invert(probabilities, uniform)
    else:
        choice = _draw_from_nucleus(probabilities, uniform, top_p=settings.top_p)
    return choice if order is None else order.gather(1, choice[:, None])[:, 0]


def _draw_from_nucleus(probabilities: Tensor, uniform: Tensor, *, top_p: float) -> Tensor:
    """Sorting a whole vocabulary is slow and seldom needed: the few best tokens nearly always hold top_p."""
    vocab = probabilities.shape[-1]
    best, order = probabilities.topk(min(NUCLEUS, vocab), dim=-1)
    choice = order.gather(1, _invert(_cut_tail(best, top_p), uniform)[:, None])[:, 0]
    # Decided for each row by itself, so that its draw does not depend on the other rows.
    large = torch.nonzero(best.sum(-1) < top_p)[:, 0]
    if vocab > NUCLEUS and len(large):
        best, order = probabilities[large].sort(dim=-1, descending=True, stable=True)
        choice[large] = order.gather(1, _invert(_cut_tail(best, top_p), uniform[large])[:, None])[
            :, 0
        ]
    return choice


def _cut_tail(probabilities: Tensor, top_p: float) -> Tensor:
    """Probabilities, best first, with 0 for all after those that reach top_p together."""
    before = probabilities.cumsum(-1) - probabilities
    return probabilities.masked_fill(before >= top_p, 0.0)


def _invert(probabilities: Tensor, uniform: Tensor) -> Tensor:
    """The place at which the cumulative probability of each row passes `uniform` of its sum."""
    cumulative = probabilities.cumsum(-1)
    threshold = uniform.double()[:, None] * cumulative[:, -1:]
    # `right` skips tokens of probability 0, also when the number drawn is 0 itself.
    choice = torch.searchsorted(cumulative, threshold, right=True)[:, 0]
    # Rounding may carry the threshold to the very end: then the last token that has any probability is meant.
    last = probabilities.shape[-1] - 1 - (probabilities > 0).flip(-1).int().argmax(-1)
    return torch.minimum(choice, last)
