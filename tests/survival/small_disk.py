"""Trainings on disks too small for them: `unshare --mount --map-root-user python -m
tests.survival.small_disk DIR`.

In its own mount namespace a process may mount a file system of any size, seen by nobody else.
Prints JSON: for each scene the exit status and what was said.
"""

import contextlib
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

from headwise.cli.main import main
from headwise.cli.terminal import display
from headwise.storage import sha256_of
from headwise.training.progress import Progress
from tests.tasks.tiny import OVERRIDES

WORDS = (
    "train",
    "pocket",
    *OVERRIDES,
    "training.steps=16",
    "training.checkpoint_every=4",
    "data.valid=null",
    "data.test=null",
)


def say(*words: object) -> dict[str, Any]:
    """A command as a user gives it."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        status = main([str(word) for word in words])
    return {"status": status, "said": said.getvalue()[-6000:]}


def mount(place: Path, options: str) -> None:
    place.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)], check=True)


class Filling(display.TrainingDisplay):
    """Fills the disk after step 6 and says so; empties it again after step `until`."""

    place: Path
    until: int

    def training(self, progress: Progress) -> None:
        filler = self.place / "filler"
        if progress.step == 6 and not filler.exists():
            with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
                while file.write(bytes(1 << 16)):
                    pass
        if progress.step == self.until:
            filler.unlink(missing_ok=True)
        super().training(progress)


def fill_while_training(place: Path, run: str, *, until: int) -> dict[str, Any]:
    plain, Filling.place, Filling.until = display.TrainingDisplay, place, until
    display.TrainingDisplay = Filling  # type: ignore[misc]
    try:
        return say(*WORDS, "--run", place / run)
    finally:
        display.TrainingDisplay = plain  # type: ignore[misc]
        (place / "filler").unlink(missing_ok=True)


def weights(run: Path) -> str:
    return sha256_of(run / "model/weights.safetensors")


def scenes(directory: Path) -> dict[str, Any]:
    answers: dict[str, Any] = {"undisturbed": say(*WORDS, "--run", directory / "whole")}
    expected = weights(directory / "whole")

    place = directory / "tiny"
    mount(place, "size=12m")
    answers["too small from the start"] = say(*WORDS, "--run", place / "run")
    answers["too small from the start"]["steps"] = (place / "run/log.jsonl").exists()

    place = directory / "small"
    mount(place, "size=64m")
    answers["full for a while"] = fill_while_training(place, "while", until=10)
    answers["full for a while"]["same"] = weights(place / "while") == expected
    answers["full to the end"] = fill_while_training(place, "end", until=1000)
    answers["full to the end"]["checkpoints"] = sorted(
        path.name for path in (place / "end/checkpoints").iterdir()
    )
    answers["doctor"] = say("doctor", place / "end")
    answers["resumed"] = say(*WORDS, "--run", place / "end", "--resume")
    answers["resumed"]["same"] = weights(place / "end") == expected

    subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
    answers["read-only: train"] = say(*WORDS, "--run", place / "new")
    answers["read-only: resume"] = say(*WORDS, "--run", place / "end", "--resume")
    answers["read-only: doctor"] = say("doctor", place / "end")
    (directory / "text").write_text("The cat sleeps.\n", encoding="utf-8")
    answers["read-only: translate"] = say("translate", "--model", place / "end", directory / "text")
    return answers


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(json.dumps(scenes(Path(sys.argv[1]))))
