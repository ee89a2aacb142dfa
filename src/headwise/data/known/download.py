"""Stores a downloaded file: writes it under a temporary name, verifies its SHA-256, renames it.

The checksum is that of the uncompressed text, so that a file compressed by another program is still
the same corpus. A publisher may serve it inside a zip (an address that ends in #MEMBER), in another
encoding, or with an extra empty line at its end (`KnownFile.change`).

Tested against: right bytes, wrong bytes, too many bytes, a zip without the member, a file
compressed by another program.
"""

import gzip
import hashlib
import os
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from headwise.data.known.table import KnownFile
from headwise.errors import DataError
from headwise.storage import INCOMPLETE, flush_to_disk

_BLOCK = 1 << 18
_ALLOWANCE = 1.1
_MAX_ZIP = 1 << 25
Progress = Callable[[str, int, int], None]
"""Called with (file, bytes so far, bytes expected)."""


def digest_of_text(path: Path) -> str | None:
    """SHA-256 of the content of a file, uncompressed if it is gzip; None if it cannot be read."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
        with gzip.open(path, "rb") if packed else path.open("rb") as stream:
            while block := stream.read(_BLOCK):
                digest.update(block)
    except (OSError, EOFError, gzip.zlib.error):  # type: ignore[attr-defined]
        return None
    return digest.hexdigest()


def receive(
    stream: BinaryIO, path: Path, file: KnownFile, *, progress: Progress | None, is_original: bool
) -> None:
    """Write, verify and publish a file; plain text is compressed if the name ends in .gz."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}{INCOMPLETE}")
    unpacked = path.with_name(f"{path.name}.{os.getpid()}.plain{INCOMPLETE}")
    try:
        with temporary.open("wb") as output:
            for block in _bounded(stream, file, progress):
                output.write(block)
        if is_original and (file.change or "#" in (file.url or "")):
            temporary.write_bytes(_text_of(temporary, file))
        if path.suffix == ".gz" and not _is_gzip(temporary):
            os.rename(temporary, unpacked)
            # No name and no time in the header, so that equal texts give equal files.
            with (
                unpacked.open("rb") as plain,
                temporary.open("wb") as raw,
                gzip.GzipFile("", "wb", 9, raw, 0) as packed,
            ):
                shutil.copyfileobj(plain, packed)
        if digest_of_text(temporary) != file.sha256:
            raise DataError(
                "what arrived is not the published file (its SHA-256 differs); try again, or take "
                "another mirror",
                "收到的内容与发布的文件不符（SHA-256 不同）；请重试或更换镜像",
                file=path,
            )
        flush_to_disk(temporary)
        os.replace(temporary, path)
        flush_to_disk(path.parent)
    finally:
        temporary.unlink(missing_ok=True)
        unpacked.unlink(missing_ok=True)


def _text_of(arrived: Path, file: KnownFile) -> bytes:
    """The text inside what the publisher sent; what cannot be unpacked is left for the checksum to
    reject.
    """
    member = (file.url or "").partition("#")[2]
    content = arrived.read_bytes()
    if member:
        try:
            with zipfile.ZipFile(arrived) as archive, archive.open(member) as stream:
                content = stream.read(_most(file))
        except (zipfile.BadZipFile, KeyError, OSError, EOFError, RuntimeError, NotImplementedError):
            return content
    match file.change:
        case "latin-1":
            return content.decode("latin-1").encode()
        case "trim":
            return content.removesuffix(b"\n")
        case _:
            return content


def _most(file: KnownFile) -> int:
    return int(file.num_bytes * _ALLOWANCE) + _BLOCK


def _most_arriving(file: KnownFile) -> int:
    """Most bytes to accept; a zip may contain other files."""
    return max(_most(file), _MAX_ZIP) if "#" in (file.url or "") else _most(file)


def _is_gzip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


def _bounded(stream: BinaryIO, file: KnownFile, progress: Progress | None) -> Iterator[bytes]:
    """Blocks of the stream; more bytes than expected are an error."""
    received = 0
    while block := stream.read(_BLOCK):
        received += len(block)
        if received > _most_arriving(file):
            raise DataError(
                f"more than the expected {file.num_bytes:,} bytes arrived; this is not the "
                "published file",
                f"收到的数据超过预期的 {file.num_bytes:,} 字节；这不是发布的文件",
                file=file.path,
            )
        if progress is not None:
            progress(file.path, received, file.num_bytes)
        yield block
