"""Fertility: how many target tokens each source token is copied to, before a parallel decoder runs.

The encoder's state of each source token gives a distribution over 0 … L. The decoder's inputs are
the source tokens, each repeated as often as its fertility says; their sum is the target's length.

    source        x₁ x₂ x₃ </s>             p(f_i | x) = softmax(W h_i + b)
    fertility      2  0  1   1
    decoder       x₁ x₁ x₃ </s>

A whole sequence of fertilities is chosen in one of three ways: the most likely of each token, the
rounded expectation of each, or a sample (noisy parallel decoding decodes several and keeps the best
translation, `decoding/parallel/noisy.py`). A sentence never has fertility 0 in all: the token that
is most likely to have a fertility above 0 then gets 1.

In a search the end of the sentence has fertility 1, and the words are given fertilities whose sum
keeps to the limits of the search (`limit_sums`): what is too much is cut off at the end, what is
missing is added to the last word.

Copies are laid out row by row, from left to right, so packed rows are as easy as one sentence per
row: if the fertilities of each source are those of its target, source and target segments stay
side by side.

Gu et al. 2018, *Non-Autoregressive Neural Machine Translation* (L = 49).
Tested against: repeat_interleave, one sentence at a time; the three choices in hand cases; samples
against their distribution; sums keep to their limits and change nothing else.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from headwise.errors import UsageError
from headwise.initialization import InitialWeights, initial_linear, normal_by_width

MOST = 49


class FertilityClassifier(nn.Module):
    """One linear layer on the encoder's output: a logit for each fertility 0 … `most`."""

    def __init__(self, dim: int, *, most: int = MOST) -> None:
        super().__init__()
        self.output = nn.Linear(dim, most + 1)

    def initial_weights(self) -> InitialWeights:
        return initial_linear(self.output, normal_by_width)

    def forward(
        self, memory: Float[Tensor, "row source dim"]
    ) -> Float[Tensor, "row source fertility"]:
        return self.output(memory)


def most_likely_fertilities(
    logits: Float[Tensor, "row source fertility"], segment: Int[Tensor, "row source"]
) -> Int[Tensor, "row source"]:
    """The argmax of each token; 0 in padding (segment 0)."""
    return _at_least_one(logits.argmax(-1), logits, segment)


def expected_fertilities(
    logits: Float[Tensor, "row source fertility"], segment: Int[Tensor, "row source"]
) -> Int[Tensor, "row source"]:
    """The expectation of each token, rounded."""
    values = torch.arange(logits.shape[-1], device=logits.device, dtype=torch.float32)
    expectation = (logits.float().softmax(-1) * values).sum(-1)
    return _at_least_one(expectation.round().long(), logits, segment)


def sample_fertilities(
    logits: Float[Tensor, "row source fertility"],
    segment: Int[Tensor, "row source"],
    *,
    num_samples: int,
    generator: torch.Generator,
    temperature: float = 1.0,
) -> Int[Tensor, "sample row source"]:
    """Fertilities drawn for each token by itself; a low temperature approaches the argmax."""
    if temperature <= 0:
        raise UsageError(
            f"temperature {temperature} was given; sampling needs one above 0: use "
            "most_likely_fertilities for the limit 0",
            f"给出的温度为 {temperature}；采样需要大于 0 的温度：极限 0 请用 "
            "most_likely_fertilities",
        )
    probabilities = (logits.float() / temperature).softmax(-1)
    drawn = torch.multinomial(
        probabilities.flatten(0, 1), num_samples, replacement=True, generator=generator
    )
    samples = drawn.T.reshape(num_samples * segment.shape[0], segment.shape[1])
    again = (num_samples, 1)
    return _at_least_one(samples, logits.repeat(*again, 1), segment.repeat(again)).view(
        num_samples, *segment.shape
    )


def _at_least_one(fertility: Tensor, logits: Tensor, segment: Tensor) -> Tensor:
    """Fertilities with 0 in padding and a sum of at least 1 in each segment."""
    real = segment > 0
    fertility = fertility.masked_fill(~real, 0)
    rows, width = segment.shape
    sums = fertility.new_zeros(rows, width + 1).scatter_add_(1, segment, fertility)
    # log p(0): the smaller it is, the more likely the token is copied at all.
    absence = logits.float().log_softmax(-1)[..., 0].masked_fill(~real, float("inf"))
    least = absence.new_full((rows, width + 1), float("inf"))
    least = least.scatter_reduce_(1, segment, absence, "amin").gather(1, segment)
    place = torch.arange(width, device=segment.device).expand(rows, -1)
    first = place.new_full((rows, width + 1), width).scatter_reduce_(
        1, segment, place.masked_fill(absence > least, width), "amin"
    )
    chosen = real & (sums.gather(1, segment) == 0) & (first.gather(1, segment) == place)
    return torch.where(chosen, 1, fertility)


def limit_sums(
    fertility: Int[Tensor, "sentence source"],
    segment: Int[Tensor, "sentence source"],
    *,
    least: Int[Tensor, " sentence"],
    most: Int[Tensor, " sentence"],
) -> Int[Tensor, "sentence source"]:
    """Fertilities of one sentence per row whose sums are at least `least` and at most `most`."""
    ends = fertility.masked_fill(segment == 0, 0).cumsum(1).minimum(most[:, None])
    missing = (least - ends[:, -1]).clamp(min=0)
    last = (segment > 0).sum(1, keepdim=True) - 1
    limited = ends.diff(dim=1, prepend=torch.zeros_like(ends[:, :1]))
    return limited.scatter_add(1, last, missing[:, None])


@dataclass(frozen=True)
class Copies:
    """The positions of a decoder whose inputs are copied source tokens."""

    origin: Int[Tensor, "row target"]
    """The index in the row of the source token that is copied; 0 in padding."""
    segment: Int[Tensor, "row target"]
    position: Int[Tensor, "row target"]

    def copy(self, x: Float[Tensor, "row source dim"]) -> Float[Tensor, "row target dim"]:
        """The vector of each copied token; zeros in padding."""
        index = self.origin[..., None].expand(-1, -1, x.shape[-1])
        return x.gather(1, index).masked_fill(self.segment[..., None] == 0, 0)

    def copy_tokens(self, tokens: Int[Tensor, "row source"]) -> Int[Tensor, "row target"]:
        """Each copied token; padding in padding."""
        return tokens.gather(1, self.origin).masked_fill(self.segment == 0, 0)


def copy_by_fertility(
    fertility: Int[Tensor, "row source"],
    segment: Int[Tensor, "row source"],
    *,
    width: int | None = None,
) -> Copies:
    """Where each source token is copied to; what does not fit into `width` is cut off.

    Without a width it is the greatest sum of fertilities, for which a GPU has to be waited for.
    """
    ends = fertility.masked_fill(segment == 0, 0).cumsum(1)
    if width is None:
        width = int(ends[:, -1].max())
    place = torch.arange(width, device=ends.device).expand(len(ends), -1).contiguous()
    real = place < ends[:, -1:]
    origin = torch.searchsorted(ends, place, right=True).masked_fill(~real, 0)
    copied = segment.gather(1, origin).masked_fill(~real, 0)
    before = torch.cat([torch.zeros_like(copied[:, :1]), copied[:, :-1]], dim=1)
    start = torch.where(copied != before, place, 0).cummax(1).values
    return Copies(origin, copied, (place - start).masked_fill(~real, 0))
