"""The heads of the Levenshtein Transformer: which tokens go, and how many come into each gap.

    P(delete token i)          = softmax(D h_i)              2 classes: keep, delete
    P(count of the gap i, i+1) = softmax(G [h_i ; h_i+1])    256 classes: 0 … 255 placeholders
    P(word at a placeholder i) = softmax(E h_i)              E: the output layer of the model

h is the state of the decoder, which reads the whole sequence: it has no causal mask. A gap is
judged by both of its neighbours. <s> and </s> cannot be deleted: their logit for it is -∞.

Paper: Gu, Wang & Zhao 2019, "Levenshtein Transformer" (arXiv 1905.11006). Tested against: the
formulas on hand-made weights, the gradient of each neighbour, and the initial variances.
"""

from typing import ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from headwise.initialization import InitialWeights, initial_linear, normal_by_width
from headwise.settings.part_names import PartNames

MAX_INSERTIONS = 255
"""Most placeholders that one round inserts in a gap."""


class EditHeads(nn.Module):
    """Classifiers over the states of a decoder; words are predicted by the model's output layer."""

    part_names: ClassVar[PartNames] = {
        "deletion": ("deletion head", "删除头"),
        "insertion": ("insertion head", "插入头"),
    }

    def __init__(self, dim: int, *, max_insertions: int = MAX_INSERTIONS) -> None:
        super().__init__()
        self.deletion = nn.Linear(dim, 2, bias=False)
        self.insertion = nn.Linear(2 * dim, max_insertions + 1, bias=False)

    def initial_weights(self) -> InitialWeights:
        yield from initial_linear(self.deletion, normal_by_width)
        yield from initial_linear(self.insertion, normal_by_width)

    def deletion_logits(
        self,
        hidden: Float[Tensor, "row position dim"],
        may_go: Bool[Tensor, "row position"],
    ) -> Float[Tensor, "row position 2"]:
        """Keep and delete; `may_go` is false at <s>, </s> and padding, which are kept."""
        keep, delete = self.deletion(hidden).unbind(-1)
        return torch.stack([keep, delete.masked_fill(~may_go, float("-inf"))], dim=-1)

    def insertion_logits(
        self, hidden: Float[Tensor, "row position dim"]
    ) -> Float[Tensor, "row gap count"]:
        """The number of placeholders in each gap; there is one gap less than positions."""
        return self.insertion(torch.cat([hidden[:, :-1], hidden[:, 1:]], dim=-1))
