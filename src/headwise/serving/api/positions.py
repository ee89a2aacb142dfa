"""`POST /v1/positions`: any position encoding as a table and as a curve over distances."""

from fastapi import APIRouter

from headwise.attention.shapes import check_heads
from headwise.errors import UsageError
from headwise.explorer.data.attention_row import require_attention
from headwise.explorer.data.position_tables import build_modules, modules_of, show_positions
from headwise.models.transformer_settings import TransformerSettings
from headwise.positions.choices import DEFAULT_POSITION
from headwise.serving.schemas.attention import MAX_DIM, PositionsBody, PositionsReply
from headwise.serving.schemas.base import REFUSALS
from headwise.serving.state import State
from headwise.tasks.translation.translator import Translator

router = APIRouter(tags=["attention"], responses=REFUSALS)


@router.post("/v1/positions")
async def positions(body: PositionsBody, state: State) -> PositionsReply:
    """From the formula, or as a loaded translator has learned them."""
    if body.model is None:
        return await state.call(None, answer_positions, body)
    model = state.find(body.model, kind="translator")
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


def answer_models_own(translator: Translator, body: PositionsBody) -> PositionsReply:
    """The positions of the model's encoder; of a wide model only the first dimensions."""
    model, settings = require_attention(translator), translator.recipe.model
    assert isinstance(settings, TransformerSettings)
    position = settings.position
    limit = position.longest_row
    length = body.length if limit is None else min(body.length, limit.tokens)
    shown = show_positions(
        position,
        modules_of(model),
        length=length,
        dim=settings.dim,
        num_heads=settings.encoder.heads,
    ).as_dict()
    shown["table"] = None if shown["table"] is None else [row[:MAX_DIM] for row in shown["table"]]
    return PositionsReply(**shown)
