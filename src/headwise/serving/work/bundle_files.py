"""Keeps the files of a bundle open, so that the server can load the same model again later.

A worker process may have to be restarted hours after the server, and `train --resume` may have
replaced `model/` by then. A process that has a file open can still read it after it was renamed or
deleted. If a new worker process finds another model in the directory, it copies the open files to a
temporary directory and loads the model from there. So only a restart of the server changes the
model that is served. Tested: a bundle replaced, deleted, replaced while it was being read.
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
"""A translator has fewer than twenty; more files mean that the directory holds something else."""


def hash_manifest(bundle: Path) -> str:
    """The identity of a model: the manifest lists the SHA-256 of every file."""
    try:
        return hashlib.sha256((bundle / MANIFEST).read_bytes()).hexdigest()
    except OSError:
        return "gone"


class BundleFiles:
    """Open files of one bundle; closed with the object."""

    def __init__(self, bundle: Path) -> None:
        self.bundle = bundle
        self.manifest = hash_manifest(bundle)
        self.descriptors: dict[str, int] = {}
        weakref.finalize(self, _close, self.descriptors)
        # Elsewhere an open file cannot be replaced, and there are no worker processes.
        if os.name != "posix":
            return
        for path in sorted(bundle.rglob("*"))[:MAX_FILES]:
            if path.is_file():
                name = path.relative_to(bundle).as_posix()
                self.descriptors[name] = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))

    def check_unchanged(self) -> None:
        """Call this after loading the model: it must be of the same bundle as the open files."""
        if hash_manifest(self.bundle) != self.manifest:
            raise DataError(
                "was replaced while it was being read; start the server again",
                "在读取过程中被替换；请重新启动服务器",
                file=self.bundle,
            )


@contextmanager
def copied_files(descriptors: Mapping[str, int]) -> Iterator[Path]:
    """A temporary directory with the content of open files."""
    with tempfile.TemporaryDirectory(prefix="headwise-") as name:
        directory = Path(name)
        for inside, descriptor in descriptors.items():
            path = directory / inside
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as writer:
                position = 0
                # pread: processes that share an open file also share its position.
                while content := os.pread(descriptor, CHUNK, position):
                    writer.write(content)
                    position += len(content)
        yield directory


def _close(descriptors: dict[str, int]) -> None:
    for descriptor in descriptors.values():
        os.close(descriptor)
