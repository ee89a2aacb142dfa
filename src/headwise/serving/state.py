"""What every address can reach: the models, a place in the queue, a deadline, and the end of patience.

    await state.work("demo", function, argument)      # a plain function on the worker of that model
    await state.answer("demo", prepare)               # sentences, joined with those of other requests

Both wait for a place (503 when there is none in time), are bounded by the request's deadline (504), and stop when the client
leaves: what waits is forgotten, what is at work ends between two steps once nobody waits for any of it. `work(None, …)` uses a
worker that belongs to no model. Tested: bounds, deadline, leaving, draining.
"""

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Annotated, Any, Protocol, TypeVar

from fastapi import Depends, Request

from headwise.errors import HeadwiseError
from headwise.serving.apart import WorkerApart
from headwise.serving.faults import Refusal
from headwise.serving.keys import KeyRing, RateLimit, read_keys
from headwise.serving.leaving import Leaving
from headwise.serving.limits import ServerSettings
from headwise.serving.load import LOOK_SECONDS, Accepted, Load
from headwise.serving.loaded import LoadedModel
from headwise.serving.mailbox import Mailbox, settle
from headwise.serving.metrics import Metrics, resident_bytes
from headwise.serving.orders import Order, Part
from headwise.serving.training import DemoTraining
from headwise.serving.worker import Worker, WorkerDied
from headwise.tasks.translation.translator import Translator

Result = TypeVar("Result")

START_SECONDS = 5
"""After so long who came while a model was being loaded is told to come back."""

logger = logging.getLogger(__name__)


class Work(Protocol):
    """Something cut into parts."""

    @property
    def parts(self) -> Sequence[Part]: ...


AnyWork = TypeVar("AnyWork", bound=Work)


class Server:
    """One for the process: workers, places, what is going on."""

    def __init__(
        self, models: Mapping[str, LoadedModel], settings: ServerSettings, *, apart: bool = False
    ) -> None:
        """`apart`: translators search in processes of their own, where they can."""
        self.models, self.settings = dict(models), settings
        self.workers: dict[str | None, Worker] = {
            name: make_worker(one, apart=apart) for name, one in models.items()
        }
        self.workers[None] = Worker("server")
        self.places = {name: asyncio.Semaphore(settings.queue) for name in self.workers}
        self.loads = {
            name: Load(is_moving=worker.can_move) for name, worker in self.workers.items()
        }
        self.stream_loads = {name: Load() for name in self.workers}
        """Of streams, whose sentences are computed one by one: their rate is another."""
        self.tokenizing = ThreadPoolExecutor(
            max_workers=2, thread_name_prefix="headwise-tokenizing"
        )
        self.keys = KeyRing({} if settings.keys is None else read_keys(settings.keys))
        self.rate = RateLimit(settings.requests_a_minute)
        self.metrics = Metrics()
        self.training = None if settings.demo is None else DemoTraining(settings.demo)
        self.is_warm = self.is_draining = False
        self.failure: HeadwiseError | None = None
        """Why it cannot serve at all."""
        self.on_failure: Callable[[], None] = lambda: logger.error("%s", self.failure)
        self._mailbox: Mailbox | None = None
        self.num_accepted = 0
        """Requests that were given a place and are not answered yet."""

    @property
    def is_ready(self) -> bool:
        return (
            self.is_warm
            and not self.is_draining
            and all(worker.is_alive for worker in self.workers.values())
        )

    async def start(self) -> None:
        for worker in self.workers.values():
            worker.start()
            if isinstance(worker, WorkerApart):
                await worker.open()

    @property
    def resident_bytes(self) -> int:
        """Memory of this process and of those that search for it."""
        apart = [worker for worker in self.workers.values() if isinstance(worker, WorkerApart)]
        return resident_bytes() + sum(worker.resident_bytes for worker in apart)

    def mailbox(self, loop: asyncio.AbstractEventLoop) -> Mailbox:
        """Where workers leave word for those who wait on this loop."""
        if self._mailbox is None or self._mailbox.loop is not loop:
            self._mailbox = Mailbox(loop)
        return self._mailbox

    def fail(self, reason: HeadwiseError) -> None:
        """Nothing can be served; whoever runs the process is told, and ends it."""
        self.failure = reason
        self.on_failure()

    def add(self, model: LoadedModel) -> None:
        """One more, while the others are at work."""
        if model.name in self.models:
            return
        self.workers[model.name] = worker = Worker(model.name)
        self.loads[model.name], self.stream_loads[model.name] = Load(), Load()
        self.places[model.name] = asyncio.Semaphore(self.settings.queue)
        worker.start()
        self.models[model.name] = model

    async def stop(self) -> None:
        for worker in self.workers.values():
            if isinstance(worker, WorkerApart):
                await worker.shut()
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        if self.training is not None:
            self.training.end()
        for worker in self.workers.values():
            worker.close()
        self.tokenizing.shutdown(cancel_futures=True)

    @asynccontextmanager
    async def place(self, model: str | None) -> AsyncIterator[None]:
        """A place in the queue of a worker."""
        if self.is_draining:
            raise Refusal(
                503,
                "stopping",
                en="the server is stopping; try another",
                zh="服务器正在停止；请换一台",
                retry_after=5,
            )
        places = self.places[model]
        try:
            if places.locked():
                await asyncio.wait_for(places.acquire(), self.settings.queue_seconds)
            else:
                await places.acquire()
        except TimeoutError:
            raise Refusal(
                503,
                "full",
                en=f"{self.settings.queue} requests are being answered already; try again soon",
                zh=f"已有 {self.settings.queue} 个请求在处理；请稍后再试",
                retry_after=max(1, round(self.settings.queue_seconds)),
            ) from None
        self.num_accepted += 1
        try:
            yield
        finally:
            self.num_accepted -= 1
            places.release()


def make_worker(model: LoadedModel, *, apart: bool) -> Worker:
    """With a process where the model searches sentences on a CPU; a GPU's memory is not to hold it twice."""
    translator, held = model.value, model.held
    if not apart or held is None or not isinstance(translator, Translator) or os.name != "posix":
        return Worker(model.name)
    if translator.model.output.weight.device.type != "cpu":
        return Worker(model.name)
    return WorkerApart(model.name, translator, held, precision=model.precision)


class ServerState:
    """The server as one request sees it."""

    def __init__(self, server: Server, request: Request) -> None:
        self.server, self.request = server, request
        self.models, self.settings = server.models, server.settings
        self.deadline = time.monotonic() + server.settings.deadline_seconds

    async def work(
        self, model: str | None, function: Callable[..., Result], *arguments: Any
    ) -> Result:
        """Call a plain function on a model's worker, alone."""
        name = None if model is None else self.find(model).name
        async with self.server.place(name):
            return (await self.deliver(name, [Part(run=lambda parts: [function(*arguments)])]))[0]

    async def answer(
        self, model: str, prepare: Callable[[], AnyWork], *, is_short: bool = False
    ) -> tuple[AnyWork, list[Any]]:
        """What `prepare` cut into parts, off the event loop, and their results from the model's worker."""
        async with self.server.place(model):
            await self._wait_for_worker(model)
            work = await self.tokenize(prepare, is_short=is_short)
            async with self.accept(model, work.parts) as accepted:
                return work, await self.deliver(model, work.parts, accepted=accepted)

    async def _wait_for_worker(self, model: str) -> None:
        """Until it can search; while its process is being started nobody knows when that will be."""
        until = time.monotonic() + self.settings.queue_seconds
        while not self.server.workers[model].is_alive:
            if time.monotonic() >= until:
                raise Refusal(
                    503,
                    "starting",
                    en="the model is being loaded; try again soon",
                    zh="模型正在载入；请稍后再试",
                    retry_after=START_SECONDS,
                )
            await asyncio.sleep(LOOK_SECONDS)

    def accept(
        self, model: str, parts: Sequence[Part], *, streamed: bool = False
    ) -> AbstractAsyncContextManager[Accepted]:
        """A share of the model's time for sentences; 503 if they could not be finished before the deadline."""
        work = sum(part.work for part in parts)
        patience = self.settings.queue_seconds
        loads = self.server.stream_loads if streamed else self.server.loads
        return loads[model].accept(work, deadline=self.deadline, patience=patience)

    async def tokenize(self, prepare: Callable[[], Result], *, is_short: bool = False) -> Result:
        """Call a short function off the event loop, beside the models; a very short one takes less than the way there."""
        if is_short:
            return prepare()
        return await asyncio.get_running_loop().run_in_executor(self.server.tokenizing, prepare)

    async def deliver(
        self,
        model: str | None,
        parts: Sequence[Part],
        *,
        accepted: Accepted | None = None,
        watch_client: bool = True,
    ) -> list[Any]:
        """The results of parts, within the deadline and while the client waits; the caller holds a place."""
        order = Order(parts, deadline=self.deadline)
        if accepted is not None:
            order.on_answer = lambda part: accepted.finish(part.work)
        self.server.workers[model].put(order)
        try:
            return await self._wait(order, watch_client=watch_client)
        finally:
            order.leave()

    async def _wait(self, order: Order, *, watch_client: bool) -> list[Any]:
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()
        mailbox = self.server.mailbox(loop)
        order.future.add_done_callback(lambda _: mailbox.post(ended))
        late = loop.call_later(order.deadline - time.monotonic(), settle, ended)
        # A stream listens for the client itself, and only one may.
        left = Leaving(self.request, lambda: settle(ended)) if watch_client else None
        try:
            await ended
            if order.future.done():
                return order.future.result()
            if left is not None and left.has_left:
                raise Refusal(499, "left", en="the client left", zh="客户端已离开")
            raise Refusal(
                504,
                "too_slow",
                en=f"no answer within {self.settings.deadline_seconds:g} seconds; send fewer or shorter texts",
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
            late.cancel()
            if left is not None:
                left.stop()

    def find(self, model: str | None, *, kind: str | None = None) -> LoadedModel:
        """A model by name, or the first of its kind."""
        if model is not None and model not in self.models:
            raise Refusal(
                404,
                "no_model",
                en="there is no model of that name; see /v1/models",
                zh="没有这个名称的模型；参见 /v1/models",
            )
        fitting = [one for one in self.models.values() if kind is None or one.kind == kind]
        if model is None and fitting:
            return fitting[0]
        if model is not None and self.models[model] in fitting:
            return self.models[model]
        raise Refusal(
            422,
            "wrong_kind",
            en=f"this needs a model of kind {kind}; see /v1/models",
            zh=f"这里需要 {kind} 类的模型；参见 /v1/models",
        )


async def state_of(request: Request) -> ServerState:
    """Async though it never waits: a plain function would be sent to a thread and back."""
    return ServerState(request.app.state.server, request)


State = Annotated[ServerState, Depends(state_of)]
