"""Chooses which layers of the encoder each layer of the decoder sees (layer-wise multi-view
decoding).

    top              every layer of the decoder sees the last layer of the encoder, as usual
    same_level       layer i also sees layer i of the encoder: fine at the bottom, coarse at the top
    coarse_to_fine   the other way round: the first layer sees the last one, the last one the first
    soft             layer i also sees a mean of all layers with learned weights, softmax(aᵢ)

A decoder that sees the last layer alone trains the lower layers of the encoder only through all
layers above them. A second view gives them a short way. The last layer stays in view, since without
it the upper layers could be passed by. Both are attended to with the same weights
(attention/viewed_attention.py). If the encoder has E layers and the decoder D, `same_level` takes
layer ⌈i · E / D⌉. Each view goes through the encoder's final norm.

Liu et al. 2020, Layer-Wise Multi-View Decoding. Tested against: each mapping by hand, the usual
Transformer where every view is the last layer, gradients along the second way.
"""

from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from headwise.initialization import InitialWeights, zeros
from headwise.settings.part_names import PartNames

Views = Literal["top", "same_level", "coarse_to_fine", "soft"]


def find_level(views: Views, layer: int, *, num_encoder: int, num_decoder: int) -> int:
    """The layer of the encoder that layer `layer` of the decoder sees beside the last one; both are
    counted from 1."""
    assert views in ("same_level", "coarse_to_fine"), "the others are no choice of one layer"
    up = layer if views == "same_level" else num_decoder + 1 - layer
    return -(-up * num_encoder // num_decoder)


class SourceViews(nn.Module):
    """Puts the views of all decoder layers side by side, after the last layer of the encoder."""

    part_names: ClassVar[PartNames] = {"": ("views of the source", "源句的视图")}

    def __init__(self, views: Views, *, num_encoder: int, num_decoder: int) -> None:
        super().__init__()
        self.levels: tuple[int, ...] = ()
        self.mixture: nn.Parameter | None = None
        if views == "soft":
            self.mixture = nn.Parameter(torch.zeros(num_decoder, num_encoder))
        else:
            self.levels = tuple(
                find_level(views, layer, num_encoder=num_encoder, num_decoder=num_decoder)
                for layer in range(1, num_decoder + 1)
            )

    def initial_weights(self) -> InitialWeights:
        if self.mixture is not None:
            yield self.mixture, zeros

    def forward(
        self, states: Sequence[Float[Tensor, "row source dim"]]
    ) -> Float[Tensor, "row source views_dim"]:
        """`states` of every layer of the encoder, from the first to the last."""
        if self.mixture is None:
            views = [states[level - 1] for level in self.levels]
        else:
            weights = self.mixture.float().softmax(-1).to(states[-1].dtype)
            mixed = torch.einsum("vl,lrsd->rsvd", weights, torch.stack(list(states)))
            views = [mixed.flatten(2)]
        return torch.cat([states[-1], *views], dim=-1)
