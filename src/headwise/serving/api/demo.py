"""`GET` and `POST /v1/demo`: trains the demo model from the page and reports its progress.

The page offers this if the server has no model.
"""

from fastapi import APIRouter
from pydantic import ConfigDict

from headwise.serving.http.errors import Refusal
from headwise.serving.schemas.base import REFUSALS, Body, Reply
from headwise.serving.state import State
from headwise.serving.work.demo_training import DemoTraining, Pair, TrainingStatus
from headwise.serving.work.loaded_models import load_model

router = APIRouter(tags=["demo"], responses=REFUSALS)


class DemoBody(Body):
    model_config = ConfigDict(json_schema_extra={"examples": [{"pair": "en-de"}]})

    pair: Pair = "en-de"


class DemoReply(Reply):
    state: str
    pair: Pair
    step: int
    steps: int
    loss: float | None
    bleu: float | None
    seconds: float
    message: str
    model: str | None = None


@router.get("/v1/demo")
async def watch(state: State) -> DemoReply:
    """The progress of the training; when it is done, the model is loaded."""
    training = _training(state)
    return await _status_reply(state, training, await state.call(None, training.status))


@router.post("/v1/demo")
async def begin(body: DemoBody, state: State) -> DemoReply:
    """Start the training, or resume it."""
    training = _training(state)
    await state.call(None, training.start, body.pair)
    return await _status_reply(state, training, await state.call(None, training.status))


def _training(state: State) -> DemoTraining:
    if state.server.demo_training is None:
        raise Refusal(
            404,
            "no_training",
            en="this server trains nothing; run `headwise explore` without a model",
            zh="该服务器不训练模型；请运行不带模型的 `headwise explore`",
        )
    return state.server.demo_training


async def _status_reply(state: State, training: DemoTraining, status: TrainingStatus) -> DemoReply:
    name = training.run.name
    if status.state == "ready" and name not in state.models:
        state.server.add(await state.call(None, load_model, name, training.run))
    return DemoReply(**vars(status), model=name if name in state.models else None)
