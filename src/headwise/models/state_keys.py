"""Which state of a model is the key of a memory, and how it is read while the model runs.

    feed_forward   what the last feed-forward network reads, after its norm: of a Transformer
    output         what the output layer reads: of every other network

In the kNN-LM paper the first gave the lower perplexity (Khandelwal et al. 2020, table 5): what
follows it in a Transformer is trained for the next token alone, so that contexts which only share
the most probable token are near each other. A recurrent network has no such layer.

Tested against: the layer called by hand on the state; step by step = whole sequence.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from headwise.models.decoder_only import DecoderOnly
from headwise.models.encoder_decoder import EncoderDecoder


class KeyTap:
    """Keeps what the key's layer of a model has read last."""

    def __init__(self, model: nn.Module) -> None:
        layer = _last_feed_forward(model)
        self.layer = "output" if layer is None else "feed_forward"
        self._last: Tensor | None = None
        watched: Any = model.output if layer is None else layer
        watched.register_forward_pre_hook(self._keep)

    def keys_of(self, hidden: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch key"]:
        """The keys of a forward pass that has just given these hidden states."""
        if self.layer == "output":
            return hidden
        assert self._last is not None, "the model has run"
        return self._last

    def of_step(self) -> Float[Tensor, "row key"]:
        """The keys of the rows at a stepper's last step."""
        assert self._last is not None, "the model has run"
        return self._last.flatten(0, -2)

    def _keep(self, layer: nn.Module, inputs: tuple[Any, ...]) -> None:
        if not torch.is_grad_enabled():
            self._last = inputs[0]


def _last_feed_forward(model: nn.Module) -> nn.Module | None:
    match model:
        case EncoderDecoder(decoder=layers) | DecoderOnly(blocks=layers) if len(layers):
            return layers[-1].feed_forward
        case _:
            return None


def key_width(model: nn.Module) -> int:
    """Numbers of a key."""
    output: Any = model.output
    return int(output.weight.shape[1])
