"""What a translation asks of a model, whatever is inside.

    hidden = model(source, target so far)            states that predict each target token, for rows of packed pairs
    logits = model.output(hidden)                    the loss does this itself, piece by piece, from output.weight
    maps   = model.attention_maps(source, target)    where it looked, for pictures and alignments; empty without attention

The third thing, writing one token at a time, is a stepper around the model (`make_stepper` in steppers.py). It is a class and not a
Protocol because training, saving and compiling need all of torch's module as well, and Python has no type for "both".
"""

from abc import abstractmethod
from collections.abc import Mapping

from jaxtyping import Float, Int
from torch import Tensor, nn


class TranslationModel(nn.Module):
    """An encoder and a decoder of any kind."""

    output: nn.Linear

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
        """Hidden states that predict each target token from the ones before it (teacher forcing)."""

    @abstractmethod
    def attention_maps(
        self, source: Int[Tensor, "row source"], target_input: Int[Tensor, "row target"]
    ) -> Mapping[str, Float[Tensor, "row head query key"]]:
        """By a name for people (`decoder.0.cross`): rows are one pair each, without filling."""

    def logits(self, hidden: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch vocab"]:
        return self.output(hidden)
