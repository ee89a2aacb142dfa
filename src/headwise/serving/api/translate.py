"""`POST /v1/translate`: translates one or several texts, in batches shared with other requests.

With `stream` the reply grows token by token (`translation_stream.py`).
"""

from functools import partial

from fastapi import APIRouter, Response

from headwise.serving.api.decoding_options import add_phrases, choose_settings
from headwise.serving.api.memory_options import add_memory
from headwise.serving.api.translation_stream import STREAMED, start_stream
from headwise.serving.schemas.base import REFUSALS
from headwise.serving.schemas.translation import TranslateBody, TranslateReply, translation_reply
from headwise.serving.state import State
from headwise.serving.work.translation_jobs import prepare_texts

SHORT_CHARACTERS = 300
"""Up to this length, tokenising takes less time than changing to another thread."""

router = APIRouter(tags=["translate"], responses=REFUSALS)


@router.post("/v1/translate", response_model=TranslateReply, responses={200: STREAMED})
async def translate(body: TranslateBody, state: State) -> Response:
    """Translations in the order of the texts; with `stream`, server-sent events piece, translation
    and done.
    """
    model = state.find(body.model, kind="translator")
    settings = choose_settings(
        model.value.recipe.decoding, body.decoding, n_best=body.n_best, require=body.require
    )
    settings = add_phrases(settings, forbid=body.forbid, require=body.require)
    settings = add_memory(settings, model, body.memory)
    texts = body.all_texts
    prepare = partial(
        prepare_texts, model.value, texts, settings, prefix=body.prefix, split=body.split
    )
    if body.stream:
        return await start_stream(state, model.name, prepare)
    is_short = sum(map(len, texts)) <= SHORT_CHARACTERS and not (
        settings.forbidden or settings.required
    )
    prepared, answers = await state.run(model.name, prepare, is_short=is_short)
    warnings = await state.off_loop(prepared.warn_all, is_short=is_short)
    found = zip(prepared.assemble(answers), warnings, strict=True)
    reply = TranslateReply(
        model=model.name, translations=[translation_reply(*one) for one in found]
    )
    return Response(reply.model_dump_json(), media_type="application/json")
