"""The interface by which long work reports progress: notes, counts, values of training.

The library itself never prints. The command line implements the interface with rich or plain lines.
A user of the library sees nothing unless they pass an object of their own.
"""

from typing import Protocol, runtime_checkable

from headwise.tasks.declared_results import Results
from headwise.training.progress import Progress


class Events(Protocol):
    """A watcher of long work."""

    def note(self, text: str) -> None:
        """One sentence worth reading."""
        ...

    def count(self, label: str, done: int, total: int | None) -> None:
        """Work that can be counted; done = total ends it."""
        ...

    def share(self, label: str, done: float) -> None:
        """Work of which only the share that is done is known, 0 to 1."""
        ...

    def training(self, progress: Progress) -> None:
        """Where training stands."""
        ...


@runtime_checkable
class MetricsWatcher(Protocol):
    """A watcher that shows the metrics of validations by their names."""

    def learn_metrics(self, metrics: Results) -> None:
        """What the task of the training that follows declares."""
        ...


class Silence:
    """A watcher that ignores everything it is told."""

    def note(self, text: str) -> None: ...

    def count(self, label: str, done: int, total: int | None) -> None: ...

    def share(self, label: str, done: float) -> None: ...

    def training(self, progress: Progress) -> None: ...
