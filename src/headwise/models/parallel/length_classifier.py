"""Predicts how many tokens a target has, from the mean of the encoder's states.

    p(T | x) = softmax(W · mean_s h_s + b)

A class is a length, or (`relative`) the difference of target and source length, which differs less
from sentence to sentence. Lengths that have no class belong to the nearest one. Both lengths count
the end of the sentence. Gradients reach the encoder through the mean.

Lee et al. 2018, *Deterministic Non-Autoregressive Neural Sequence Modeling by Iterative
Refinement*; Ghazvininejad et al. 2019. Tested against: a hand-made distribution, and packed rows =
sentences one by one.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from headwise.initialization import InitialWeights, initial_linear, normal_by_width
from headwise.models.labeller import mean_of_segments
from headwise.models.parallel.segment_spans import lengths_beside

IGNORED = -100


class LengthClassifier(nn.Module):
    def __init__(self, *, dim: int, num_classes: int, relative: bool) -> None:
        super().__init__()
        self.output = nn.Linear(dim, num_classes)
        self.num_classes = num_classes
        self.relative = relative

    def initial_weights(self) -> InitialWeights:
        return initial_linear(self.output, normal_by_width)

    def forward(
        self, memory: Float[Tensor, "row source dim"], segment: Int[Tensor, "row source"]
    ) -> Float[Tensor, "row source class"]:
        """Logits of the classes, repeated at every token of a source sentence."""
        return self.output(mean_of_segments(memory, segment))

    def classes(
        self, target_length: Int[Tensor, "*any"], source_length: Int[Tensor, "*any"]
    ) -> Int[Tensor, "*any"]:
        """The class of each target length."""
        count = self.num_classes
        found = target_length - source_length + count // 2 if self.relative else target_length - 1
        return found.clamp(0, count - 1)

    def loss(
        self,
        memory: Float[Tensor, "row source dim"],
        *,
        source_segment: Int[Tensor, "row source"],
        source_position: Int[Tensor, "row source"],
        target_segment: Int[Tensor, "row target"],
    ) -> tuple[Float[Tensor, ""], Int[Tensor, ""]]:
        """The negative log-likelihood of the lengths, summed, and the number of sentences."""
        is_first = (source_segment > 0) & (source_position == 0)
        wanted = self.classes(
            lengths_beside(source_segment, target_segment),
            lengths_beside(source_segment, source_segment),
        )
        logits = self(memory, source_segment).float()
        loss = F.cross_entropy(
            logits.flatten(0, 1),
            torch.where(is_first, wanted, IGNORED).flatten(),
            ignore_index=IGNORED,
            reduction="sum",
        )
        return loss, is_first.sum()

    def log_probabilities(
        self,
        memory: Float[Tensor, "sentence source dim"],
        segment: Int[Tensor, "sentence source"],
        *,
        longest: int,
    ) -> Float[Tensor, "sentence length"]:
        """log p(T = 1 … longest) of one sentence per row; -inf for lengths without a class."""
        scores = self(memory, segment)[:, 0].float().log_softmax(-1)
        source_length = (segment > 0).sum(1, keepdim=True)
        lengths = torch.arange(1, longest + 1, device=segment.device).expand(len(segment), -1)
        count = self.num_classes
        found = lengths - source_length + count // 2 if self.relative else lengths - 1
        values = scores.gather(1, found.clamp(0, count - 1))
        return values.masked_fill((found < 0) | (found >= count), float("-inf"))
