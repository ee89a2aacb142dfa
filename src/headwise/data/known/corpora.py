"""Finds known public corpora on disk, verifies them by checksum, and downloads them.

Files are searched under the directory named by `HEADWISE_DATA`, else under the user's cache.
`fetch_corpus` copies them from a local mirror or downloads them over HTTPS; in both cases a file is
verified by SHA-256 and published completely (`download.py`). Some corpora have no address, because
we compiled them or because they have no public download. The error then says what they are made
from.

Tested against: a mirror on disk, and a local server that sends the right bytes, wrong bytes, too
many bytes.
"""

import difflib
import io
import os
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from headwise.data.known.coarse_wsd import join_senses
from headwise.data.known.download import Progress, digest_of_text, receive
from headwise.data.known.labelled_table import LABELLED_CORPORA
from headwise.data.known.table import CORPORA as TEXT_CORPORA
from headwise.data.known.table import LABELLED, Form, KnownCorpusEntry, KnownFile, KnownPartEntry
from headwise.errors import DataError, UsageError

CORPORA = TEXT_CORPORA + LABELLED_CORPORA
VARIABLE = "HEADWISE_DATA"
_TIMEOUT_SECONDS = 60
MAX_PIECE = 1 << 24
"""Most bytes of one file, where a corpus is joined from several."""


@dataclass(frozen=True)
class KnownPart:
    """A part of a corpus on disk: a prefix of two files, or a TSV file with its columns and
    rows.
    """

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
    names = [corpus.name for corpus in CORPORA]
    near = difflib.get_close_matches(name.partition("/")[0], names, n=1)
    hint = (f"did you mean {near[0]!r}? ", f"是否想写 {near[0]!r}？") if near else ("", "")
    raise UsageError(
        f"no known corpus is called {name!r}; {hint[0]}choose one of {', '.join(names)}",
        f"没有名为 {name!r} 的已知语料；{hint[1]}可选：{'、'.join(names)}",
    )


def find_known(name: str, *, languages: tuple[str, str]) -> KnownPart:
    """The part that a recipe calls known:NAME, on disk; a missing one is a DataError."""
    part = _part_with(name, languages)
    files = [part.file] if part.columns else [f"{part.file}.{code}.gz" for code in languages]
    _check_files(name, files)
    return KnownPart(data_directory() / part.file, part.columns, part.keep)


def find_known_text(name: str, language: str) -> KnownText:
    """One language of a part, on disk; of a parallel corpus that side."""
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
            f"known:{one}"
            for corpus in CORPORA
            for one, at in corpus.parts.items()
            if at.form in LABELLED
        )
        raise UsageError(
            f"known:{name} has no labels; choose one of: {names}",
            f"known:{name} 没有标签；可选：{names}",
        )
    _check_files(name, [part.file])
    return KnownText(data_directory() / part.file, None, part.keep, part.form)


def find_known_file(name: str) -> Path:
    """A file that no recipe reads (such as a list of rated word pairs), on disk."""
    corpus = find_corpus(name)
    if name not in {file.path for file in corpus.files}:
        files = ", ".join(f"known:{file.path}" for file in corpus.files)
        raise UsageError(
            f"the corpus {corpus.name} has no file {name!r}; choose one of: {files}",
            f"语料 {corpus.name} 没有文件 {name!r}；可选：{files}",
        )
    _check_files(name, [name])
    return data_directory() / name


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
            f"known:{name} has {', '.join(part.languages)}, not {', '.join(missing)}; change "
            f"{setting}",
            f"known:{name} 含有 {'、'.join(part.languages)}，没有 {'、'.join(missing)}；请修改 "
            f"{setting.replace(' or ', ' 或 ')}",
        )
    return part


def _check_files(name: str, files: Sequence[str]) -> None:
    """Raise unless every file exists and has the published content."""
    corpus, root = find_corpus(name), data_directory()
    known = {file.path: file for file in corpus.files}
    for file in files:
        if not (root / file).exists():
            raise _explain_missing(corpus, known[file], root / file)
        if digest_of_text(root / file) != known[file].sha256:
            fetch = f"`headwise data fetch {corpus.name}`"
            remedy_en = (
                f"run {fetch}" if known[file].url else f"put the right one there ({corpus.source})"
            )
            source_zh = corpus.source_zh or corpus.source
            remedy_zh = f"运行 {fetch}" if known[file].url else f"放入正确的文件（{source_zh}）"
            raise DataError(
                f"is not the published text (its SHA-256 differs); remove it and {remedy_en}",
                f"不是发布的文本（SHA-256 不符）；请删除后{remedy_zh}",
                file=root / file,
            )


def _explain_missing(corpus: KnownCorpusEntry, file: KnownFile, path: Path) -> DataError:
    """How to fetch the corpus; or, without an address, what to put where and what it is made
    from.
    """
    if file.url is not None:
        return DataError(
            f"is not there; bring it with `headwise data fetch {corpus.name}`, or set {VARIABLE} "
            f"to a directory that has {file.path}",
            f"不存在；请运行 `headwise data fetch {corpus.name}`，或将 {VARIABLE} 设为含有 "
            f"{file.path} 的目录",
            file=path,
        )
    return DataError(
        f"is not there, and {corpus.name} has no address it can be fetched from: {corpus.source}; "
        f"make or copy the file yourself and put it there, or set {VARIABLE} to a directory that "
        f"has {file.path}",
        f"不存在，{corpus.name} 也没有可直接下载的地址；来源：{corpus.source_zh or corpus.source}；"
        f"请自行制作或复制到该位置，或将 {VARIABLE} 设为含有 {file.path} 的目录",
        file=path,
    )


def check_corpus(name: str, directory: Path | None = None) -> list[FileState]:
    """Compare every file of a corpus with its checksum."""
    root = directory or data_directory()
    return [
        FileState(root / file.path, _state(root / file.path, file))
        for file in find_corpus(name).files
    ]


def _state(path: Path, file: KnownFile) -> str:
    if not path.is_file():
        return "missing"
    return "right" if digest_of_text(path) == file.sha256 else "wrong"


def fetch_corpus(
    name: str,
    directory: Path | None = None,
    *,
    mirror: Path | None = None,
    progress: Progress | None = None,
) -> list[Path]:
    """Fetch the missing files of a corpus, or of one part of it; returns their paths.

    They come from a mirror or from the publisher. The mirror is HEADWISE_DATA by default if another
    directory is given.
    """
    corpus = find_corpus(name)
    root = directory or data_directory()
    named = os.environ.get(VARIABLE)
    source = mirror or (Path(named) if named and Path(named).resolve() != root.resolve() else None)
    paths = []
    for file in _files_of(corpus, name):
        path = root / file.path
        if _state(path, file) != "right":
            local = source / file.path if source else None
            if local is not None and local.is_file():
                with local.open("rb") as stream:
                    receive(stream, path, file, progress=progress, is_original=False)
            else:
                _download(corpus, file, path, progress)
        paths.append(path)
    return paths


def _files_of(corpus: KnownCorpusEntry, name: str) -> list[KnownFile]:
    """All files of a corpus, or those of one part."""
    if name == corpus.name:
        return list(corpus.files)
    part = _part_with(name, ())
    return [
        file
        for file in corpus.files
        if file.path == part.file or file.path.startswith(part.file + ".")
    ]


def _download(
    corpus: KnownCorpusEntry, file: KnownFile, path: Path, progress: Progress | None
) -> None:
    if file.url is None:
        raise _explain_missing(corpus, file, path)
    try:
        if "*" in file.url:
            receive(
                io.BytesIO(join_senses(_read, file.url)),
                path,
                file,
                progress=progress,
                is_original=False,
            )
        else:
            with _open(file.url) as stream:
                receive(stream, path, file, progress=progress, is_original=True)
    except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
        raise DataError(
            f"cannot be fetched from {file.url} ({error}); check the network, or set {VARIABLE} "
            f"to a directory that has {file.path} ({corpus.source})",
            f"无法从 {file.url} 获取（{error}）；请检查网络，或将 {VARIABLE} 设为含有 {file.path} "
            f"的目录（{corpus.source_zh or corpus.source}）",
            file=path,
        ) from error


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects only to https addresses."""

    def redirect_request(
        self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Any:
        _require_https(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _require_https(address: str) -> None:
    if not address.startswith("https://"):
        raise DataError(
            f"{address[:200]} is not an https address, and only those are fetched from; fetch the "
            f"file yourself and set {VARIABLE} to its directory",
            f"{address[:200]} 不是 https 地址，而只从 https 下载；请自行下载该文件，并将 "
            f"{VARIABLE} 设为其所在目录",
        )


_OPENER = urllib.request.build_opener(_SafeRedirects)


def _open(address: str) -> BinaryIO:
    _require_https(address)
    request = urllib.request.Request(  # noqa: S310
        address.partition("#")[0], headers={"User-Agent": "headwise"}
    )
    stream: BinaryIO = _OPENER.open(request, timeout=_TIMEOUT_SECONDS)
    return stream


def _read(address: str) -> bytes:
    with _open(address) as stream:
        return stream.read(MAX_PIECE)
