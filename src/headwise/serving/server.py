"""`Server`: what all requests share. It holds models, their workers, queues, keys and metrics.

A route accesses it through `state.py`. Tested through the routes.
"""

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

from headwise.errors import HeadwiseError
from headwise.serving.http.access_control import AccessControl
from headwise.serving.http.api_keys import KeyRing, read_keys
from headwise.serving.http.errors import Refusal
from headwise.serving.http.metrics import Metrics
from headwise.serving.http.rate_limit import RateLimit
from headwise.serving.http.server_settings import ServerSettings
from headwise.serving.work.completions import Completions
from headwise.serving.work.demo_training import DemoTraining
from headwise.serving.work.loaded_models import LoadedModel
from headwise.serving.work.process_usage import resident_bytes
from headwise.serving.work.process_worker import ProcessWorker
from headwise.serving.work.worker import Worker
from headwise.tasks.translation.translator import Translator

logger = logging.getLogger(__name__)


class Server:
    """The models and everything that serves them; one in a process."""

    def __init__(
        self,
        models: Mapping[str, LoadedModel],
        settings: ServerSettings,
        *,
        use_processes: bool = False,
    ) -> None:
        """`use_processes`: translators search in worker processes where that is possible."""
        self.models, self.settings = dict(models), settings
        self.workers: dict[str | None, Worker] = {
            name: make_worker(one, use_processes=use_processes) for name, one in models.items()
        }
        """By model; None: the worker for computations without a model."""
        self.workers[None] = Worker("server")
        self._places = {name: asyncio.Semaphore(settings.queue) for name in self.workers}
        self.tokenizing = ThreadPoolExecutor(
            max_workers=2, thread_name_prefix="headwise-tokenizing"
        )
        keys = KeyRing({} if settings.keys is None else read_keys(settings.keys))
        self.access = AccessControl(keys, RateLimit(settings.requests_a_minute))
        self.metrics = Metrics()
        self.demo_training = None if settings.demo is None else DemoTraining(settings.demo)
        self.is_warm = self.is_draining = False
        self.failure: HeadwiseError | None = None
        """Why the server cannot serve at all."""
        self.on_failure: Callable[[], None] = lambda: logger.error("%s", self.failure)
        self._completions: Completions | None = None
        self.num_accepted = 0
        """Requests that have a place in a queue and no reply yet."""

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
            if isinstance(worker, ProcessWorker):
                await worker.start_process()

    @property
    def resident_bytes(self) -> int:
        """Memory of this process and of its worker processes."""
        workers = [worker for worker in self.workers.values() if isinstance(worker, ProcessWorker)]
        return resident_bytes() + sum(worker.resident_bytes for worker in workers)

    def completions(self, loop: asyncio.AbstractEventLoop) -> Completions:
        """Where workers report finished jobs to this event loop."""
        if self._completions is None or self._completions.loop is not loop:
            self._completions = Completions(loop)
        return self._completions

    def fail(self, reason: HeadwiseError) -> None:
        """Nothing can be served: `on_failure` ends the process."""
        self.failure = reason
        self.on_failure()

    def add(self, model: LoadedModel) -> None:
        """Add a model while the server runs."""
        if model.name in self.models:
            return
        self.workers[model.name] = worker = Worker(model.name)
        self._places[model.name] = asyncio.Semaphore(self.settings.queue)
        worker.start()
        self.models[model.name] = model

    async def stop(self) -> None:
        for worker in self.workers.values():
            if isinstance(worker, ProcessWorker):
                await worker.stop_process()
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        if self.demo_training is not None:
            self.demo_training.end()
        for worker in self.workers.values():
            worker.close()
        self.tokenizing.shutdown(cancel_futures=True)

    @asynccontextmanager
    async def queue_place(self, model: str | None, *, until: float) -> AsyncIterator[None]:
        """A place in the queue of a model's worker; a refusal if none is free by `until`."""
        if self.is_draining:
            raise Refusal(
                503,
                "stopping",
                en="the server is stopping; try another",
                zh="服务器正在停止；请换一台",
                retry_after=5,
            )
        places = self._places[model]
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


def make_worker(model: LoadedModel, *, use_processes: bool) -> Worker:
    """A worker; with a process for a translator on a CPU.

    A process loads the model once more, and GPU memory should not hold it twice.
    """
    translator, files = model.value, model.bundle_files
    if (
        not use_processes
        or files is None
        or not isinstance(translator, Translator)
        or os.name != "posix"
    ):
        return Worker(model.name)
    if translator.model.output.weight.device.type != "cpu":
        return Worker(model.name)
    return ProcessWorker(model.name, translator, files, precision=model.precision)
