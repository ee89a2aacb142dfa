"""Known public corpora: what they are, under which licence, where they come from, and proof that a copy is the right one.

Files are found under the directory named by `HEADWISE_DATA`, else under the user's cache. `fetch_corpus` copies them from
a local mirror or downloads them over HTTPS; either way a file is written beside, checked by SHA-256 and published by
rename. What is checked is the text inside: compressed anew by another program it is still the same corpus.

Tested against: a mirror on disk, a local server that sends the right bytes, wrong bytes, too many bytes.
"""

import gzip
import hashlib
import os
import shutil
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from headwise.data.known_labels import LABELLED_CORPORA
from headwise.data.known_table import CORPORA as TEXT_CORPORA
from headwise.data.known_table import LABELLED, Form, KnownCorpusEntry, KnownFile, KnownPartEntry
from headwise.errors import DataError, UsageError
from headwise.storage import INCOMPLETE, flush_to_disk

CORPORA = TEXT_CORPORA + LABELLED_CORPORA
VARIABLE = "HEADWISE_DATA"
_TIMEOUT_SECONDS = 60
_BLOCK = 1 << 18
_ALLOWANCE = 1.1
Progress = Callable[[str, int, int], None]
"""Called with (file, bytes so far, bytes expected)."""


@dataclass(frozen=True)
class KnownPart:
    """A part of a corpus on disk: a prefix of two files, or one TSV file with its columns and rows."""

    path: Path
    columns: Mapping[str, int] | None
    keep: Mapping[int, tuple[str, ...]]


@dataclass(frozen=True)
class KnownText:
    """Text of one language on disk: a file of lines, or a column of a TSV file."""

    path: Path
    column: int | None
    keep: Mapping[int, tuple[str, ...]]
    form: Form


@dataclass(frozen=True)
class FileState:
    """What `check_corpus` found: a file is `right`, `missing` or `wrong`."""

    path: Path
    state: str


def data_directory() -> Path:
    """HEADWISE_DATA, else headwise/data in the user's cache."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named)
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "headwise" / "data"


def list_corpora() -> tuple[KnownCorpusEntry, ...]:
    return CORPORA


def find_corpus(name: str) -> KnownCorpusEntry:
    """A corpus by its name, the part of a path before the first slash."""
    for corpus in CORPORA:
        if corpus.name == name.partition("/")[0]:
            return corpus
    names = ", ".join(corpus.name for corpus in CORPORA)
    raise UsageError(
        f"no known corpus is called {name!r}; choose one of {names}",
        f"没有名为 {name!r} 的已知语料；可选：{names}",
    )


def find_known(name: str, *, languages: tuple[str, str]) -> KnownPart:
    """The part of a corpus a recipe calls known:NAME, on disk; what is not there yet is a DataError."""
    part = _part_with(name, languages)
    files = [part.file] if part.columns else [f"{part.file}.{code}.gz" for code in languages]
    _check_files(name, files)
    return KnownPart(data_directory() / part.file, part.columns, part.keep)


def find_known_text(name: str, language: str) -> KnownText:
    """One language of a part, on disk: of a parallel one its own side."""
    part = _part_with(name, (language,))
    aligned = part.form == "parallel" and part.columns is None
    file = f"{part.file}.{language}.gz" if aligned else part.file
    _check_files(name, [file])
    column = None if part.columns is None else part.columns[language]
    return KnownText(data_directory() / file, column, part.keep, part.form)


def find_known_labelled(name: str, language: str) -> KnownText:
    """A part whose texts carry labels or tags, on disk."""
    part = _part_with(name, (language,))
    if part.form not in LABELLED:
        names = ", ".join(
            f"known:{one}" for corpus in CORPORA for one, at in corpus.parts.items() if at.form in LABELLED
        )
        raise UsageError(f"known:{name} has no labels; choose one of: {names}", f"known:{name} 没有标签；可选：{names}")
    _check_files(name, [part.file])
    return KnownText(data_directory() / part.file, None, part.keep, part.form)


def _part_with(name: str, languages: Sequence[str]) -> KnownPartEntry:
    corpus = find_corpus(name)
    if name not in corpus.parts:
        parts = ", ".join(f"known:{part}" for part in corpus.parts) or "none that a recipe may name"
        raise UsageError(
            f"the corpus {corpus.name} has no part {name!r}; choose one of: {parts}",
            f"语料 {corpus.name} 没有 {name!r} 这一部分；可选：{parts}",
        )
    part = corpus.parts[name]
    if missing := [code for code in languages if code not in part.languages]:
        setting = "data.source or data.target" if len(languages) == 2 else "data.language"
        raise UsageError(
            f"known:{name} has {', '.join(part.languages)}, not {', '.join(missing)}; change {setting}",
            f"known:{name} 含有 {'、'.join(part.languages)}，没有 {'、'.join(missing)}；请修改 {setting.replace(' or ', ' 或 ')}",
        )
    return part


def _check_files(name: str, files: Sequence[str]) -> None:
    """Each is there and is the published text."""
    corpus, root = find_corpus(name), data_directory()
    known = {file.path: file for file in corpus.files}
    for file in files:
        if not (root / file).exists():
            raise DataError(
                f"is not there; bring it with `headwise data fetch {corpus.name}`, or set {VARIABLE} to a mirror",
                f"不存在；请运行 `headwise data fetch {corpus.name}`，或将 {VARIABLE} 设为本地镜像",
                file=root / file,
            )
        if digest_of_text(root / file) != known[file].sha256:
            raise DataError(
                f"is not the published text (its SHA-256 differs); remove it and run `headwise data fetch {corpus.name}`",
                f"不是发布的文本（SHA-256 不符）；请删除后运行 `headwise data fetch {corpus.name}`",
                file=root / file,
            )


def check_corpus(name: str, directory: Path | None = None) -> list[FileState]:
    """Compare every file of a corpus with its checksum."""
    root = directory or data_directory()
    return [FileState(root / file.path, _state(root / file.path, file)) for file in find_corpus(name).files]


def _state(path: Path, file: KnownFile) -> str:
    if not path.is_file():
        return "missing"
    return "right" if digest_of_text(path) == file.sha256 else "wrong"


def digest_of_text(path: Path) -> str | None:
    """SHA-256 of a file's content, unpacked when it is gzip; None when it cannot be unpacked."""
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


def fetch_corpus(
    name: str, directory: Path | None = None, *, mirror: Path | None = None, progress: Progress | None = None
) -> list[Path]:
    """Bring every file of a corpus that is not there yet, from a mirror or its publisher; returns their paths.

    The mirror defaults to HEADWISE_DATA when a directory other than that one is asked for.
    """
    corpus = find_corpus(name)
    root = directory or data_directory()
    named = os.environ.get(VARIABLE)
    source = mirror or (Path(named) if named and Path(named).resolve() != root.resolve() else None)
    paths = []
    for file in corpus.files:
        path = root / file.path
        if _state(path, file) != "right":
            local = source / file.path if source else None
            if local is not None and local.is_file():
                with local.open("rb") as stream:
                    _receive(stream, path, file, progress)
            else:
                _download(corpus, file, path, progress)
        paths.append(path)
    return paths


def _download(corpus: KnownCorpusEntry, file: KnownFile, path: Path, progress: Progress | None) -> None:
    if file.url is None:
        raise DataError(
            f"{corpus.name} has no address it can be fetched from: {corpus.source}; make or copy the file yourself "
            f"and put it there, or set {VARIABLE} to a mirror that has it",
            f"{corpus.name} 没有可直接下载的地址：{corpus.source}；请自行制作或复制到该位置，或将 {VARIABLE} 设为含有它的镜像",
            file=path,
        )
    assert file.url.startswith("https://")
    try:
        request = urllib.request.Request(file.url, headers={"User-Agent": "headwise"})  # noqa: S310
        with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as stream:  # noqa: S310 - https by the assertion
            _receive(stream, path, file, progress)
    except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
        raise DataError(
            f"cannot be fetched from {file.url} ({error}); check the network, or set {VARIABLE} to a local mirror",
            f"无法从 {file.url} 获取（{error}）；请检查网络，或将 {VARIABLE} 设为本地镜像",
            file=path,
        ) from error


def _receive(stream: BinaryIO, path: Path, file: KnownFile, progress: Progress | None) -> None:
    """Write beside, check, publish; a plain text is stored as gzip where the table's name ends in .gz."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}{INCOMPLETE}")
    unpacked = path.with_name(f"{path.name}.{os.getpid()}.plain{INCOMPLETE}")
    try:
        with temporary.open("wb") as output:
            for block in _bounded(stream, file, progress):
                output.write(block)
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
                "what arrived is not the published file (its SHA-256 differs); try again, or take another mirror",
                "收到的内容与发布的文件不符（SHA-256 不同）；请重试或更换镜像",
                file=path,
            )
        flush_to_disk(temporary)
        os.replace(temporary, path)
        flush_to_disk(path.parent)
    finally:
        temporary.unlink(missing_ok=True)
        unpacked.unlink(missing_ok=True)


def _is_gzip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


def _bounded(stream: BinaryIO, file: KnownFile, progress: Progress | None) -> Iterator[bytes]:
    """Blocks of the stream, refused once they exceed what the text can take."""
    received = 0
    while block := stream.read(_BLOCK):
        received += len(block)
        if received > file.num_bytes * _ALLOWANCE + _BLOCK:
            raise DataError(
                f"more than the expected {file.num_bytes:,} bytes arrived; this is not the published file",
                f"收到的数据超过预期的 {file.num_bytes:,} 字节；这不是发布的文件",
                file=file.path,
            )
        if progress is not None:
            progress(file.path, received, file.num_bytes)
        yield block
