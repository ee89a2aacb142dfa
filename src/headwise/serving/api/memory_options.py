"""Adds the memory of a model to the settings of a request's search.

A model that is served with a memory (`--memory STORE`) asks it in every translation. A request may
leave it out or give λ, how much it counts; store, number of neighbours and temperature are the
operator's. Whatever a request asks for, the store is opened once (`work/memories.py`). Tested: =
`headwise translate --memory`, without a memory, and searches that cannot ask one.
"""

from typing import cast

from headwise.decoding.choices import DecodingSettings
from headwise.decoding.generation_settings import GenerationSettings
from headwise.neighbours.settings import MemorySettings
from headwise.serving.http.errors import Refusal
from headwise.serving.schemas.translation import MemoryOptions
from headwise.serving.work.loaded_models import LoadedModel


def add_memory(
    settings: DecodingSettings, model: LoadedModel, options: MemoryOptions | None
) -> DecodingSettings:
    """The settings with the model's memory, unless the request leaves it out."""
    if options is not None and options.off:
        if options.weight is not None:
            raise Refusal(
                422,
                "not_possible",
                en="memory.off and memory.weight contradict each other; give one of the two",
                zh="memory.off 与 memory.weight 相互矛盾；请只给其一",
            )
        return settings
    if model.memory is None and options is None:
        return settings
    weight = None if options is None else options.weight
    asked = asked_memory(model, weight)
    general: GenerationSettings = settings
    if "memory" not in type(general).model_fields:
        kind = settings.kind
        raise Refusal(
            422,
            "not_possible",
            en=(
                f"{kind} decoding takes no memory, and {model.name} is served with one; ask for "
                'greedy, beam or sampling, or leave the memory out: memory {"off": true}'
            ),
            zh=(
                f"{kind} 解码不支持记忆，而 {model.name} 带有记忆；请用 greedy、beam 或 "
                'sampling，或不用记忆：memory {"off": true}'
            ),
        )
    return cast("DecodingSettings", general.model_copy(update={"memory": asked}))


def asked_memory(model: LoadedModel, weight: float | None) -> MemorySettings:
    """The memory of a model, with λ as a request gives it; refused where there is none."""
    if model.memory is None:
        raise Refusal(
            422,
            "no_memory",
            en=(
                f"{model.name} is served without a memory; start the server with --memory STORE, "
                "or leave the memory out"
            ),
            zh=f"{model.name} 没有记忆；请以 --memory STORE 启动服务器，或不要给出 memory",
        )
    return model.memory if weight is None else model.memory.model_copy(update={"weight": weight})
