"""`GET /v1/models`: the models of this server."""

from fastapi import APIRouter

from headwise.explorer.data.language_model_trace import attends
from headwise.serving.schemas.base import REFUSALS
from headwise.serving.schemas.models import ModelReply, ModelsReply
from headwise.serving.state import State

router = APIRouter(tags=["models"], responses=REFUSALS)


@router.get("/v1/models")
async def list_models(state: State) -> ModelsReply:
    """Names, kinds, and languages where a model has them."""
    found = []
    for model in state.models.values():
        source, target = model.languages or (model.language, None)
        architecture = None
        if model.kind == "translator":
            architecture = model.value.recipe.model.kind
        elif model.kind == "language_model" and attends(model.value):
            architecture = "decoder_only"
        found.append(
            ModelReply(
                name=model.name,
                kind=model.kind,
                source=source,
                target=target,
                architecture=architecture,
            )
        )
    return ModelsReply(models=found, runs=state.settings.runs is not None)
