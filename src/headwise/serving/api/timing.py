"""Two routes with which the page compares models.

    POST /v1/time        translates one sentence and measures how long it takes
    POST /v1/wordings    translates sentences that have two right translations, and marks which
                         translation each word comes from

A model that mixes the two right translations in one sentence shows the multi-modality problem of
parallel decoding.
"""

from collections.abc import Callable
from functools import partial

import torch
from fastapi import APIRouter

from headwise.explorer.data.timed_translation import time_sentence
from headwise.explorer.data.two_wordings import judge_sentences
from headwise.serving.api.decoding_options import choose_settings
from headwise.serving.api.trace import count_steps
from headwise.serving.schemas.base import REFUSALS
from headwise.serving.schemas.timing import (
    JudgedReply,
    MarkedWordReply,
    TimeBody,
    TimeReply,
    WordingsBody,
    WordingsReply,
)
from headwise.serving.state import State
from headwise.serving.work.search import stop_if
from headwise.serving.work.translation_jobs import MIN_STEPS
from headwise.tasks.translation.translator import Translator

SENTENCE_TOKENS = 16
"""Of a sentence of the pocket corpus, about."""

router = APIRouter(tags=["look inside"], responses=REFUSALS)


@router.post("/v1/time")
async def time_one(body: TimeBody, state: State) -> TimeReply:
    """How long one sentence takes on this server, from its text to the text of its translation."""
    model = state.find(body.model, kind="translator")
    size = partial(count_steps, model.value, body.text, width=body.repeats + 1)
    return await state.call_stoppable(model, size, answer_time, body)


@router.post("/v1/wordings")
async def wordings(body: WordingsBody, state: State) -> WordingsReply:
    """Translations of test sentences of the pocket corpus that have two right ones, and which words
    come from which; for models of that corpus.
    """
    model = state.find(body.model, kind="translator")
    cost = body.count * (SENTENCE_TOKENS + MIN_STEPS)
    return await state.call_stoppable(model, lambda: cost, answer_wordings, body)


def answer_time(
    name: str, translator: Translator, body: TimeBody, *, is_over: Callable[[], bool]
) -> TimeReply:
    settings = choose_settings(translator.recipe.decoding, body.decoding, n_best=1)
    found = time_sentence(
        translator, body.text, settings, repeats=body.repeats, before_step=stop_if(is_over)
    )
    return TimeReply(
        model=name,
        decoding=settings.kind,
        text=found.text,
        tokens=found.num_tokens,
        passes=found.num_passes,
        seconds=[round(one, 6) for one in found.seconds],
        device=translator.model.output.weight.device.type,
        threads=torch.get_num_threads(),
    )


def answer_wordings(
    name: str, translator: Translator, body: WordingsBody, *, is_over: Callable[[], bool]
) -> WordingsReply:
    settings = choose_settings(translator.recipe.decoding, None, n_best=1)
    found = judge_sentences(translator, settings, first=body.first, count=body.count)
    return WordingsReply(
        model=name,
        sentences=[
            JudgedReply(
                source=one.source,
                right=list(one.right),
                text=one.text,
                verdict=one.verdict,
                words=[MarkedWordReply(text=word, origin=origin) for word, origin in one.words],
            )
            for one in found
        ],
    )
