"""Computes what a trained decoder thinks at every position of given targets, and compares it along
two targets of the same source.

For each source, the decoder reads the right translation (teacher forcing) and what it wrote itself
(free running). With h and h' the states at a position t, p and p' the distributions of the next
token:

    agreement         1 if argmax p = argmax p', else 0
    total variation   ½ Σ_w |p(w) - p'(w)|         0: the same, 1: no token in common
    cosine            h · h' / (|h| |h'|)

At the first position both read `<s>` alone, so they are equal there. Later they differ where the
model has written something else than the reference. If it leaves out a word, all later positions
are shifted, and they differ even if the rest is right. So a measure by position tells how fast the
two drift apart, and not how bad that is; `wrong_prefix.py` measures that.

Lamb et al. 2016, *Professor Forcing*, compares states in this way. Tested against: hand-made
distributions; one sentence computed step by step; equality at the first position and for targets
that are equal.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from headwise.models.translation_model import TranslationModel
from headwise.text.tokenizer import BOS, EOS, PAD

ROWS = 32
"""Sentences that are computed together."""
MAX_LOGITS = 1 << 22
"""Logits that are computed at a time, for each of the two targets."""


@dataclass(frozen=True)
class DecoderAgreement:
    """Means over the sentences that reach each position; position 1 is that of the first token."""

    num_sentences: tuple[int, ...]
    agreement: tuple[float, ...]
    total_variation: tuple[float, ...]
    cosine: tuple[float, ...]

    @property
    def overall(self) -> tuple[float, float, float]:
        """The means over all positions of all sentences."""
        weights = np.array(self.num_sentences, dtype=float)
        share, distance, cosine = (
            float((np.array(values) * weights).sum() / max(weights.sum(), 1))
            for values in (self.agreement, self.total_variation, self.cosine)
        )
        return share, distance, cosine

    def as_dict(self) -> dict[str, object]:
        share, distance, cosine = self.overall
        return {
            "agreement": share,
            "total_variation": distance,
            "cosine": cosine,
            "by_position": [
                {
                    "position": position,
                    "sentences": count,
                    "agreement": one,
                    "total_variation": two,
                    "cosine": three,
                }
                for position, (count, one, two, three) in enumerate(
                    zip(
                        self.num_sentences,
                        self.agreement,
                        self.total_variation,
                        self.cosine,
                        strict=True,
                    ),
                    start=1,
                )
            ],
        }


@torch.inference_mode()
def states_along(
    model: TranslationModel, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> Float[Tensor, "sentence time dim"]:
    """Hidden states after `<s>` and after each token of the targets; padding follows."""
    device = model.output.weight.device
    source, source_segment, source_position = _pad([[*one, EOS] for one in sources], device)
    target, target_segment, target_position = _pad([[BOS, *one] for one in targets], device)
    return model(
        source,
        target,
        source_segment=source_segment,
        target_segment=target_segment,
        source_position=source_position,
        target_position=target_position,
    )


def _pad(sentences: Sequence[Sequence[int]], device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Tokens, segments and positions, one sentence per row."""
    longest = max(map(len, sentences))
    rows = [[*one, *[PAD] * (longest - len(one))] for one in sentences]
    lengths = torch.tensor([len(one) for one in sentences], device=device)[:, None]
    places = torch.arange(longest, device=device).expand(len(rows), -1)
    is_real = places < lengths
    return torch.tensor(rows, device=device), is_real.long(), places * is_real


@torch.inference_mode()
def measure_agreement(
    model: TranslationModel,
    sources: Sequence[Sequence[int]],
    references: Sequence[Sequence[int]],
    written: Sequence[Sequence[int]],
    *,
    num_positions: int,
) -> DecoderAgreement:
    """Compare the decoder along the references and along what it wrote, at the first positions that
    both have, that of the end included.
    """
    totals = np.zeros((4, num_positions))
    order = sorted(range(len(sources)), key=lambda number: -len(references[number]))
    for begin in range(0, len(order), ROWS):
        rows = order[begin : begin + ROWS]
        chosen = [[some[row] for row in rows] for some in (sources, references, written)]
        right, own = (states_along(model, chosen[0], some) for some in chosen[1:])
        lengths = [
            min(len(one), len(other), num_positions - 1) + 1
            for one, other in zip(chosen[1], chosen[2], strict=True)
        ]
        place = torch.cat([torch.arange(length) for length in lengths])
        row = torch.arange(len(rows)).repeat_interleave(torch.tensor(lengths))
        numbers = compare_states(model, right[row, place], own[row, place])
        for line, values in enumerate((np.ones(len(place)), *numbers)):
            np.add.at(totals[line], place.numpy(), values)
    used = int((totals[0] > 0).sum())
    counts = totals[0, :used]
    means = [tuple((line[:used] / counts).tolist()) for line in totals[1:]]
    return DecoderAgreement(tuple(counts.astype(int).tolist()), *means)


def compare_states(
    model: TranslationModel,
    right: Float[Tensor, "position dim"],
    own: Float[Tensor, "position dim"],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """DecoderAgreement, total variation and cosine at each position."""
    size = max(1, MAX_LOGITS // len(model.output.weight))
    agreement, distance = [], []
    for one, other in _chunks(right, own, size):
        p, q = (model.logits(states).float().softmax(-1) for states in (one, other))
        agreement.append((p.argmax(-1) == q.argmax(-1)).double().cpu())
        distance.append((p - q).abs().sum(-1).double().cpu() / 2)
    cosine = torch.cosine_similarity(right.double(), own.double(), dim=-1).cpu()
    return torch.cat(agreement).numpy(), torch.cat(distance).numpy(), cosine.numpy()


def _chunks(right: Tensor, own: Tensor, size: int) -> Iterator[tuple[Tensor, Tensor]]:
    return zip(right.split(size), own.split(size), strict=True)
