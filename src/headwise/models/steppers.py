"""Prepares a trained model for decoding: builds its stepper, which computes the probabilities of
the next token from the tokens before it and keeps caches between two steps.

Greedy search, beam search and sampling (decoding/search/) see a model only through its stepper.
"""

from headwise.models.encoder_decoder import EncoderDecoder
from headwise.models.parallel.inference import ParallelInference
from headwise.models.parallel.recorded_inference import RecordedInference
from headwise.models.parallel.translator import ParallelTranslator
from headwise.models.recurrent.stepper import RecurrentStepper
from headwise.models.recurrent.translator import RecurrentTranslator
from headwise.models.transformer_stepper import TransformerStepper
from headwise.models.translation_model import TranslationModel

AnyStepper = TransformerStepper | RecurrentStepper


def make_stepper(model: TranslationModel, *, attending: bool = False) -> AnyStepper:
    """`attending`: also keep the attention of each step, for the coverage penalty."""
    match model:
        case EncoderDecoder(is_causal=True):
            return TransformerStepper(model, attending=attending)
        case RecurrentTranslator():
            return RecurrentStepper(model, attending=attending)
        case _:
            raise AssertionError(f"no stepper for {type(model).__name__}")


def offer_of(model: TranslationModel) -> "ModelSteppers | ParallelInference":
    """What searches may ask of a model: steps from left to right, or all positions at once."""
    if isinstance(model, ParallelTranslator):
        on_gpu = model.output.weight.is_cuda
        return RecordedInference(model) if on_gpu else ParallelInference(model)
    return ModelSteppers(model)


class ModelSteppers:
    """A model's steppers, made when first needed and kept: on a GPU they keep recorded steps."""

    output_form = "steps"
    """What it gives to a search (decoding/choices.py)."""

    def __init__(self, model: TranslationModel) -> None:
        self.model = model
        self._steppers: dict[bool, AnyStepper] = {}

    def stepper(self, *, attending: bool) -> AnyStepper:
        if attending not in self._steppers:
            self._steppers[attending] = make_stepper(self.model, attending=attending)
        return self._steppers[attending]
