"""A linear function of the decoder's state that predicts the reward of the translation begun.

    b_t = w · h_t + c        fitted to the reward by least squares, beside the model

REINFORCE compares a reward with it (`training.objective.baseline=linear`), token by token. The
gradient of its loss ends at h_t: it shapes no weight of the model. w and c begin at zero.

Ranzato et al. 2016, *Sequence Level Training with Recurrent Neural Networks*. Tested: its gradient
ends at the state; it learns a reward that depends on the source.
"""

from jaxtyping import Float
from torch import Tensor, nn

from headwise.initialization import InitialWeights, zeros


class RewardBaseline(nn.Module):
    """The regression."""

    def __init__(self, *, dim: int) -> None:
        super().__init__()
        self.linear = nn.Linear(dim, 1)

    def initial_weights(self) -> InitialWeights:
        yield self.linear.weight, zeros
        assert self.linear.bias is not None
        yield self.linear.bias, zeros

    def forward(self, state: Float[Tensor, "*row dim"]) -> Float[Tensor, "*row"]:
        """The prediction at each state."""
        return self.linear(state.detach())[..., 0].float()
