"""Trains the demo model for the page in a separate process and follows its log.

`headwise explore` offers this if it has no model and no demo model exists. The process is `headwise
train pocket`. If it is stopped, it saves, and the next start resumes. When it is done, the server
loads its bundle and serves it. Tested: the whole course with a fake command, failures, a second
start while one is running.
"""

import contextlib
import json
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

from headwise.child_processes import child_command, child_options
from headwise.errors import HeadwiseError
from headwise.settings import read_settings_file
from headwise.storage import MANIFEST

Pair = Literal["en-de", "de-en", "en-zh", "zh-en", "de-zh", "zh-de"]
TAIL_BYTES = 4_096


@dataclass(frozen=True)
class TrainingStatus:
    """The state of the training; `ready`: its bundle is in `directory`."""

    state: Literal["absent", "training", "ready", "failed"]
    pair: Pair
    step: int = 0
    steps: int = 0
    loss: float | None = None
    bleu: float | None = None
    """Of the last validation."""
    seconds: float = 0.0
    message: str = ""


class DemoTraining:
    """One training at a time, in `directory` (en-de) or beside it, named after the pair."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.pair: Pair = "en-de"
        self._process: subprocess.Popen[bytes] | None = None
        self._stderr: IO[bytes] | None = None
        self._began = 0.0

    @property
    def run(self) -> Path:
        return self.directory if self.pair == "en-de" else Path(f"{self.directory}-{self.pair}")

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self, pair: Pair) -> None:
        """Start or resume; does nothing while a training is running or when it is done."""
        if self.is_running:
            return
        self.pair = pair
        if (self.run / "model" / MANIFEST).exists():
            return
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115
        self._began = time.monotonic()
        self._process = subprocess.Popen(
            self.command(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._stderr,
            **child_options(),
        )

    def command(self) -> list[str]:
        source, target = self.pair.split("-")
        resume = ["--resume"] if (self.run / "recipe.yaml").exists() else []
        languages = [f"data.source={source}", f"data.target={target}"]
        return child_command(
            "headwise", "train", "pocket", "--run", str(self.run), *resume, *languages
        )

    def status(self) -> TrainingStatus:
        """The state, from what the process has written so far."""
        if (self.run / "model" / MANIFEST).exists():
            return TrainingStatus("ready", self.pair)
        if self._process is None:
            return TrainingStatus("absent", self.pair)
        if not self.is_running:
            return TrainingStatus("failed", self.pair, message=self._last_error_line())
        newest = self._newest_lines()
        line = newest.get("train", {})
        return TrainingStatus(
            "training",
            self.pair,
            step=int(line.get("step", 0)),
            steps=self._steps(),
            loss=line.get("loss"),
            bleu=newest.get("valid", {}).get("bleu"),
            seconds=round(time.monotonic() - self._began, 1),
        )

    def interrupt(self) -> None:
        """Tell the process to save and stop, without waiting."""
        if self._process is not None and self.is_running:
            self._process.terminate()

    def end(self) -> None:
        """Stop the process; the next start resumes."""
        if self._process is not None and self.is_running:
            self.interrupt()
            try:
                self._process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._stderr is not None:
            self._stderr.close()

    def _steps(self) -> int:
        try:
            return int(read_settings_file(self.run / "recipe.yaml")["training"]["steps"])
        except (HeadwiseError, OSError, KeyError, TypeError, ValueError):
            return 0  # it has only just started

    def _newest_lines(self) -> dict[str, dict[str, Any]]:
        """The newest complete line of each kind in the log."""
        try:
            with (self.run / "log.jsonl").open("rb") as log:
                log.seek(max(0, log.seek(0, 2) - TAIL_BYTES))
                lines = log.read().decode("utf-8", errors="replace").splitlines(keepends=True)
        except OSError:
            return {}
        newest: dict[str, dict[str, Any]] = {}
        for line in lines:
            with contextlib.suppress(ValueError):
                found = json.loads(line) if line.endswith("\n") else None
                if isinstance(found, dict):
                    newest[str(found.get("kind"))] = found
        return newest

    def _last_error_line(self) -> str:
        assert self._stderr is not None
        self._stderr.seek(0)
        lines = self._stderr.read().decode("utf-8", errors="replace").strip().splitlines()
        return lines[-1][-500:] if lines else ""
