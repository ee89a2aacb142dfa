"""A learned mixture of the layers of a pre-trained model (ELMo).

    x = γ · Σ_j softmax(s)_j h_j                h_0: the word vectors, h_1 … h_L: the layers

Lower layers of a language model represent endings and word classes, higher ones word senses (Peters
et al. 2018), so each task learns its own weights s. s begins at 0, an even mixture, and γ at 1.
Tested against: one layer alone when its s is far above the others; the sum written out.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from headwise.initialization import InitialWeights, ones, zeros


class LayerMixture(nn.Module):
    def __init__(self, num_layers: int) -> None:
        super().__init__()
        self.layer_scores = nn.Parameter(torch.zeros(num_layers))
        self.gain = nn.Parameter(torch.ones(()))

    def initial_weights(self) -> InitialWeights:
        return [(self.layer_scores, zeros), (self.gain, ones)]

    @property
    def weights(self) -> Float[Tensor, " layer"]:
        """The weight of each layer; they sum to 1."""
        return self.layer_scores.softmax(0)

    def forward(self, layers: Sequence[Float[Tensor, "*place dim"]]) -> Float[Tensor, "*place dim"]:
        assert len(layers) == len(self.layer_scores), "one score a layer"
        mixed = sum(
            weight * layer for weight, layer in zip(self.weights.unbind(), layers, strict=True)
        )
        return self.gain * mixed
