"""`POST /v1/score`, `/v1/predict`: how probable a language model finds a text, and which word comes
next. `POST /v1/vectors`: neighbours of words by word vectors.
"""

import math

from fastapi import APIRouter

from headwise.errors import UsageError
from headwise.explorer.data.word_neighbours import map_words, suggest_queries
from headwise.models.vector_space import VectorSpace
from headwise.serving.http.errors import Refusal
from headwise.serving.schemas.base import REFUSALS
from headwise.serving.schemas.language import (
    ContinuationReply,
    PredictBody,
    PredictReply,
    ScoreBody,
    ScoreReply,
    SentenceReply,
    VectorsBody,
    VectorsReply,
)
from headwise.serving.state import State
from headwise.tasks.language.answers import judge
from headwise.tasks.language.language_model import MIN_BEAM, LanguageModel, cut_gap

router = APIRouter(tags=["language"], responses=REFUSALS)


@router.post("/v1/score")
async def score(body: ScoreBody, state: State) -> ScoreReply:
    """How natural are these sentences, token by token?"""
    model = state.find(body.model, kind="language_model")
    size = sum(map(len, body.all_texts))
    return await state.call(model.name, answer_score, model.name, model.value, body, size=size)


@router.post("/v1/predict")
async def predict(body: PredictBody, state: State) -> PredictReply:
    """Which words come next?"""
    model = state.find(body.model, kind="language_model")
    size = (
        (len(body.text) + body.length)
        * body.length
        * (1 if body.length == 1 else max(body.count, MIN_BEAM))
    )
    return await state.call(model.name, answer_predict, model.name, model.value, body, size=size)


@router.post("/v1/vectors")
async def vectors(body: VectorsBody, state: State) -> VectorsReply:
    """Neighbours of words and of sums of words, and their positions on a map."""
    model = state.find(body.model, kind="word_vectors")
    return await state.call(model.name, answer_vectors, model.name, model.value, body)


def answer_score(name: str, model: LanguageModel, body: ScoreBody) -> ScoreReply:
    scores = model.score(body.all_texts)
    sentences = [SentenceReply(**one.as_dict()) for one in scores]
    return ScoreReply(model=name, sentences=sentences, **judge(scores).as_dict())


def answer_predict(name: str, model: LanguageModel, body: PredictBody) -> PredictReply:
    try:
        cut_gap(body.text)
    except UsageError:  # its message quotes the text, which suits only the command line
        raise Refusal(
            422,
            "gap_not_last",
            en=(
                "the gap stands before other words; a language model reads from left to right and "
                "fills in the end: put ____ last, or compare whole sentences at /v1/score"
            ),
            zh=(
                "空格之后还有别的词；语言模型从左往右读，只能补全结尾：请把 ____ 放在最后，或在 "
                "/v1/score 比较完整的句子"
            ),
        ) from None
    found = model.predict(body.text, count=body.count, length=body.length)
    likely = [
        ContinuationReply(**one.as_dict()) for one in found if math.isfinite(one.log_probability)
    ]
    return PredictReply(model=name, beginning=body.text, predictions=likely)


def answer_vectors(name: str, space: VectorSpace, body: VectorsBody) -> VectorsReply:
    found = map_words(
        space, body.queries or suggest_queries(space), count=body.count, layout=body.layout
    )
    return VectorsReply(
        model=name,
        vocabulary=len(space.words),
        dim=space.dim,
        text_words=space.text_words,
        **found.as_dict(),
    )
