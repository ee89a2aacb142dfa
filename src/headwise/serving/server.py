"""One server: its models, their workers, places for requests, and what is going on. Requests see it
through `state.py`. Tested through the addresses.
"""

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

from headwise.errors import HeadwiseError
from headwise.serving.http.api_keys import KeyRing, RateLimit, read_keys
from headwise.serving.http.errors import Refusal
from headwise.serving.http.metrics import Metrics, resident_bytes
from headwise.serving.schemas.limits import ServerSettings
from headwise.serving.work.completions import Mailbox
from headwise.serving.work.demo_training import DemoTraining
from headwise.serving.work.loaded_models import LoadedModel
from headwise.serving.work.process_worker import WorkerApart
from headwise.serving.work.worker import Worker
from headwise.tasks.translation.translator import Translator

logger = logging.getLogger(__name__)


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
    async def place(self, model: str | None, *, until: float) -> AsyncIterator[None]:
        """A place in the queue of a worker, or a refusal if there is none until then."""
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
                await asyncio.wait_for(places.acquire(), until - time.monotonic())
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
    """With a process where the model searches sentences on a CPU; a GPU's memory is not to hold it
    twice.
    """
    translator, held = model.value, model.held
    if not apart or held is None or not isinstance(translator, Translator) or os.name != "posix":
        return Worker(model.name)
    if translator.model.output.weight.device.type != "cpu":
        return Worker(model.name)
    return WorkerApart(model.name, translator, held, precision=model.precision)
