"""What long work tells its watcher: notes, counts, training progress. The library itself never
prints.

The command line draws these with rich or as plain lines; a library user gets silence unless they
hand in a watcher.
"""

from typing import Protocol

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


class Silence:
    """Watches and says nothing."""

    def note(self, text: str) -> None: ...

    def count(self, label: str, done: int, total: int | None) -> None: ...

    def share(self, label: str, done: float) -> None: ...

    def training(self, progress: Progress) -> None: ...
