"""The stepper of a model in training, whose weights change between two searches.

    with stepper.at_present() as now:
        …                                      a search over `now`, with the weights of this moment

On a GPU a step is recorded as a CUDA graph, which reads weights where they lie. A copy of the model
is kept, in the dtype of autocast if that is on, and before each search the weights of the moment
are written into it. So the recorded steps stay valid, whatever the optimiser, a moving average or a
loaded checkpoint does with the model's own tensors; nothing is converted inside a step; and neither
evaluation mode nor autocast's cache touches the model in training. The copy costs its memory, and
an update the time to write it (a model of 60 million weights: a few tenths of a millisecond).
Batches of all sizes use the same memory for their caches, which is that of the largest.

Models and machines without static buffers step with the model itself, as it is.

Tested: samples are those of a new stepper, update after update.
"""

import contextlib
import copy
from collections.abc import Iterator

import torch
from torch import Tensor

from headwise.models.encoder_decoder import EncoderDecoder
from headwise.models.static_buffers import CacheMemory
from headwise.models.static_step import StaticStep
from headwise.models.steppers import AnyStepper, make_stepper
from headwise.models.transformer_stepper import TransformerStepper
from headwise.models.translation_model import TranslationModel


class TrainingStepper:
    def __init__(self, model: TranslationModel, *, static: bool | None = None) -> None:
        """`static`: whether to step in static buffers; by default on a GPU, if the model can."""
        self.model = model
        self._static = static
        self._copies: dict[torch.dtype, TransformerStepper] = {}

    @contextlib.contextmanager
    def at_present(self) -> Iterator[AnyStepper]:
        """A stepper with the weights that the model has now; the model itself is in training mode
        afterwards."""
        device = self.model.output.weight.device
        steps_in_copy = device.type == "cuda" if self._static is None else self._static
        if not (
            steps_in_copy
            and isinstance(self.model, EncoderDecoder)
            and self.model.is_causal
            and StaticStep.supports(self.model)
        ):
            yield self._step_itself()
            self.model.train()
            # What autocast has converted without a gradient must not be used by a pass with one.
            torch.clear_autocast_cache()
            return
        dtype = self.model.output.weight.dtype
        if torch.is_autocast_enabled(device.type):
            dtype = torch.get_autocast_dtype(device.type)
        stepper = self._recall(self.model, dtype)
        write_weights(self.model, stepper.model)
        with torch.autocast(device.type, enabled=False):
            yield stepper

    def _step_itself(self) -> AnyStepper:
        if isinstance(self.model, EncoderDecoder) and self.model.is_causal:
            return TransformerStepper(self.model, static=False)
        return make_stepper(self.model)

    def _recall(self, model: EncoderDecoder, dtype: torch.dtype) -> TransformerStepper:
        if dtype not in self._copies:
            self._copies[dtype] = TransformerStepper(
                copy_without_gradients(model).to(dtype), static=True, memory=CacheMemory()
            )
        return self._copies[dtype]


def copy_without_gradients(model: EncoderDecoder) -> EncoderDecoder:
    """A model of its own, without the gradients that this one may hold at the moment."""
    gradients = {id(one.grad): None for one in model.parameters() if one.grad is not None}
    copied = copy.deepcopy(model, gradients)
    return copied.requires_grad_(requires_grad=False)


@torch.no_grad()
def write_weights(source: EncoderDecoder, target: EncoderDecoder) -> None:
    """The weights and statistics of `source`, converted to the dtypes of `target`."""
    for whole, own in (
        (source.parameters(), target.parameters()),
        (source.buffers(), target.buffers()),
    ):
        # A table that grows with the sequences is no weight: both have grown their own.
        pairs = [(a, b) for a, b in zip(whole, own, strict=True) if a.shape == b.shape]
        theirs: list[Tensor] = [one.detach() for one, _ in pairs]
        if pairs:
            torch._foreach_copy_([one for _, one in pairs], theirs)
