"""Measures the peak memory of a computation inside a process that also holds other things.

    peak = (highest memory during the run) - (memory before the model was built)

On a GPU the allocator counts exactly. It counts from the building of the model on, because a
replayed CUDA graph allocates nothing: its memory shows only while it is recorded. On Linux the
high-water mark of resident memory is reset before the run (`/proc/self/clear_refs`), after freed
pages were returned (`malloc_trim`); this is accurate to a few percent. Other systems are not
supported. Memory is measured in a run of its own, because returning pages would slow a timed run.

The difference depends on the history of the process: what is loaded at the first training (torch's
libraries, the memory that an allocator keeps) is not loaded again at the second. So the result of a
training is the peak of the whole process (`peak_of_process`), which both have alike.

Tested against: work of known size, and two trainings in one process.
"""

import contextlib
import ctypes
from collections.abc import Callable
from pathlib import Path

import torch

MIB = 1 << 20


class MemoryMeter:
    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._before: float | None = None

    def start_building(self) -> None:
        self._before = self._now()
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self.device)

    def peak_of(self, run: Callable[[], object]) -> float | None:
        """MiB, or None if unknown; `run` was built and run once since `start_building`."""
        if not self.start_running():
            return None
        run()
        return self.peak()

    def start_running(self) -> bool:
        """Start measuring the peak; False if that is not possible."""
        return self._now() is not None and self._before is not None and self._reset_peak()

    def peak(self) -> float | None:
        """MiB since `start_running`, above the memory at `start_building`."""
        peak = self._peak()
        return None if peak is None or self._before is None else (peak - self._before) / MIB

    def peak_of_process(self) -> float | None:
        """MiB since `start_running`, with the program and its libraries; on a GPU, where the
        program takes none of the allocator's memory, the same as `peak`.
        """
        if self.device.type == "cuda":
            return self.peak()
        peak = self._peak()
        return None if peak is None else peak / MIB

    def _now(self) -> float | None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
            return float(torch.cuda.memory_allocated(self.device))
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL("libc.so.6").malloc_trim(0)
        return _process_status("VmRSS")

    def _reset_peak(self) -> bool:
        if self.device.type == "cuda":
            return True
        try:
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        except OSError:
            return False
        return True

    def _peak(self) -> float | None:
        if self.device.type == "cuda":
            return float(torch.cuda.max_memory_allocated(self.device))
        return _process_status("VmHWM")


def _process_status(name: str) -> float | None:
    """A line of /proc/self/status in bytes."""
    try:
        text = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    found = [line.split()[1] for line in text.splitlines() if line.startswith(f"{name}:")]
    return 1024.0 * int(found[0]) if found else None
