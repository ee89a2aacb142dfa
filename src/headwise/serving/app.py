"""Builds the ASGI application: models and settings in, a FastAPI application out.

    app = create_app(load_models(["runs/demo"]), ServerSettings())

A request passes `RequestGuard`, then the routes of `ROUTERS`. On start the workers begin and each
translator translates one sentence, so that the first client does not wait for the warm-up;
`/readyz` answers 200 when that is done. FastAPI's interactive documentation is off, because it
would load scripts from other sites. Tested through every route.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from fastapi import APIRouter, Depends, FastAPI, Request

import headwise
from headwise.decoding.choices import DecodingSettings
from headwise.errors import HeadwiseError
from headwise.serving.api import (
    attend,
    demo,
    exposure,
    health,
    kinds,
    language,
    libretranslate,
    memory,
    metrics,
    models,
    page,
    patterns,
    positions,
    runs,
    timing,
    trace,
    translate,
)
from headwise.serving.api.decoding_options import choose_settings
from headwise.serving.api.memory_options import add_memory
from headwise.serving.http.errors import InternalErrors, add_error_handlers
from headwise.serving.http.request_guard import RequestGuard
from headwise.serving.http.server_settings import ServerSettings
from headwise.serving.server import Server
from headwise.serving.work.jobs import Job, JobPart
from headwise.serving.work.loaded_models import LoadedModel
from headwise.serving.work.translation_jobs import prepare_texts, streamed_part
from headwise.tasks.translation.translator import Translator

ROUTERS: tuple[APIRouter, ...] = (
    models.router,
    translate.router,
    trace.router,
    timing.router,
    memory.router,
    exposure.router,
    attend.router,
    positions.router,
    kinds.router,
    patterns.router,
    language.router,
    runs.router,
    metrics.router,
    demo.router,
)
"""Routes that require a key, where keys are required."""
OPEN_ROUTERS: tuple[APIRouter, ...] = (health.router, libretranslate.router, page.router)
"""Routes that require none, or check it themselves."""

WARM_UP_SECONDS = 600.0
FIRST_TEXTS = ("a", "a b c")
MEASURED_TEXTS = ("a b c d e f g h",) * 32


def create_app(
    given: Mapping[str, LoadedModel],
    settings: ServerSettings | None = None,
    *,
    use_processes: bool = False,
) -> FastAPI:
    """The application that serves these models.

    `use_processes`: searches run in worker processes (`work/process_worker.py`).
    """
    server = Server(given, settings or ServerSettings(), use_processes=use_processes)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
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
        redirect_slashes=False,  # a redirect would repeat the Host header
        lifespan=lifespan,
    )
    app.state.server = server
    add_error_handlers(app)
    for router in ROUTERS:
        app.include_router(router, dependencies=[Depends(require_key)])
    for router in OPEN_ROUTERS:
        app.include_router(router)
    # Inside the guard, which counts the reply and adds headers; and around it, for its own bugs.
    app.add_middleware(InternalErrors)
    routers = (app.router, *ROUTERS, *OPEN_ROUTERS)
    app.add_middleware(
        RequestGuard,
        settings=server.settings,
        access=server.access,
        metrics=server.metrics,
        routers=routers,
    )
    app.add_middleware(InternalErrors)
    return app


async def require_key(request: Request) -> None:
    """The dependency of `ROUTERS`: refuses a request without a valid key.

    Async, so that FastAPI does not call it in a thread.
    """
    request.app.state.server.access.check(request.scope)


async def warm_up(server: Server) -> None:
    """Every translator translates once, in its thread and in its process.

    If one cannot, the server stops: it would refuse every request.
    """
    for name, model in server.models.items():
        if isinstance(model.value, Translator):
            settings = choose_settings(model.value.recipe.decoding, None, n_best=1)
            settings = add_memory(settings, model, None)
            try:
                await _run(
                    server, name, [JobPart(run=partial(_translate_once, model.value, settings))]
                )
                await _run(
                    server, name, prepare_texts(model.value, list(FIRST_TEXTS), settings).parts
                )
                # Measures the unit cost of a batch as under load, for the first admissions.
                several = prepare_texts(model.value, list(MEASURED_TEXTS), settings).parts
                await _run(server, name, several)
                await _run(server, name, [streamed_part(several[0], lambda tokens: None)])
            except Exception as error:  # every request would fail in the same way
                server.fail(_describe_failure(name, error))
                return
    server.is_warm = True


async def _run(server: Server, name: str, parts: Sequence[JobPart]) -> None:
    job = Job(parts, deadline=time.monotonic() + WARM_UP_SECONDS)
    worker = server.workers[name]
    admitted = worker.admission_for(parts).reserve(parts)
    job.on_answer = admitted.finish
    worker.put(job)
    try:
        async with asyncio.timeout(WARM_UP_SECONDS):
            await asyncio.wrap_future(job.future)
    finally:
        admitted.end()


def _translate_once(
    translator: Translator, settings: DecodingSettings, parts: Sequence[JobPart]
) -> list[Any]:
    return [translator(FIRST_TEXTS, settings)]


def _describe_failure(name: str, error: Exception) -> HeadwiseError:
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
