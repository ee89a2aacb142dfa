"""`POST /v1/translate`: one or many texts, searched as asked, in batches shared with other requests."""

from functools import partial

from fastapi import APIRouter

from headwise.serving.schemas import REFUSALS, CandidateReply, TranslateBody, TranslateReply, TranslationReply
from headwise.serving.sentences import Found, prepare
from headwise.serving.state import State
from headwise.serving.wishes import choose_settings

router = APIRouter(tags=["translate"], responses=REFUSALS)


@router.post("/v1/translate")
async def translate(body: TranslateBody, state: State) -> TranslateReply:
    """Translations in the order of the texts."""
    model = state.find(body.model, kind="translator")
    settings = choose_settings(model.value.recipe.decoding, body.decoding, n_best=body.n_best)
    texts = [body.text] if isinstance(body.text, str) else body.text
    prepared = await state.tokenize(
        partial(prepare, model.value, texts, settings, prefix=body.prefix, split=body.split)
    )
    answers = await state.answer(model.name, prepared.parts)
    return TranslateReply(model=model.name, translations=[as_reply(found) for found in prepared.assemble(answers)])


def as_reply(found: list[Found]) -> TranslationReply:
    candidates = [
        CandidateReply(text=one.text, score=round(one.score, 4), log_probability=round(one.log_probability, 4))
        for one in found
    ]
    return TranslationReply(text=found[0].text, truncated=not found[0].is_whole, n_best=candidates)
