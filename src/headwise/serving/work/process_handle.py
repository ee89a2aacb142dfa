"""One process that searches: frames to it, frames from it, and whether it still answers.

    every second without a word from it    it is asked (`ping`); it answers between two steps of a search
    5 seconds without an answer, and it has not computed either    it hangs: killed, and its owner is told
    60 seconds without an answer although it computes              no step takes that long: the same

Seconds are counted as beats of this process: if the server itself stood still, nobody is blamed.
What is written while the pipe is full stays with the owner (`has_room`), so a process that reads
nothing costs no memory here. Tested: stopped, busy, full, dying.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from headwise.child_processes import child_options
from headwise.serving.http.metrics import resident_bytes
from headwise.serving.work.pipe_frames import FrameReader, write_frame

BEAT_SECONDS = 1.0
SILENT_BEATS, BUSY_BEATS = 5, 60
START_FACTOR = 4
"""As many times longer while it starts: reading weights from a slow disk takes no processor time."""

logger = logging.getLogger(__name__)


class Owner(Protocol):
    """Who is told of what the process says, of room in its pipe, and of its end."""

    def take(self, frame: dict[str, Any]) -> None: ...

    def on_room(self) -> None: ...

    def bury(self) -> None: ...


class SearchProcess(asyncio.SubprocessProtocol):
    """A process, from its start to its end."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._frames = FrameReader()
        self._loop = asyncio.get_running_loop()
        self._transport: Any = None
        self._beat_handle: asyncio.TimerHandle | None = None
        self._beats_unheard = self._beats_unmoved = 0
        self._used = 0
        self.has_begun = self.has_ended = False
        self.has_room = True
        self._is_killed = False

    @property
    def is_answering(self) -> bool:
        """It has read its model, and has not been given up."""
        return self.has_begun and not self._is_killed

    @property
    def pid(self) -> int:
        return int(self._transport.get_pid())

    @property
    def resident_bytes(self) -> int:
        return resident_bytes(Path(f"/proc/{self.pid}/statm"))

    def write(self, frame: dict[str, Any]) -> None:
        self._transport.get_pipe_transport(0).write(write_frame(frame))

    def end_input(self) -> None:
        """It finishes what it has and ends."""
        self._transport.get_pipe_transport(0).close()

    def kill(self) -> None:
        self._is_killed = True
        self._transport.kill()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._beat_handle = self._loop.call_later(BEAT_SECONDS, self._beat)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self._beats_unheard = self._beats_unmoved = 0
        try:
            for frame in self._frames.feed(data):
                if "begun" in frame:
                    self.has_begun = True
                if "pong" not in frame:
                    self._owner.take(frame)
        except ValueError:  # something else writes into the pipe
            logger.error("what a searching process says cannot be read: it is ended")
            self._frames = FrameReader()
            self.kill()

    def pause_writing(self) -> None:
        self.has_room = False

    def resume_writing(self) -> None:
        self.has_room = True
        self._owner.on_room()

    def process_exited(self) -> None:
        self.has_ended = True
        if self._beat_handle is not None:
            self._beat_handle.cancel()
        self._transport.close()
        self._owner.bury()

    def _beat(self) -> None:
        used = processor_ticks(self.pid)
        if used is None or used != self._used:
            self._used, self._beats_unmoved = used or 0, 0
        factor = 1 if self.has_begun else START_FACTOR
        if (
            self._beats_unmoved >= factor * SILENT_BEATS
            or self._beats_unheard >= factor * BUSY_BEATS
        ):
            logger.error(
                "a searching process has not answered for %d s: it is ended",
                self._beats_unheard * BEAT_SECONDS,
            )
            self.kill()
            return
        if self._beats_unheard == 1 and self.has_begun:
            self.write({"ping": True})
        self._beats_unheard += 1
        self._beats_unmoved += 1
        self._beat_handle = self._loop.call_later(BEAT_SECONDS, self._beat)


async def start_process(
    command: Sequence[str], owner: Owner, *, files: Sequence[int]
) -> SearchProcess:
    """Started in a session of its own: Ctrl-C reaches the server alone, which closes the pipe."""
    make: Callable[[], SearchProcess] = lambda: SearchProcess(owner)  # noqa: E731 - its type is what matters
    _, process = await asyncio.get_running_loop().subprocess_exec(
        make, *command, stderr=None, **child_options(files=files)
    )
    return process


def processor_ticks(pid: int) -> int | None:
    """Processor time a process has used; None where the system does not say."""
    try:
        fields = (
            Path(f"/proc/{pid}/stat")
            .read_text(encoding="ascii", errors="replace")
            .rpartition(")")[2]
            .split()
        )
        return int(fields[11]) + int(fields[12])
    except (OSError, IndexError, ValueError):
        return None
