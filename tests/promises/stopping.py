"""A watcher that sends a signal to its own process when training has reached a step."""

import os
import signal

from headwise.tasks.events import Silence
from headwise.training.progress import Progress


class StopAtStep(Silence):
    """SIGTERM after so many steps."""

    def __init__(self, step: int) -> None:
        self.step = step

    def training(self, progress: Progress) -> None:
        if progress.step == self.step and progress.phase == "training":
            os.kill(os.getpid(), signal.SIGTERM)
