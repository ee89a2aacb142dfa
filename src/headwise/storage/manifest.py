"""Writes and checks `MANIFEST.json`: the files of a directory with size and SHA-256, verified
before parsing.

safetensors and sentencepiece load flipped bits without an error, so verification comes first. The
manifest has a seal of its own (files.py), so that damage to it is not blamed on a file that it
lists.
"""

import contextlib
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from headwise.errors import CheckpointError, UsageError
from headwise.storage.files import (
    ANOTHER_COPY,
    flush_to_disk,
    read_json,
    read_sealed_json,
    seal_of,
    sha256_of,
    write_sealed_json,
)

MANIFEST = "MANIFEST.json"
FORMAT_VERSION = 1
MAX_NAME_LENGTH = 200
_KEYS = ("format", "kind", "files")


def write_manifest(directory: Path, *, kind: str) -> None:
    """List every file of a directory with size and SHA-256; the manifest is written last."""
    files = {}
    for path in sorted(directory.rglob("*")):
        if path.is_file() and path.name != MANIFEST:
            flush_to_disk(path)
            files[path.relative_to(directory).as_posix()] = {
                "bytes": path.stat().st_size,
                "sha256": sha256_of(path),
            }
    write_sealed_json(
        directory / MANIFEST, {"format": FORMAT_VERSION, "kind": kind, "files": files}
    )


def manifest_digest(directory: Path, *, without: Collection[str] = ()) -> str:
    """The identity of the content of a directory: the seal of its manifest.

    For an older manifest without seal, the seal it would have. `without` names files that older
    versions did not write and nothing depends on.
    """
    manifest = read_json(directory / MANIFEST)
    files = {name: entry for name, entry in manifest["files"].items() if name not in without}
    return seal_of({**manifest, "files": files})


def read_manifest(directory: Path, *, remedy: tuple[str, str] = ANOTHER_COPY) -> Mapping[str, Any]:
    """The manifest itself; the files are not verified yet. `remedy`: what to do about damage."""
    manifest = read_sealed_json(directory / MANIFEST, _KEYS, remedy=remedy)
    if not isinstance(manifest["files"], dict):
        raise CheckpointError(
            f"is damaged (a required entry is missing); {remedy[0]}",
            f"已损坏（缺少必需的条目）；{remedy[1]}",
            file=directory / MANIFEST,
        )
    return manifest


def verify_directory(
    directory: Path, *, kind: str, remedy: tuple[str, str] = ANOTHER_COPY
) -> Mapping[str, Any]:
    """Check every file against the manifest before anything is parsed; returns the manifest."""
    manifest = read_manifest(directory, remedy=remedy)
    version = manifest["format"]
    if manifest["kind"] != kind:
        raise CheckpointError(
            f"is of a directory of kind {str(manifest['kind'])[:80]!r}, one of kind {kind!r} is "
            "needed; give such a directory",
            f"所在目录的类型是 {str(manifest['kind'])[:80]!r}，这里需要 {kind!r} 类型的目录；"
            "请换成那种目录",
            file=directory / MANIFEST,
        )
    if type(version) is not int or not 1 <= version <= FORMAT_VERSION:
        raise CheckpointError(
            f"has format {str(version)[:80]}, at most {FORMAT_VERSION} can be read; update "
            "headwise or give another directory",
            f"格式为 {str(version)[:80]}，最高可读 {FORMAT_VERSION}；请升级 headwise 或换目录",
            file=directory / MANIFEST,
        )
    for name in manifest["files"]:
        verify_listed(directory, manifest, name, remedy=remedy)
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


def verify_listed(
    directory: Path,
    manifest: Mapping[str, Any],
    name: str,
    *,
    remedy: tuple[str, str] = ANOTHER_COPY,
) -> None:
    """Check one file that the manifest lists."""
    if not _lies_inside(directory.resolve(), name):
        raise CheckpointError(
            f"names {name[:80]!r}, which lies outside the directory; do not use this directory",
            f"列出的 {name[:80]!r} 在目录之外；请勿使用该目录",
            file=directory / MANIFEST,
        )
    _verify_file(directory / name, manifest["files"][name], remedy)


def refuse_sealed(path: Path) -> None:
    """Raise for a path inside a directory whose files a manifest lists (a model, a checkpoint)."""
    whole = Path(os.path.realpath(path))  # unlike `resolve` it does not mind links in a circle
    for parent in (whole, *whole.parents):
        manifest = None
        with contextlib.suppress(CheckpointError):
            manifest = read_json(parent / MANIFEST) if (parent / MANIFEST).is_file() else None
        if (
            isinstance(manifest, dict)
            and "kind" in manifest
            and isinstance(manifest.get("files"), dict)
        ):
            raise UsageError(
                f"{path} lies inside {parent}, whose files are sealed by checksums: with one file "
                "more, or one changed, it would count as damaged; choose a place outside it",
                f"{path} 在 {parent} 之内，其中的文件由校验和封存：多一个文件或改动一个文件，"
                "都会被视为损坏；请写到别处",
            )


def _lies_inside(root: Path, name: str) -> bool:
    """Whether a name stays inside the directory; symlink loops, NULs and overlong names do not."""
    if len(name) > MAX_NAME_LENGTH:
        return False
    try:
        return (root / name).resolve().is_relative_to(root)
    except (OSError, RuntimeError, ValueError):
        return False


def _verify_file(path: Path, entry: Any, remedy: tuple[str, str]) -> None:
    if not path.is_file():
        raise CheckpointError(
            f"is missing; {remedy[0]}",
            f"缺失；{remedy[1]}",
            file=path,
        )
    if not isinstance(entry, dict) or path.stat().st_size != entry.get("bytes"):
        expected = entry.get("bytes") if isinstance(entry, dict) else None
        raise CheckpointError(
            f"has {path.stat().st_size:,} bytes, {expected} were written; it is damaged: "
            f"{remedy[0]}",
            f"有 {path.stat().st_size:,} 字节，写入时为 {expected}；文件已损坏：{remedy[1]}",
            file=path,
        )
    if sha256_of(path) != entry.get("sha256"):
        raise CheckpointError(
            f"is damaged (its SHA-256 is not the one written); {remedy[0]}",
            f"已损坏（SHA-256 与写入时不同）；{remedy[1]}",
            file=path,
        )
