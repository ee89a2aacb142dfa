"""`TranslationModel`: the base class of all translation models.

    hidden = model(source, target so far)         states that predict each target token
    logits = model.output(hidden)                 the loss computes this itself, piece by piece
    maps   = model.attention_maps(source, target) for alignments and pictures; may be empty

Generation also needs a stepper or another generator (steppers.py). It is a class and not a Protocol
because training, saving and compiling need all of `nn.Module` as well, and Python has no type for
"both".
"""

from abc import abstractmethod
from collections.abc import Mapping

from jaxtyping import Float, Int
from torch import Tensor, nn

from headwise.models.training_step import TrainingStep


class TranslationModel(nn.Module):
    """An encoder and a decoder of any kind."""

    output: nn.Linear

    def __init__(self) -> None:
        super().__init__()
        self.training_step = TrainingStep()

    @abstractmethod
    def forward(
        self,
        source: Int[Tensor, "row source"],
        target_input: Int[Tensor, "row target"],
        *,
        source_segment: Int[Tensor, "row source"],
        target_segment: Int[Tensor, "row target"],
        source_position: Int[Tensor, "row source"],
        target_position: Int[Tensor, "row target"],
    ) -> Float[Tensor, "row target dim"]:
        """Hidden states that predict each target token (teacher forcing)."""

    @abstractmethod
    def attention_maps(
        self, source: Int[Tensor, "row source"], target_input: Int[Tensor, "row target"]
    ) -> Mapping[str, Float[Tensor, "row head query key"]]:
        """Weights by name (`decoder.0.cross`); rows are one pair each, without padding."""

    def logits(self, hidden: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch vocab"]:
        return self.output(hidden)
