"""The processes of one training: rank, number of processes, and their collective operations.

    OneProcess         a single process: every operation below is trivial
    SeveralProcesses   N processes started by torchrun, connected by torch.distributed

    greatest(n)        the maximum over processes: signals and clocks, so that all stop together
    add_up(tensor)     the sum over processes, in place: losses, token counts, gradients
    spread(tensor)     broadcast the tensor of the first process
    ask_first(find)    the first process calls `find` and sends the result to all others

Only the first process holds the lock, writes files and shows progress. Nothing is pickled:
processes exchange tensors and JSON. Tensors on a GPU use NCCL, everything else gloo.

When a process dies, the system closes its connections, and the next collective operation fails in
all others with a LostProcessError. A process that ends with an error of its own first writes it to
torchrun's store; the others find it there and end with the same exit status without repeating the
message. Tested with real processes, killed and interrupted at random moments.
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

# All processes work in step, so one that is this late has failed. Validation and saving, which only
# the first process does, have no time limit.
LONGEST_WAIT = timedelta(minutes=10)
LONGEST_WORK = timedelta(days=7)
# How long the other processes wait for the first one to report a lost process: it may still save.
LONGEST_SILENCE = 5.0

WORDS = "headwise/last-words"


class LostProcessError(HeadwiseError):
    """Another process of the run has ended or does not answer."""


class Processes(Protocol):
    """What training needs to know about the processes of its run."""

    @property
    def number(self) -> int:
        """The rank of this process, from 0."""
        ...

    @property
    def count(self) -> int: ...

    @property
    def is_first(self) -> bool: ...

    @property
    def is_alone(self) -> bool:
        """Whether there is no group; a group of one process is a group."""
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
        """If `find` fails, the first process ends with its error, the others with a
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
        """Send from the first process to all. Receivers poll, so that they can react to signals;
        only the first process may keep the others waiting.
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
        """Before ending with an error: write it to the store, or raise SaidElsewhere if another
        process has already reported one.
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
    """Join the process group of torchrun, or use a single process.

    On exit no process is left waiting, and an error is reported once.
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
        # torchrun stops all processes as soon as one has ended: ignore its signal while leaving.
        with StopRequest():
            processes.leave(error)
        raise
    dist.destroy_process_group()


def is_launched() -> bool:
    """Whether torchrun, or a scheduler with the same variables, started this process."""
    return {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"} <= os.environ.keys()


def world_size() -> int:
    """How many processes were started together; 1 without torchrun."""
    value = os.environ.get("WORLD_SIZE", "1") if is_launched() else "1"
    if not value.isdecimal() or int(value) < 1:
        raise UsageError(
            f"the environment variable WORLD_SIZE is {value!r}, but the number of processes is "
            "needed; start with torchrun, or unset the variable",
            f"环境变量 WORLD_SIZE 为 {value!r}，而它应为进程数；请用 torchrun 启动，或取消该变量",
        )
    return int(value)


def check_devices(device: torch.device) -> None:
    """Raise unless every process of a machine has a GPU of its own."""
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
    """The exit status for this error."""
    match error:
        case HeadwiseError():
            return error.exit_status
        case SystemExit(code=int(code)):
            return code
        case KeyboardInterrupt():
            return 130
        case _:
            return 1
