"""A stepper for each kind of model: what searches want to hold in their hands."""

from headwise.models.continuous_decoder import FlowingDecoder
from headwise.models.encoder_decoder import EncoderDecoder
from headwise.models.recurrent.stepper import RecurrentStepper
from headwise.models.recurrent.translator import RecurrentTranslator
from headwise.models.transformer_stepper import IncrementalDecoder
from headwise.models.translation_model import TranslationModel

AnyStepper = IncrementalDecoder | RecurrentStepper


def make_stepper(model: TranslationModel, *, attending: bool = False) -> AnyStepper:
    """`attending`: also keep where each step looked, for the coverage penalty."""
    match model:
        case EncoderDecoder():
            return IncrementalDecoder(model, attending=attending)
        case RecurrentTranslator():
            return RecurrentStepper(model, attending=attending)
        case _:
            raise AssertionError(f"no stepper for {type(model).__name__}")


def flows(stepper: object) -> bool:
    """Whether sentences may enter while others are under way."""
    return isinstance(stepper, IncrementalDecoder) and stepper.flows


def make_flow(stepper: object) -> FlowingDecoder | None:
    """A flow of the same model, without any sentence yet; None where there is none."""
    if not isinstance(stepper, IncrementalDecoder) or not stepper.flows:
        return None
    return FlowingDecoder(stepper.model, source_limit=stepper.source_limit)
