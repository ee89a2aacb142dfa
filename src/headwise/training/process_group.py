"""The processes of one run: which one I am, how many we are, and the few things all of us do
together.

    OneProcess        one process: everything below is trivial, and training reads as if there were nothing else
    SeveralProcesses     N processes that torchrun started on one machine or several, connected by torch.distributed

    greatest(n)      the largest of everybody's numbers: signals and clocks, so that all stop after the same step
    add_up(tensor)   the sum of everybody's tensors, in place: losses, token counts, gradients
    spread(tensor)   the first process's numbers for all
    ask_first(find)  what the first process finds out, for all, however long it takes (validating, saving)

The first process alone talks: it holds the lock, writes the files and shows progress. Nothing here
is pickled; what is shared is tensors and JSON. Tensors on a GPU go through NCCL, all else through
gloo.

When a process dies, the system closes its connections and the next thing done together fails on all
others: that is a LostProcessError. A process that leaves with an error of its own writes it down
first ("last words" in torchrun's store); the others find it there, and leave with the same exit
status without saying it again. Tested with real processes, killed and interrupted at random
moments.
"""

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.rendezvous import rendezvous

from headwise.errors import HeadwiseError, SaidElsewhere, UsageError
from headwise.training.signals import StopRequest

# All processes do the same work at the same time: one that is so late is not coming. Validating and
# saving, which only the first does, are waited for as long as they take.
LONGEST_WAIT = timedelta(minutes=10)
LONGEST_WORK = timedelta(days=7)
# How long the others leave it to the first process to say that one was lost: it may have something
# to save.
LONGEST_SILENCE = 5.0

WORDS = "headwise/last-words"


class LostProcessError(HeadwiseError):
    """Another process of the run is gone or does not answer."""


class Processes(Protocol):
    """What training needs to know of the processes of its run."""

    @property
    def number(self) -> int:
        """Mine, from 0."""
        ...

    @property
    def count(self) -> int: ...

    @property
    def is_first(self) -> bool: ...

    @property
    def is_alone(self) -> bool:
        """Whether there is nobody to talk to; a group of one process is a group."""
        ...

    def greatest(self, number: int) -> int: ...

    def add_up(self, tensor: Tensor) -> None: ...

    def spread(self, tensor: Tensor) -> None: ...

    def ask_first(self, find: Callable[[], Any]) -> Any: ...


class OneProcess:
    """The only process."""

    number, count, is_first, is_alone = 0, 1, True, True

    def greatest(self, number: int) -> int:
        return number

    def add_up(self, tensor: Tensor) -> None:
        pass

    def spread(self, tensor: Tensor) -> None:
        pass

    def ask_first(self, find: Callable[[], Any]) -> Any:
        return find()


class SeveralProcesses:
    """One of several processes; made by `join_processes`."""

    is_alone = False

    def __init__(self, store: Any, *, number: int, count: int) -> None:
        self._store, self.number, self.count = store, number, count
        self._patient = dist.new_group(backend="gloo", timeout=LONGEST_WORK)

    @property
    def is_first(self) -> bool:
        return self.number == 0

    def greatest(self, number: int) -> int:
        given = torch.tensor(number, dtype=torch.int64)
        with detecting_lost_processes():
            dist.all_reduce(given, op=dist.ReduceOp.MAX)
        return int(given)

    def add_up(self, tensor: Tensor) -> None:
        with detecting_lost_processes():
            dist.all_reduce(tensor)

    def spread(self, tensor: Tensor) -> None:
        staged = tensor.detach().cpu().contiguous()
        with detecting_lost_processes():
            dist.broadcast(staged, src=0)
        if not self.is_first:
            tensor.detach().copy_(staged)

    def ask_first(self, find: Callable[[], Any]) -> Any:
        """If finding out fails, the first process leaves with its error and the others with a
        LostProcessError.
        """
        content = bytearray(json.dumps(find()).encode() if self.is_first else b"")
        size = torch.tensor(len(content))
        self._pass_on(size)
        given = (
            torch.frombuffer(content, dtype=torch.uint8)
            if self.is_first
            else torch.empty(int(size)).byte()
        )
        self._pass_on(given)
        return json.loads(given.numpy().tobytes())

    def _pass_on(self, tensor: Tensor) -> None:
        """From the first process to all; waits awake, so that a signal is heard. Only the first may
        keep the others waiting.
        """
        deadline = time.monotonic() + LONGEST_WAIT.total_seconds()
        with detecting_lost_processes():
            work = dist.broadcast(tensor, src=0, group=self._patient, async_op=True)
            while not work.is_completed():
                if self.is_first and time.monotonic() > deadline:
                    raise LostProcessError("another process does not answer", "另一个进程没有回应")
                time.sleep(0.002)
            work.wait()

    def leave(self, error: BaseException) -> None:
        """Before leaving with an error: write it down, or find out that another process did and
        raise SaidElsewhere.
        """
        mine: dict[str, Any] = {
            "process": self.number,
            "status": exit_status_of(error),
            "text": str(error),
        }
        is_loss = isinstance(error, LostProcessError)
        try:
            deadline = time.monotonic() + (LONGEST_SILENCE if is_loss and not self.is_first else 0)
            while not (said := self._store.check([WORDS])) and time.monotonic() < deadline:
                time.sleep(0.05)
            if is_loss and said:
                raise SaidElsewhere(
                    exit_status=json.loads(self._store.get(WORDS))["status"]
                ) from None
            first = json.loads(self._store.compare_set(WORDS, "", json.dumps(mine)))
        except dist.DistError:  # the store was kept by the process that died
            return
        if (
            isinstance(error, HeadwiseError)
            and first["process"] != self.number
            and first["text"] == mine["text"]
        ):
            raise SaidElsewhere(exit_status=mine["status"]) from None


@contextlib.contextmanager
def join_processes() -> Iterator[Processes]:
    """Meet the other processes torchrun started, or be alone; on leaving, nobody is left waiting
    and nothing is said twice.
    """
    if not is_launched():
        yield OneProcess()
        return
    backend = "gloo"
    if torch.cuda.is_available() and dist.is_nccl_available():
        backend = "cpu:gloo,cuda:nccl"
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
    with detecting_lost_processes():
        store, number, count = next(iter(rendezvous("env://", timeout=LONGEST_WAIT)))
        dist.init_process_group(
            backend, store=store, rank=number, world_size=count, timeout=LONGEST_WAIT
        )
        processes = SeveralProcesses(store, number=number, count=count)
    try:
        yield processes
    except BaseException as error:
        with (
            StopRequest()
        ):  # torchrun asks all to stop as soon as one has: a process that is leaving has heard it
            processes.leave(error)
        raise
    dist.destroy_process_group()


def is_launched() -> bool:
    """Whether a launcher (torchrun, or a scheduler that speaks like it) started this process as one
    of several.
    """
    return {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"} <= os.environ.keys()


def check_devices(device: torch.device) -> None:
    """On a GPU every process of a machine needs one of its own."""
    here = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    if is_launched() and device.type == "cuda" and here > torch.cuda.device_count():
        raise UsageError(
            f"{here} processes were started on a machine with {torch.cuda.device_count()} GPU(s), "
            f"and each needs one; use torchrun --nproc-per-node={torch.cuda.device_count()}, or "
            "training.device=cpu",
            f"在有 {torch.cuda.device_count()} 个 GPU 的机器上启动了 {here} 个进程，"
            f"而每个进程需要一个；请使用 torchrun --nproc-per-node={torch.cuda.device_count()}，"
            "或 training.device=cpu",
        )


@contextlib.contextmanager
def detecting_lost_processes() -> Iterator[None]:
    """Turn a broken or silent connection into a LostProcessError; other errors pass."""
    try:
        yield
    except RuntimeError as error:
        if not isinstance(error, dist.DistError) and "gloo" not in str(error):
            raise
        raise LostProcessError(
            "another process of this run is gone or does not answer",
            "本次运行的另一个进程已不在，或没有回应",
        ) from error


def exit_status_of(error: BaseException) -> int:
    """What a shell will see."""
    match error:
        case HeadwiseError():
            return error.exit_status
        case SystemExit(code=int(code)):
            return code
        case KeyboardInterrupt():
            return 130
        case _:
            return 1
