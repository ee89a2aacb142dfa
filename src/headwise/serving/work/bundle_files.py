"""The files of a bundle as they were when the server began, whatever is written in their place
later.

A searching process may have to be started again hours after the server, and `train --resume`
replaces `model/` as a matter of course. The server therefore keeps the files open: a file that was
renamed or deleted can still be read by whoever has it open. A process that finds another model
under the name (or none) copies these into a directory of its own, reads them there, and deletes the
copy. Only the operator's restart changes the model that is served. Tested: a bundle replaced,
deleted, replaced while it was being read.
"""

import hashlib
import os
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from headwise.errors import DataError
from headwise.storage import MANIFEST

CHUNK = 1 << 20
MAX_FILES = 64
"""A translator has fewer than twenty; whoever has more has something else in the directory."""


def name_manifest(bundle: Path) -> str:
    """Which model it is: the manifest lists the SHA-256 of every file."""
    try:
        return hashlib.sha256((bundle / MANIFEST).read_bytes()).hexdigest()
    except OSError:
        return "gone"


class HeldFiles:
    """Open files of one bundle; closed with the object."""

    def __init__(self, bundle: Path) -> None:
        self.bundle = bundle
        self.manifest = name_manifest(bundle)
        self.descriptors: dict[str, int] = {}
        weakref.finalize(self, _close, self.descriptors)
        if (
            os.name != "posix"
        ):  # elsewhere an open file cannot be replaced, and no process is started that would read it
            return
        for path in sorted(bundle.rglob("*"))[:MAX_FILES]:
            if path.is_file():
                name = path.relative_to(bundle).as_posix()
                self.descriptors[name] = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))

    def check_unchanged(self) -> None:
        """To be called after the model was read: both must be of the same bundle."""
        if name_manifest(self.bundle) != self.manifest:
            raise DataError(
                "was replaced while it was being read; start the server again",
                "在读取过程中被替换；请重新启动服务器",
                file=self.bundle,
            )


@contextmanager
def copied(descriptors: Mapping[str, int]) -> Iterator[Path]:
    """A directory with the content of open files; gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="headwise-") as name:
        directory = Path(name)
        for inside, descriptor in descriptors.items():
            path = directory / inside
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as writer:
                place = 0
                # pread: the place in the file is shared with every process that has it open.
                while content := os.pread(descriptor, CHUNK, place):
                    writer.write(content)
                    place += len(content)
        yield directory


def _close(descriptors: dict[str, int]) -> None:
    for descriptor in descriptors.values():
        os.close(descriptor)
