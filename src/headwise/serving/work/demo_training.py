"""The demo's model, trained because the page was asked to: a process of its own, watched through
its log.

`headwise explore` without a model offers this where no demo was trained yet. The process is the one
of `headwise train pocket`, so it survives nothing special: stopped, or left by a server that was
killed, it saves and goes on where it stopped when it is asked for again; finished, its bundle is
loaded and served like any other. Tested: the course with a command that only pretends, failures, a
second start while one is going on.
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
    """How far it is; `state` ready: the bundle lies in `directory`."""

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
    """One training at a time, in `directory` (en-de) or a neighbour named after the pair."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.pair: Pair = "en-de"
        self._process: subprocess.Popen[bytes] | None = None
        self._said: IO[bytes] | None = None
        self._began = 0.0

    @property
    def run(self) -> Path:
        return self.directory if self.pair == "en-de" else Path(f"{self.directory}-{self.pair}")

    @property
    def is_going_on(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self, pair: Pair) -> None:
        """Begin, or go on with what is there; nothing happens while one is going on or when it is
        done.
        """
        if self.is_going_on:
            return
        self.pair = pair
        if (self.run / "model" / MANIFEST).exists():
            return
        self._said = tempfile.TemporaryFile()  # noqa: SIM115
        self._began = time.monotonic()
        self._process = subprocess.Popen(
            self.command(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._said,
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
        """What the process has written so far."""
        if (self.run / "model" / MANIFEST).exists():
            return TrainingStatus("ready", self.pair)
        if self._process is None:
            return TrainingStatus("absent", self.pair)
        if not self.is_going_on:
            return TrainingStatus("failed", self.pair, message=self._last_words())
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
        """Have it stop and save, without waiting for that."""
        if self._process is not None and self.is_going_on:
            self._process.terminate()

    def end(self) -> None:
        """Stop it; what it has learned is kept and gone on with next time."""
        if self._process is not None and self.is_going_on:
            self.interrupt()
            try:
                self._process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._said is not None:
            self._said.close()

    def _steps(self) -> int:
        try:
            return int(read_settings_file(self.run / "recipe.yaml")["training"]["steps"])
        except (HeadwiseError, OSError, KeyError, TypeError, ValueError):
            return 0  # it has only just begun

    def _newest_lines(self) -> dict[str, dict[str, Any]]:
        """The newest whole line of each kind in the log."""
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

    def _last_words(self) -> str:
        assert self._said is not None
        self._said.seek(0)
        said = self._said.read().decode("utf-8", errors="replace").strip().splitlines()
        return said[-1][-500:] if said else ""
