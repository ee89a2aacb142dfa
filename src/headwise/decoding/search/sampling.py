"""Sampling: draw each token from the model's distribution, after a temperature and cuts.

    p'(w) ∝ p(w)^(1 / temperature)     over the top_k most probable tokens, and of these the fewest
                                       whose p' sums to top_p

Top-k is Fan et al. 2018, top-p (nucleus) Holtzman et al. 2020. A token is drawn by inverting the
cumulative distribution at a uniform number (without cuts: row_draws.py), which is a function of
(seed, number of the sentence, step, sample). A sentence therefore gets the same output whatever
else is in its batch, up to the rounding of the model's own numbers there. Log-probabilities in the
result are the model's own, before temperature and cuts.
Tested by laws (temperature near 0 is greedy, top_k = 1 is greedy, cuts are kept) and by
frequencies.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal, Self

import numpy as np
import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor

from headwise.decoding.request_option import RequestOption
from headwise.decoding.search.paths import Choose
from headwise.decoding.search.remembering import RememberingSettings
from headwise.decoding.search.row_draws import draw_by_blocks
from headwise.randomness import numpy_generator


class SamplingSettings(RememberingSettings):
    output_forms: ClassVar[tuple[str, ...]] = ("steps",)
    summary: ClassVar[str] = "Tokens drawn at random; the same seed draws the same."
    request_options: ClassVar[Mapping[str, RequestOption]] = {
        "temperature": RequestOption(1.0, low=0.01, high=10),
        "top_k": RequestOption(0, low=0, high=1_000),
        "top_p": RequestOption(1.0, low=0.01, high=1),
        "seed": RequestOption(1, low=0, high=2**31 - 1),
    }
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

    @property
    def num_hypotheses(self) -> int:
        return self.num_samples

    @property
    def has_no_cuts(self) -> bool:
        """Whether every token may be drawn."""
        return self.top_k == 0 and self.top_p == 1

    def with_num_results(self, count: int, *, may_widen: bool) -> Self | None:
        return self.model_copy(update={"num_samples": count})


def make_sampler(
    settings: SamplingSettings, numbers: Sequence[int], *, longest: int, device: torch.device
) -> Choose:
    """Draws the token of each row; `numbers` name the sentences to the random generator."""
    uniform = torch.from_numpy(draw_all(settings, numbers, num_steps=longest)).to(device)

    def choose(scores: Tensor, step: int, sentences: Tensor) -> Tensor:
        return draw_tokens(scores, uniform[step, sentences].reshape(-1), settings)

    return choose


def draw_all(settings: SamplingSettings, numbers: Sequence[int], *, num_steps: int) -> np.ndarray:
    """The uniform numbers of a batch, [step, sentence, sample]."""
    return np.stack([draw_uniform(settings, one, num_steps=num_steps) for one in numbers], axis=1)


def draw_uniform(settings: SamplingSettings, number: int, *, num_steps: int) -> np.ndarray:
    """Numbers in [0, 1), [step, sample]; the first ones do not depend on how many follow."""
    return numpy_generator(settings.seed, "sampling", number).random(
        (num_steps, settings.num_samples), dtype=np.float32
    )


NUCLEUS = 256
"""Tokens looked at first for top_p; a row whose nucleus is larger is sorted whole."""


def draw_tokens(
    scores: Float[Tensor, "row vocab"], uniform: Float[Tensor, "row"], settings: SamplingSettings
) -> Int[Tensor, "row"]:
    """The token at which each row's cumulative probability passes its uniform number."""
    if settings.has_no_cuts:
        return draw_by_blocks(scores, uniform, settings.temperature)
    order: Tensor | None = None
    if 0 < settings.top_k < scores.shape[-1]:
        scores, order = scores.topk(settings.top_k, dim=-1)
    # The greatest score is subtracted first, so that a tiny temperature does not overflow.
    probabilities = (
        (scores - scores.amax(-1, keepdim=True)).double() / settings.temperature
    ).softmax(-1)
    if settings.top_p == 1:
        choice = _invert(probabilities, uniform)
    else:
        choice = _draw_from_nucleus(probabilities, uniform, top_p=settings.top_p)
    return choice if order is None else order.gather(1, choice[:, None])[:, 0]


def _draw_from_nucleus(probabilities: Tensor, uniform: Tensor, *, top_p: float) -> Tensor:
    """Look at the few best tokens first: sorting a whole vocabulary is slow and seldom needed."""
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
    """The index at which the cumulative probability of each row passes `uniform` of its sum."""
    cumulative = probabilities.cumsum(-1)
    threshold = uniform.double()[:, None] * cumulative[:, -1:]
    # `right` skips tokens of probability 0, also when the number drawn is 0 itself.
    choice = torch.searchsorted(cumulative, threshold, right=True)[:, 0]
    # Rounding may carry the threshold to the end: then the last token of any probability is drawn.
    last = probabilities.shape[-1] - 1 - (probabilities > 0).flip(-1).int().argmax(-1)
    return torch.minimum(choice, last)
