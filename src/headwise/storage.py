"""Files that are either whole or not there: written beside, flushed, published by rename, proved by checksum.

A directory of results (a checkpoint, a bundle, a tokenised corpus) is made under a temporary name, every file is
fsynced and listed with its size and SHA-256 in `MANIFEST.json`, and one `rename` publishes it; a kill at any moment
leaves the old state or the new one. Reading starts with the manifest, because safetensors and sentencepiece load
flipped bits without noticing.
"""

import contextlib
import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from headwise.errors import CheckpointError, UsageError

MANIFEST = "MANIFEST.json"
FORMAT_VERSION = 1
MAX_MANIFEST_BYTES = 1 << 20
MAX_NAME_LENGTH = 200
INCOMPLETE = ".incomplete"


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def flush_to_disk(path: Path) -> None:
    """fsync a file or a directory (a directory's fsync makes a rename in it durable)."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_text(path: Path, text: str) -> None:
    """Replace a small file atomically; directories that are missing are made."""
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
    """Give a temporary name to write a large file under; on success it is flushed and renamed to `path`."""
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
    write_text(path, json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n")


@contextlib.contextmanager
def publish_directory(path: Path, *, kind: str, replace: bool = False) -> Iterator[Path]:
    """Give a temporary directory to fill; on success add the manifest and rename it to `path`.

    With `replace` an existing directory makes way at the last moment; without, it is an error to have one.
    """
    if not replace:
        refuse_existing(path)
        refuse_sealed(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + INCOMPLETE)
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    try:
        yield temporary
        write_manifest(temporary, kind=kind)
        flush_to_disk(temporary)
        if path.exists():
            retired = path.with_name(path.name + ".retired")
            shutil.rmtree(retired, ignore_errors=True)
            os.rename(path, retired)
            os.rename(temporary, path)
            shutil.rmtree(retired, ignore_errors=True)
        else:
            os.rename(temporary, path)
        flush_to_disk(path.parent)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def refuse_existing(path: Path) -> None:
    if path.exists():
        raise UsageError(
            f"{path} exists already; choose another name or remove it",
            f"{path} 已存在；请换个名字或先删除",
        )


def refuse_sealed(path: Path) -> None:
    """Refuse to write inside a model, a checkpoint or another directory whose files a manifest lists."""
    whole = Path(os.path.realpath(path))  # unlike `resolve` it does not mind links in a circle
    for parent in (whole, *whole.parents):
        manifest = None
        with contextlib.suppress(CheckpointError):
            manifest = read_json(parent / MANIFEST) if (parent / MANIFEST).is_file() else None
        if isinstance(manifest, dict) and "kind" in manifest and isinstance(manifest.get("files"), dict):
            raise UsageError(
                f"{path} lies inside {parent}, whose files are sealed by checksums: with one file more, or one changed, it would "
                "count as damaged; choose a place outside it",
                f"{path} 在 {parent} 之内，其中的文件由校验和封存：多一个文件或改动一个文件，都会被视为损坏；请写到别处",
            )


def write_manifest(directory: Path, *, kind: str) -> None:
    """List every file of a directory with size and SHA-256; the manifest is written last."""
    files = {}
    for path in sorted(directory.rglob("*")):
        if path.is_file() and path.name != MANIFEST:
            flush_to_disk(path)
            files[path.relative_to(directory).as_posix()] = {"bytes": path.stat().st_size, "sha256": sha256_of(path)}
    write_json(directory / MANIFEST, {"format": FORMAT_VERSION, "kind": kind, "files": files})


def read_json(path: Path, *, max_bytes: int = MAX_MANIFEST_BYTES) -> Any:
    """JSON of bounded size, or a CheckpointError that names the file."""
    try:
        size = path.stat().st_size
        content = path.read_bytes() if size <= max_bytes else b""
    except OSError as error:
        raise CheckpointError(
            f"cannot be read ({error.strerror}); the directory is incomplete or not one of Headwise's",
            f"无法读取（{error.strerror}）；目录不完整，或不是 Headwise 的目录",
            file=path,
        ) from error
    if size > max_bytes:
        raise CheckpointError(
            f"has {size:,} bytes, more than the {max_bytes:,} allowed; the file is not ours or damaged",
            f"有 {size:,} 字节，超过允许的 {max_bytes:,}；不是本程序的文件或已损坏",
            file=path,
        )
    try:
        return json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise CheckpointError(
            "is damaged (not readable JSON); use another copy or an earlier checkpoint",
            "已损坏（不是可读的 JSON）；请用其他副本或更早的检查点",
            file=path,
        ) from error


def verify_directory(directory: Path, *, kind: str) -> Mapping[str, Any]:
    """Check every file against the manifest before anything is parsed; returns the manifest."""
    manifest = read_json(directory / MANIFEST)
    if not isinstance(manifest, dict) or not isinstance(manifest.get("files"), dict) or "kind" not in manifest:
        raise CheckpointError(
            "is damaged (a required entry is missing); use another copy or an earlier checkpoint",
            "已损坏（缺少必需的条目）；请用其他副本或更早的检查点",
            file=directory / MANIFEST,
        )
    version = manifest.get("format")
    if manifest["kind"] != kind:
        raise CheckpointError(
            f"describes a {str(manifest['kind'])[:80]!r}, a {kind!r} is needed; give the directory of one",
            f"描述的是 {str(manifest['kind'])[:80]!r}，这里需要 {kind!r}；请换成那种目录",
            file=directory / MANIFEST,
        )
    if type(version) is not int or not 1 <= version <= FORMAT_VERSION:
        raise CheckpointError(
            f"has format {str(version)[:80]}, at most {FORMAT_VERSION} can be read; update headwise or give another directory",
            f"格式为 {str(version)[:80]}，最高可读 {FORMAT_VERSION}；请升级 headwise 或换目录",
            file=directory / MANIFEST,
        )
    root = directory.resolve()
    for name, entry in manifest["files"].items():
        if not _lies_inside(root, name):
            raise CheckpointError(
                f"names {name[:80]!r}, which lies outside the directory; do not use this directory",
                f"列出的 {name[:80]!r} 在目录之外；请勿使用该目录",
                file=directory / MANIFEST,
            )
        _verify_file(directory / name, entry)
    for path in sorted(directory.rglob("*")):
        if (
            path.name != MANIFEST
            and not path.is_dir()
            and path.relative_to(directory).as_posix() not in manifest["files"]
        ):
            raise CheckpointError(
                "is not listed in the manifest; remove it, or use another copy of the directory",
                "不在清单之中；请删除它，或换用该目录的其他副本",
                file=path,
            )
    return manifest


def _lies_inside(root: Path, name: str) -> bool:
    """Symlink loops, NULs and names too long for the system are no files of ours either."""
    if len(name) > MAX_NAME_LENGTH:
        return False
    try:
        return (root / name).resolve().is_relative_to(root)
    except (OSError, RuntimeError, ValueError):
        return False


def _verify_file(path: Path, entry: Any) -> None:
    if not path.is_file():
        raise CheckpointError(
            "is missing; use another copy or an earlier checkpoint", "缺失；请用其他副本或更早的检查点", file=path
        )
    if not isinstance(entry, dict) or path.stat().st_size != entry.get("bytes"):
        expected = entry.get("bytes") if isinstance(entry, dict) else None
        raise CheckpointError(
            f"has {path.stat().st_size:,} bytes, {expected} were written; it is damaged: use another copy or an earlier checkpoint",
            f"有 {path.stat().st_size:,} 字节，写入时为 {expected}；文件已损坏：请用其他副本或更早的检查点",
            file=path,
        )
    if sha256_of(path) != entry.get("sha256"):
        raise CheckpointError(
            "is damaged (its SHA-256 is not the one written); use another copy or an earlier checkpoint",
            "已损坏（SHA-256 与写入时不同）；请用其他副本或更早的检查点",
            file=path,
        )
