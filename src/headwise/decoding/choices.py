"""The kinds of search that a recipe may name under `decoding: {kind: …}`.

    decoding: {kind: greedy}
    decoding: {kind: drafted, drafter: {kind: jacobi}, block: 4}
    decoding: {kind: beam, size: 5, length_penalty: {kind: wu, alpha: 0.6}, max_length: {extra: 10}}
    decoding: {kind: sampling, temperature: 0.8, top_p: 0.9, seed: 1}

A new kind is one file with its settings and its `Generator`, one name in the union and one case in
the match. The settings declare what else may be asked of the kind: a search tree, several results,
options of a request to the server. The generator declares the rules that it follows. A case may
also depend on the model: a model that writes all tokens at once has no stepper, and its generator
serves all kinds of settings. Phrases in the settings are text; `rules/phrases.py` prepares them for
a tokenizer.
Tested: every kind through `decode`, empty sources, phrases for all sentences and for each; and a
new kind that writes all words at once through everything that generates.
"""

from typing import Annotated, Any, get_args

from pydantic import Field

from headwise.decoding.drafting.generator import DraftedSearch, DraftedSettings
from headwise.decoding.generation_settings import GenerationSettings
from headwise.decoding.generator import Generator
from headwise.decoding.search.beam import BeamSettings
from headwise.decoding.search.greedy import GreedySettings
from headwise.decoding.search.sampling import SamplingSettings
from headwise.decoding.stepper_search import StepperSearch, decode
from headwise.errors import UsageError

__all__ = [
    "BeamSettings",
    "DecodingSettings",
    "DraftedSettings",
    "GreedySettings",
    "SamplingSettings",
    "decode",
    "decoding_kinds",
    "make_generator",
]

DecodingSettings = Annotated[
    GreedySettings | BeamSettings | SamplingSettings | DraftedSettings, Field(discriminator="kind")
]


def decoding_kinds() -> tuple[type[GenerationSettings], ...]:
    """The settings of every kind, in the order of the union."""
    union, _ = get_args(DecodingSettings)
    kinds: tuple[type[GenerationSettings], ...] = get_args(union)
    return kinds


def make_generator(settings: GenerationSettings, model: Any) -> Generator:
    """The generator of these settings; `model` is what a model offers (`models/steppers.py`)."""
    match settings:
        case GreedySettings() | BeamSettings() | SamplingSettings():
            return StepperSearch(model)
        case DraftedSettings():
            return DraftedSearch(model)
        case _:
            raise UsageError(
                f"the decoding given is a {type(settings).__name__}; make one with "
                "translator.settings(['kind=beam', 'size=8'])",
                f"给出的 decoding 是 {type(settings).__name__}；"
                "请用 translator.settings(['kind=beam', 'size=8']) 生成",
            )
