"""`GET /v1/models`: the models of this server, and how each can generate."""

from fastapi import APIRouter

from headwise.decoding.choices import decoding_kinds
from headwise.decoding.generation_settings import GenerationSettings
from headwise.decoding.request_option import RequestOption
from headwise.errors import UsageError
from headwise.explorer.data.language_model_trace import attends
from headwise.explorer.data.two_wordings import pocket_wordings
from headwise.models.parallel.choices import output_form
from headwise.serving.schemas.base import REFUSALS
from headwise.serving.schemas.models import (
    DecodingReply,
    MemoryFacts,
    ModelReply,
    ModelsReply,
    OptionReply,
)
from headwise.serving.state import State
from headwise.serving.work.loaded_models import LoadedModel
from headwise.tasks.translation.translator import Translator

router = APIRouter(tags=["models"], responses=REFUSALS)


@router.get("/v1/models")
async def list_models(state: State) -> ModelsReply:
    """Names, kinds, and languages where a model has them."""
    return ModelsReply(
        models=[describe(model) for model in state.models.values()],
        runs=state.settings.runs is not None,
    )


def describe(model: LoadedModel) -> ModelReply:
    source, target = model.languages or (model.language, None)
    facts = ModelReply(name=model.name, kind=model.kind, source=source, target=target)
    if isinstance(model.value, Translator):
        return facts.model_copy(
            update={
                "architecture": model.value.recipe.model.kind,
                "output_form": output_form(model.value.recipe.model),
                "decodings": decodings_of(model.value),
                "pocket_wordings": pocket_wordings(model.value.recipe),
                "memory": _memory_of(model),
            }
        )
    if model.kind == "language_model" and attends(model.value):
        return facts.model_copy(update={"architecture": "decoder_only"})
    return facts


def _memory_of(model: LoadedModel) -> MemoryFacts | None:
    if model.memory is None:
        return None
    memory = model.value.asked_models.memory(model.memory).memory
    header, mixing = memory.store.header, memory.mixing
    return MemoryFacts(
        entries=header.num_entries,
        lines=header.num_lines,
        neighbours=mixing.neighbours,
        temperature=mixing.temperature,
        weight=mixing.weight if isinstance(mixing.weight, float) else None,
        tuned=header.tuning is not None,
    )


def decodings_of(translator: Translator) -> list[DecodingReply]:
    """The kinds that requests may name for a model, its own first.

    A kind that lacks something which only a recipe gives, such as a judge, is left out.
    """
    own = translator.recipe.decoding
    form = output_form(translator.recipe.model)
    kinds: list[GenerationSettings] = [own]
    for kind in decoding_kinds():
        if form in kind.output_forms and kind is not type(own):
            settings = kind()
            try:
                settings.check_complete()
            except UsageError:
                continue
            kinds.append(settings)
    return [_decoding(settings, form) for settings in kinds]


def _decoding(settings: GenerationSettings, form: str) -> DecodingReply:
    return DecodingReply(
        kind=type(settings).model_fields["kind"].default,
        records=settings.records_passes or settings.keeps_record,
        options=[
            _option(name, getattr(settings, name), option)
            for name, option in type(settings).request_options.items()
            if not option.output_forms or form in option.output_forms
        ],
    )


def _option(name: str, value: object, option: RequestOption) -> OptionReply:
    """`value` is that of the settings; where it is no number, a request has one of its own."""
    number = value if isinstance(value, int | float) else option.default
    return OptionReply(
        name=name,
        value=min(max(number, option.low), option.high),
        low=option.low,
        high=option.high,
        is_whole=isinstance(option.default, int),
    )
