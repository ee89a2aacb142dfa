"""The server as a value: models and settings in, an ASGI application out.

    app = create_app(load_models(["runs/demo"]), ServerSettings())

`ROUTERS` lists every subject. On start the workers begin and each translator translates once, so
that the first client does not pay for it; `/readyz` says when. The interactive documentation of
FastAPI is off: it would load scripts from elsewhere. Tested through every address.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from fastapi import APIRouter, Depends, FastAPI

import headwise
from headwise.decoding.choices import DecodingSettings
from headwise.errors import HeadwiseError
from headwise.serving.api import (
    attend,
    demo,
    health,
    kinds,
    language,
    libretranslate,
    metrics,
    models,
    page,
    patterns,
    positions,
    runs,
    trace,
    translate,
)
from headwise.serving.api.decoding_options import choose_settings
from headwise.serving.api.translation_stream import watch_part
from headwise.serving.http.access import require_key
from headwise.serving.http.errors import CaughtBugs, add_faults
from headwise.serving.http.request_guard import Door
from headwise.serving.schemas.limits import ServerSettings
from headwise.serving.server import Server
from headwise.serving.work.jobs import Order, Part
from headwise.serving.work.loaded_models import LoadedModel
from headwise.serving.work.translation_jobs import prepare
from headwise.tasks.translation.translator import Translator

ROUTERS: tuple[APIRouter, ...] = (
    models.router,
    translate.router,
    trace.router,
    attend.router,
    positions.router,
    kinds.router,
    patterns.router,
    language.router,
    runs.router,
    metrics.router,
    demo.router,
)
"""For whoever has a key, where keys are asked for."""
OPEN_ROUTERS: tuple[APIRouter, ...] = (health.router, libretranslate.router, page.router)
"""For anyone, or with a check of their own."""

WARM_UP_SECONDS = 600.0
FIRST_TEXTS = ("a", "a b c")
MEASURED_TEXTS = ("a b c d e f g h",) * 32


def create_app(
    given: Mapping[str, LoadedModel], settings: ServerSettings | None = None, *, apart: bool = False
) -> FastAPI:
    """The application that serves these models; `apart`: searches run in processes of their own
    (`apart.py`).
    """
    server = Server(given, settings or ServerSettings(), apart=apart)

    @asynccontextmanager
    async def live(app: FastAPI) -> AsyncIterator[None]:
        await server.start()
        tasks = [
            asyncio.create_task(warm_up(server)),
            asyncio.create_task(server.metrics.watch_loop()),
        ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await server.stop()

    app = FastAPI(
        title="Headwise",
        version=headwise.__version__,
        description=(
            "Translation and language models with their insides on show. 翻译与语言模型，内部可见。"
        ),
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # a redirect would name the host that was asked for
        lifespan=live,
    )
    app.state.server = server
    add_faults(app)
    for router in ROUTERS:
        app.include_router(router, dependencies=[Depends(require_key)])
    for router in OPEN_ROUTERS:
        app.include_router(router)
    # Inside the door, which counts the reply and adds its headers, and around it, for its own
    # mistakes.
    app.add_middleware(CaughtBugs)
    routers = (app.router, *ROUTERS, *OPEN_ROUTERS)
    app.add_middleware(Door, server=server, routers=routers)
    app.add_middleware(CaughtBugs)
    return app


async def warm_up(server: Server) -> None:
    """Each translator translates once, wherever it does.

    One that cannot ends the server: it would refuse for ever.
    """
    for name, model in server.models.items():
        if isinstance(model.value, Translator):
            settings = choose_settings(model.value.recipe.decoding, None, n_best=1)
            try:
                await _finish(
                    server, name, [Part(run=partial(_translate_once, model.value, settings))]
                )
                await _finish(server, name, prepare(model.value, list(FIRST_TEXTS), settings).parts)
                # How fast it is, for a first guess of what can be accepted: a batch in company, as
                # under load.
                several = prepare(model.value, list(MEASURED_TEXTS), settings).parts
                await _finish(server, name, several)
                await _finish(server, name, [watch_part(several[0], lambda tokens: None)])
            except Exception as error:  # whatever it was, it would be the same for every client
                server.fail(_explain(name, error))
                return
    server.is_warm = True


async def _finish(server: Server, name: str, parts: Sequence[Part]) -> None:
    order = Order(parts, deadline=time.monotonic() + WARM_UP_SECONDS)
    worker = server.workers[name]
    accepted = worker.load_of(parts).take(parts)
    order.on_answer = accepted.finish
    worker.put(order)
    try:
        async with asyncio.timeout(WARM_UP_SECONDS):
            await asyncio.wrap_future(order.future)
    finally:
        accepted.end()


def _translate_once(
    translator: Translator, settings: DecodingSettings, parts: Sequence[Part]
) -> list[Any]:
    return [translator(FIRST_TEXTS, settings)]


def _explain(name: str, error: Exception) -> HeadwiseError:
    if isinstance(error, TimeoutError):
        en, zh = f"no answer in {WARM_UP_SECONDS:g} seconds", f"{WARM_UP_SECONDS:g} 秒内没有结果"
    elif isinstance(error, HeadwiseError):
        en, zh = error.en, error.zh
    else:
        en = zh = f"{type(error).__name__}: {str(error).strip()[:300]}"
    return HeadwiseError(
        f"the model {name} could not translate a first sentence ({en}), so the server stops; try "
        "the same with `headwise translate`, or another --device or --precision",
        f"模型 {name} 未能翻译第一个句子（{zh}），服务器停止；请用 `headwise translate` 试一试，"
        "或换 --device、--precision",
    )
