"""Writes one file atomically: a kill at any moment leaves the old content or the new one.

New content is written to a temporary file in the same directory, flushed to disk and renamed. A
JSON object without a manifest contains a seal, the SHA-256 of its own text without the seal:

    {"inputs": "…", "source_row": 128, "seal": "9f86d0…"}

A flipped bit is therefore recognised as damage to this file. Objects of older versions have no seal
and are read as they are. Tested with every single flipped bit of a small file.
"""

import contextlib
import errno
import hashlib
import json
import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from headwise.errors import CheckpointError

MAX_JSON_BYTES = 1 << 20
MAX_JSON_ITEMS = 1 << 18
INCOMPLETE = ".incomplete"
"""Suffix of the temporary name of a file that is being written."""
SEAL = "seal"
ANOTHER_COPY = ("use another copy or an earlier checkpoint", "请用其他副本或更早的检查点")
"""What to do about a damaged file, unless it is of a kind that says more."""


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def flush_to_disk(path: Path) -> None:
    """fsync a file or a directory (for a directory this makes a rename durable)."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_text(path: Path, text: str) -> None:
    """Replace a small file atomically; missing directories are created."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    if path.is_dir():  # also "." and "/", which have no name to write beside
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}{INCOMPLETE}")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    flush_to_disk(path.parent)


@contextlib.contextmanager
def publish_file(path: Path) -> Iterator[Path]:
    """A temporary path for a large file; on success it is flushed and renamed to `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}{INCOMPLETE}")
    try:
        yield temporary
        flush_to_disk(temporary)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    flush_to_disk(path.parent)


def write_json(path: Path, value: Any) -> None:
    write_text(path, _json_text(value))


def _json_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def read_json(
    path: Path,
    *,
    max_bytes: int = MAX_JSON_BYTES,
    max_items: int = MAX_JSON_ITEMS,
    remedy: tuple[str, str] = ANOTHER_COPY,
) -> Any:
    """JSON of bounded size, or a CheckpointError that names the file.

    Three bytes of text can take a hundred bytes of memory, so the number of values is bounded too.
    """
    try:
        size = path.stat().st_size
        content = path.read_bytes() if size <= max_bytes else b""
    except OSError as error:
        raise CheckpointError(
            f"cannot be read ({error.strerror}); the directory is incomplete or not one of "
            "Headwise's",
            f"无法读取（{error.strerror}）；目录不完整，或不是 Headwise 的目录",
            file=path,
        ) from error
    if size > max_bytes:
        raise CheckpointError(
            f"has {size:,} bytes, more than the {max_bytes:,} allowed; the file is not ours or "
            "damaged",
            f"有 {size:,} 字节，超过允许的 {max_bytes:,}；不是本程序的文件或已损坏",
            file=path,
        )
    if (num_items := content.count(b",")) > max_items:
        raise CheckpointError(
            f"has {num_items:,} entries, more than the {max_items:,} allowed; the file is not "
            "ours or damaged",
            f"有 {num_items:,} 个条目，超过允许的 {max_items:,}；不是本程序的文件或已损坏",
            file=path,
        )
    try:
        return json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise CheckpointError(
            f"is damaged (not readable JSON); {remedy[0]}",
            f"已损坏（不是可读的 JSON）；{remedy[1]}",
            file=path,
        ) from error


def seal_of(value: Mapping[str, Any]) -> str:
    """SHA-256 of the text that `write_json` gives the object without its seal."""
    return hashlib.sha256(
        _json_text({key: value[key] for key in value if key != SEAL}).encode()
    ).hexdigest()


def write_sealed_json(path: Path, value: Mapping[str, Any]) -> None:
    write_json(path, {**value, SEAL: seal_of(value)})


def read_sealed_json(
    path: Path, keys: Collection[str], *, remedy: tuple[str, str] = ANOTHER_COPY
) -> dict[str, Any]:
    """A JSON object with exactly these keys and a valid seal, without the seal."""
    value = read_json(path, remedy=remedy)
    if not isinstance(value, dict) or not value.keys() >= set(keys):
        raise CheckpointError(
            f"is damaged (a required entry is missing); {remedy[0]}",
            f"已损坏（缺少必需的条目）；{remedy[1]}",
            file=path,
        )
    # Without a seal it is of an older version, which wrote no other keys: another key is a damaged
    # one.
    if not _is_sealed(value) if SEAL in value else value.keys() != set(keys):
        raise CheckpointError(
            f"is damaged (its SHA-256 is not the one it was sealed with); {remedy[0]}",
            f"已损坏（SHA-256 与封存时不同）；{remedy[1]}",
            file=path,
        )
    return {key: value[key] for key in value if key != SEAL}


def _is_sealed(value: Mapping[str, Any]) -> bool:
    try:
        return value[SEAL] == seal_of(value)
    except (
        ValueError,
        RecursionError,
    ):  # NaN, a lone surrogate, deep nesting: nothing we have written
        return False
