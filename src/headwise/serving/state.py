"""What every address can reach: the models, a place in the queue, a deadline, and the end of
patience.

    await state.work("demo", function, argument)      # a plain function on the worker of that model
    await state.answer("demo", prepare)               # sentences, joined with those of other requests

Every kind of call goes the same way (`admitted`): it waits for a place, is counted (off the event
loop where that takes time), and waits for a share of the worker's time (`load.py`); 503 if all of
that takes longer than its patience. Then it is bounded by the request's deadline (504), and stops
when the client leaves: what waits is forgotten, what is at work ends between two steps once nobody
waits for any of it. `work(None, …)` uses a worker that belongs to no model. Tested: bounds,
deadline, leaving, draining.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Annotated, Any, Protocol, TypeVar

from fastapi import Depends, Request

from headwise.serving.http.errors import Refusal
from headwise.serving.leaving import Leaving
from headwise.serving.server import Server
from headwise.serving.work.admission import LOOK_SECONDS, Accepted
from headwise.serving.work.completions import settle
from headwise.serving.work.jobs import Order, Part, nobody_waits
from headwise.serving.work.loaded_models import LoadedModel
from headwise.serving.work.process_worker import still_loading
from headwise.serving.work.worker import Worker, WorkerDied

Result = TypeVar("Result")


class Work(Protocol):
    """Something cut into parts."""

    @property
    def parts(self) -> Sequence[Part]: ...


AnyWork = TypeVar("AnyWork", bound=Work)


class Alone:
    """Work of one part."""

    def __init__(self, part: Part) -> None:
        self.parts = (part,)


class ServerState:
    """The server as one request sees it."""

    def __init__(self, server: Server, request: Request) -> None:
        self.server, self.request = server, request
        self.models, self.settings = server.models, server.settings
        now = time.monotonic()
        self.deadline = now + server.settings.deadline_seconds
        self.patience = now + server.settings.queue_seconds
        """Who is not at least accepted by then is told to come back."""

    async def work(
        self, model: str | None, function: Callable[..., Result], *arguments: Any, size: int = 1
    ) -> Result:
        """Call a plain function on a model's worker, alone; `size`: how much it has to do, in a
        unit of its own.
        """
        run = lambda parts: [function(*arguments)]  # noqa: E731
        alone = Alone(Part(run=run, work=size, kind=function.__name__))
        return (await self.answer(model, lambda: alone, is_short=True))[1][0]

    async def look(
        self,
        model: LoadedModel,
        size: Callable[[], int],
        function: Callable[..., Result],
        *arguments: Any,
    ) -> Result:
        """The same for what must be counted first, and asks between two steps whether anyone still
        waits (`is_over`).
        """

        def run(parts: Sequence[Part]) -> list[Result]:
            return [
                function(model.name, model.value, *arguments, is_over=lambda: nobody_waits(parts))
            ]

        prepare = lambda: Alone(Part(run=run, work=size(), kind=function.__name__))  # noqa: E731
        return (await self.answer(model.name, prepare))[1][0]

    async def answer(
        self, model: str | None, prepare: Callable[[], AnyWork], *, is_short: bool = False
    ) -> tuple[AnyWork, list[Any]]:
        """What `prepare` cut into parts, off the event loop, and their results from the model's
        worker.
        """
        async with self.admitted(model, prepare, is_short=is_short) as (work, accepted):
            return work, await self.deliver(model, work.parts, accepted)

    @asynccontextmanager
    async def admitted(
        self, model: str | None, prepare: Callable[[], AnyWork], *, is_short: bool = False
    ) -> AsyncIterator[tuple[AnyWork, Accepted]]:
        """Work that was counted, with a place and a share of the worker's time."""
        async with self.server.place(model, until=self.patience):
            work = await self._count(prepare, is_short=is_short)
            worker = self.server.workers[model]
            await self._wait_for(worker, work.parts)
            load = worker.load_of(work.parts)
            async with load.accept(
                work.parts, deadline=self.deadline, until=self.patience
            ) as accepted:
                yield work, accepted

    async def beside(self, function: Callable[[], Result], *, is_short: bool = False) -> Result:
        """Call a function of some milliseconds off the event loop; a very short one takes less than
        the way there.
        """
        if is_short:
            return function()
        return await asyncio.get_running_loop().run_in_executor(self.server.tokenizing, function)

    async def _count(self, prepare: Callable[[], Result], *, is_short: bool) -> Result:
        """Split and tokenise, while patience lasts."""
        try:
            async with asyncio.timeout(max(0.0, self.patience - time.monotonic())):
                return await self.beside(prepare, is_short=is_short)
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

    async def _wait_for(self, worker: Worker, parts: Sequence[Part]) -> None:
        """Until it can begin; while its process is being started nobody knows when that will be."""
        while not worker.is_ready_for(parts):
            if time.monotonic() >= self.patience:
                raise still_loading()
            await asyncio.sleep(LOOK_SECONDS)

    async def deliver(
        self,
        model: str | None,
        parts: Sequence[Part],
        accepted: Accepted,
        *,
        watch_client: bool = True,
    ) -> list[Any]:
        """The results of parts that were accepted, within the deadline and while the client waits."""
        order = Order(parts, deadline=self.deadline, rank=accepted.rank)
        order.on_answer = accepted.finish
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
