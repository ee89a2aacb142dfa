"""The server's end of a worker process: sends and receives messages, and detects a process that
hangs.

    1 s without a message                        sends a `ping`, which the process answers between
                                                 two steps of a search
    5 s without a message or processor time      it hangs: kills it and tells its owner
    60 s without a message, but processor time   the same, because no step takes that long

Seconds are counted in heartbeats of the server, so that a pause of the server itself is not taken
for a pause of the process. While the pipe is full, messages stay with the owner (`is_writable`), so
a process that reads nothing costs no memory here. Tested: a process that is stopped, busy, full,
dying.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, Protocol

from headwise.child_processes import child_options
from headwise.serving.work.pipe_frames import FrameReader, write_frame
from headwise.serving.work.process_usage import cpu_ticks, resident_bytes

HEARTBEAT_SECONDS = 1.0
IDLE_BEATS, BUSY_BEATS = 5, 60
START_FACTOR = 4
"""Limits are this many times longer during the start: reading weights from a slow disk uses no
processor time."""

logger = logging.getLogger(__name__)


class ProcessOwner(Protocol):
    """Receives the messages of the process, and learns when the pipe has space and when it ends."""

    def on_frame(self, frame: dict[str, Any]) -> None: ...

    def on_writable(self) -> None: ...

    def on_exit(self) -> None: ...


class ProcessHandle(asyncio.SubprocessProtocol):
    """One process, from its start to its end."""

    def __init__(self, owner: ProcessOwner) -> None:
        self._owner = owner
        self._frames = FrameReader()
        self._loop = asyncio.get_running_loop()
        self._transport: Any = None
        self._heartbeat: asyncio.TimerHandle | None = None
        self._beats_silent = self._beats_idle = 0
        self._used = 0
        self.has_started = self.has_ended = False
        self.is_writable = True
        self._is_killed = False

    @property
    def is_answering(self) -> bool:
        """It has loaded its model and has not been killed."""
        return self.has_started and not self._is_killed

    @property
    def pid(self) -> int:
        return int(self._transport.get_pid())

    @property
    def resident_bytes(self) -> int:
        return resident_bytes(self.pid)

    def write(self, frame: dict[str, Any]) -> None:
        self._transport.get_pipe_transport(0).write(write_frame(frame))

    def end_input(self) -> None:
        """Close the pipe: the process finishes what it has and ends."""
        self._transport.get_pipe_transport(0).close()

    def kill(self) -> None:
        self._is_killed = True
        self._transport.kill()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._heartbeat = self._loop.call_later(HEARTBEAT_SECONDS, self._on_heartbeat)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self._beats_silent = self._beats_idle = 0
        try:
            for frame in self._frames.feed(data):
                if "started" in frame:
                    self.has_started = True
                if "pong" not in frame:
                    self._owner.on_frame(frame)
        except ValueError:  # something else has written into the pipe
            logger.error("a worker process has sent something unreadable and is killed")
            self._frames = FrameReader()
            self.kill()

    def pause_writing(self) -> None:
        self.is_writable = False

    def resume_writing(self) -> None:
        self.is_writable = True
        self._owner.on_writable()

    def process_exited(self) -> None:
        self.has_ended = True
        if self._heartbeat is not None:
            self._heartbeat.cancel()
        self._transport.close()
        self._owner.on_exit()

    def _on_heartbeat(self) -> None:
        used = cpu_ticks(self.pid)
        if used is None or used != self._used:
            self._used, self._beats_idle = used or 0, 0
        factor = 1 if self.has_started else START_FACTOR
        if self._beats_idle >= factor * IDLE_BEATS or self._beats_silent >= factor * BUSY_BEATS:
            logger.error(
                "a worker process has not answered for %d s and is killed",
                self._beats_silent * HEARTBEAT_SECONDS,
            )
            self.kill()
            return
        if self._beats_silent == 1 and self.has_started:
            self.write({"ping": True})
        self._beats_silent += 1
        self._beats_idle += 1
        self._heartbeat = self._loop.call_later(HEARTBEAT_SECONDS, self._on_heartbeat)


async def start_process(
    command: Sequence[str], owner: ProcessOwner, *, files: Sequence[int]
) -> ProcessHandle:
    """Start it in a session of its own: Ctrl-C reaches only the server, which closes the pipe."""

    def make() -> ProcessHandle:
        return ProcessHandle(owner)

    _, process = await asyncio.get_running_loop().subprocess_exec(
        make, *command, stderr=None, **child_options(files=files)
    )
    return process
