"""Writes `log.jsonl`, the log of a run: one JSON object a line.

There are two kinds of lines: `train` (loss and speed since the last line) and `valid` (metrics).
When a run is resumed, the log is cut back to the step of the checkpoint. This removes the lines of
lost steps and a half-written last line, so that a run that was killed ends with the same log as an
undisturbed one, apart from timings.
"""

import errno
import json
import logging
import math
import os
from collections.abc import Mapping
from io import FileIO
from pathlib import Path
from typing import Any

from headwise.language import say
from headwise.storage import write_text

logger = logging.getLogger(__name__)

DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


class LogFile:
    """An open log file; a line is written completely or not at all."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: FileIO | None = None
        self._warned = False

    def write(self, line: Mapping[str, Any]) -> None:
        """Append a line. If the disk is full, the line is lost with one warning, and training
        continues.
        """
        content = (json.dumps(finite(line), ensure_ascii=False, allow_nan=False) + "\n").encode()
        if self._file is None:
            self._file = FileIO(self.path, "a")
        end = os.fstat(self._file.fileno()).st_size
        try:
            if self._file.write(content) != len(content):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            if error.errno not in DISK_FULL:
                raise
            os.ftruncate(self._file.fileno(), end)
            if not self._warned:
                logger.warning(
                    say(
                        f"{self.path}: the disk is full, lines of the log are lost; free some "
                        "space",
                        f"{self.path}：磁盘已满，日志行丢失；请释放空间",
                    )
                )
            self._warned = True

    def sync(self) -> None:
        """Flush to disk before a checkpoint is published, so that the log is never older
        than it.
        """
        if self._file is not None:
            os.fsync(self._file.fileno())

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def cut_back(self, *, logged: int, validated: int) -> None:
        """Remove what will be written again: training lines after step `logged`, validations after
        step `validated`, and incomplete lines.
        """
        self.close()
        if self.path.exists():
            kept = [
                text
                for text, line in _whole_lines(self.path)
                if line["step"] <= (validated if line.get("kind") == "valid" else logged)
            ]
            write_text(self.path, "".join(kept))


def finite(line: Mapping[str, Any]) -> dict[str, Any]:
    """JSON has no NaN: numbers that are not finite become null."""
    return {
        k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in line.items()
    }


def read_log(path: Path) -> list[dict[str, Any]]:
    """All complete lines, oldest first."""
    return [line for _, line in _whole_lines(path)]


def _whole_lines(path: Path) -> list[tuple[str, dict[str, Any]]]:
    found = []
    with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
        for text in file:
            try:
                line = json.loads(text) if text.endswith("\n") else None
            except ValueError:
                line = None
            if isinstance(line, dict) and isinstance(line.get("step"), int):
                found.append((text, line))
    return found
