"""What HTTP routes ask of the model workers: a route gets its model here, and its work is queued,
admitted, and limited by a deadline.

    await state.call("demo", function, argument)     # a plain function on the model's worker
    await state.run("demo", prepare)                 # sentences, batched with other requests'

Both go through `admit`. The request waits for a place in the queue, is prepared (in a thread if
that takes long), and waits for a share of the worker's time (`work/admission.py`). If this takes
longer than `queue_seconds`, it is refused with 503. Afterwards its deadline applies (504). When the
client disconnects, waiting work is dropped, and running work stops at its next step once nobody
waits for any part of it. `call(None, …)` is for work that needs no model. Tested: limits, deadline,
disconnects, draining.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Annotated, Any, Protocol, TypeVar

from fastapi import Depends, Request

from headwise.serving.http.errors import Refusal
from headwise.serving.server import Server
from headwise.serving.work.admission import POLL_SECONDS, AdmittedWork
from headwise.serving.work.completions import complete
from headwise.serving.work.jobs import Job, JobPart, should_stop
from headwise.serving.work.loaded_models import Kind, LoadedModel
from headwise.serving.work.process_worker import loading_refusal
from headwise.serving.work.worker import Worker, WorkerDied

Result = TypeVar("Result")


class PartedWork(Protocol):
    """Work that is divided into parts."""

    @property
    def parts(self) -> Sequence[JobPart]: ...


AnyPartedWork = TypeVar("AnyPartedWork", bound=PartedWork)


class SinglePart:
    """Work of one part."""

    def __init__(self, part: JobPart) -> None:
        self.parts = (part,)


class DisconnectWatch:
    """Notices when the client of a request disconnects before its reply."""

    def __init__(self, request: Request, on_disconnect: Callable[[], None]) -> None:
        self.is_disconnected = False
        self._request, self._on_disconnect = request, on_disconnect
        self._task: asyncio.Task[None] | None = asyncio.ensure_future(self._listen())

    def stop(self) -> None:
        """Stop watching, and drop the task: it refers to this object."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _listen(self) -> None:
        while (await self._request.receive())["type"] != "http.disconnect":
            pass
        self.is_disconnected = True
        self._on_disconnect()


class RequestState:
    """What a route can use to answer one request."""

    def __init__(self, server: Server, request: Request) -> None:
        self.server, self.request = server, request
        self.models, self.settings = server.models, server.settings
        now = time.monotonic()
        self.deadline = now + server.settings.deadline_seconds
        self.queue_deadline = now + server.settings.queue_seconds
        """A request that is not admitted by then is refused."""

    async def call(
        self, model: str | None, function: Callable[..., Result], *arguments: Any, size: int = 1
    ) -> Result:
        """Call a plain function on a model's worker; `size`: its cost in units of its own."""
        run = lambda parts: [function(*arguments)]  # noqa: E731
        alone = SinglePart(JobPart(run=run, cost=size, kind=function.__name__))
        return (await self.run(model, lambda: alone, is_short=True))[1][0]

    async def call_stoppable(
        self,
        model: LoadedModel,
        size: Callable[[], int],
        function: Callable[..., Result],
        *arguments: Any,
    ) -> Result:
        """The same for a function of several steps whose cost takes time to compute.

        The function gets `is_over` and calls it between two steps: whether nobody waits any more.
        """

        def run(parts: Sequence[JobPart]) -> list[Result]:
            return [
                function(model.name, model.value, *arguments, is_over=lambda: should_stop(parts))
            ]

        prepare = lambda: SinglePart(  # noqa: E731
            JobPart(run=run, cost=size(), kind=function.__name__)
        )
        return (await self.run(model.name, prepare))[1][0]

    async def run(
        self, model: str | None, prepare: Callable[[], AnyPartedWork], *, is_short: bool = False
    ) -> tuple[AnyPartedWork, list[Any]]:
        """What `prepare` returns, and the results of its parts from the model's worker."""
        async with self.admit(model, prepare, is_short=is_short) as (work, admitted):
            return work, await self.submit(model, work.parts, admitted)

    @asynccontextmanager
    async def admit(
        self, model: str | None, prepare: Callable[[], AnyPartedWork], *, is_short: bool = False
    ) -> AsyncIterator[tuple[AnyPartedWork, AdmittedWork]]:
        """Prepared work with a place in the queue and a share of the worker's time."""
        async with self.server.queue_place(model, until=self.queue_deadline):
            work = await self._prepare(prepare, is_short=is_short)
            worker = self.server.workers[model]
            await self._wait_for_worker(worker, work.parts)
            admission = worker.admission_for(work.parts)
            async with admission.admit(
                work.parts, deadline=self.deadline, until=self.queue_deadline
            ) as admitted:
                yield work, admitted

    async def off_loop(self, function: Callable[[], Result], *, is_short: bool = False) -> Result:
        """Call a function in another thread, unless it takes less time than changing threads."""
        if is_short:
            return function()
        return await asyncio.get_running_loop().run_in_executor(self.server.tokenizing, function)

    async def _prepare(self, prepare: Callable[[], Result], *, is_short: bool) -> Result:
        """Split and tokenise, within the time for the queue."""
        try:
            async with asyncio.timeout(max(0.0, self.queue_deadline - time.monotonic())):
                return await self.off_loop(prepare, is_short=is_short)
        except TimeoutError:
            raise Refusal(
                503,
                "busy",
                en=(
                    "other texts are being tokenised; try again soon, or send fewer and shorter "
                    "texts"
                ),
                zh="正在为其他文本分词；请稍后再试，或减少、缩短文本",
                retry_after=max(1, round(self.settings.queue_seconds)),
            ) from None

    async def _wait_for_worker(self, worker: Worker, parts: Sequence[JobPart]) -> None:
        """Wait while a worker process starts; nobody knows how long that takes."""
        while not worker.is_ready_for(parts):
            if time.monotonic() >= self.queue_deadline:
                raise loading_refusal()
            await asyncio.sleep(POLL_SECONDS)

    async def submit(
        self,
        model: str | None,
        parts: Sequence[JobPart],
        admitted: AdmittedWork,
        *,
        watch_client: bool = True,
    ) -> list[Any]:
        """The results of admitted parts, within the deadline and while the client is connected."""
        job = Job(parts, deadline=self.deadline, rank=admitted.rank)
        job.on_answer = admitted.finish
        self.server.workers[model].put(job)
        try:
            return await self._wait(job, watch_client=watch_client)
        finally:
            job.cancel()

    async def _wait(self, job: Job, *, watch_client: bool) -> list[Any]:
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()
        completions = self.server.completions(loop)
        job.future.add_done_callback(lambda _: completions.notify(ended))
        timer = loop.call_later(job.deadline - time.monotonic(), complete, ended)
        # A streaming response receives the disconnect itself, and only one receiver is possible.
        watch = DisconnectWatch(self.request, lambda: complete(ended)) if watch_client else None
        try:
            await ended
            if job.future.done():
                return job.future.result()
            if watch is not None and watch.is_disconnected:
                raise Refusal(499, "left", en="the client left", zh="客户端已离开")
            raise Refusal(
                504,
                "too_slow",
                en=(
                    f"no answer within {self.settings.deadline_seconds:g} seconds; send fewer or "
                    "shorter texts"
                ),
                zh=f"{self.settings.deadline_seconds:g} 秒内没有结果；请减少或缩短文本",
                retry_after=5,
            )
        except WorkerDied:
            raise Refusal(
                503,
                "interrupted",
                en="the work was interrupted; send it again",
                zh="处理被中断；请重发",
                retry_after=1,
            ) from None
        finally:
            timer.cancel()
            if watch is not None:
                watch.stop()

    def find(self, model: str | None, *, kind: Kind | tuple[Kind, ...]) -> LoadedModel:
        """A model by name, which must be of this kind, or of one of these; without a name the first
        of the first kind that there is.
        """
        kinds = (kind,) if isinstance(kind, str) else kind
        if model is not None and model not in self.models:
            raise Refusal(
                404,
                "no_model",
                en="there is no model of that name; see /v1/models",
                zh="没有这个名称的模型；参见 /v1/models",
            )
        fitting = [one for word in kinds for one in self.models.values() if one.kind == word]
        if model is None and fitting:
            return fitting[0]
        if model is not None and self.models[model] in fitting:
            return self.models[model]
        raise Refusal(
            422,
            "wrong_kind",
            en=f"this needs a model of kind {' or '.join(kinds)}; see /v1/models",
            zh=f"这里需要 {' 或 '.join(kinds)} 类的模型；参见 /v1/models",
        )


async def state_of(request: Request) -> RequestState:
    """Async although it never waits: FastAPI calls plain functions in a thread."""
    return RequestState(request.app.state.server, request)


State = Annotated[RequestState, Depends(state_of)]
