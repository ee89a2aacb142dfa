"""`POST /v1/positions`: computes any position encoding as a table and as a curve over distances."""

from fastapi import APIRouter

from headwise.attention.shapes import check_heads
from headwise.errors import UsageError
from headwise.explorer.data.position_tables import (
    build_modules,
    show_own_positions,
    show_positions,
)
from headwise.positions.choices import DEFAULT_POSITION
from headwise.serving.api.text_trace import find_attention_model
from headwise.serving.schemas.attention import MAX_DIM, PositionsBody, PositionsReply
from headwise.serving.schemas.base import REFUSALS
from headwise.serving.state import State
from headwise.tasks.language.language_model import LanguageModel
from headwise.tasks.language.neural_token_model import NeuralTokenModel
from headwise.tasks.translation.translator import Translator

router = APIRouter(tags=["attention"], responses=REFUSALS)


@router.post("/v1/positions")
async def positions(body: PositionsBody, state: State) -> PositionsReply:
    """From the formula, or as a loaded translator or language model has learned them."""
    if body.model is None:
        return await state.call(None, answer_positions, body)
    model = find_attention_model(state, body.model)
    return await state.call(model.name, answer_models_own, model.value, body)


def answer_positions(body: PositionsBody) -> PositionsReply:
    settings = DEFAULT_POSITION if body.position is None else body.position
    if settings.needs_model:
        raise UsageError(
            "learned positions are whatever a model has learned; name a model that has them",
            "学得的位置取决于模型学到了什么；请给出有这种位置编码的模型",
        )
    check_heads(body.dim, body.heads)
    parts = build_modules(settings, dim=body.dim, num_heads=body.heads)
    shown = show_positions(settings, parts, length=body.length, dim=body.dim, num_heads=body.heads)
    return PositionsReply(**shown.as_dict())


def answer_models_own(model: Translator | LanguageModel, body: PositionsBody) -> PositionsReply:
    """The positions of the model's first layer; of a wide model only the first dimensions."""
    if isinstance(model, Translator):
        shown = show_own_positions(model.model, model.recipe.model, length=body.length)
    else:
        network = model.model.network if isinstance(model.model, NeuralTokenModel) else None
        shown = show_own_positions(network, model.settings, length=body.length)
    facts = shown.as_dict()
    facts["table"] = None if facts["table"] is None else [row[:MAX_DIM] for row in facts["table"]]
    return PositionsReply(**facts)
