import dataclasses
import gzip
import hashlib
import io
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from headwise.data.known import corpora as known
from headwise.data.known.corpora import (
    check_corpus,
    data_directory,
    fetch_corpus,
    find_corpus,
    find_known,
    find_known_file,
    list_corpora,
)
from headwise.data.known.table import NOT_TRIED, KnownCorpusEntry, KnownFile, KnownPartEntry
from headwise.errors import DataError, UsageError

TEXT = "hello\tHallo\n" * 1000


@dataclasses.dataclass(frozen=True)
class MadeCorpus(KnownCorpusEntry):
    url: str | None = "https://example.org/pairs.tsv"

    @property
    def files(self) -> tuple[KnownFile, ...]:
        return (
            KnownFile(
                "made/pairs.tsv.gz", hashlib.sha256(TEXT.encode()).hexdigest(), len(TEXT), self.url
            ),
        )


PARTS = {"made/pairs": KnownPartEntry("made/pairs.tsv.gz", ("en", "de"), {"en": 0, "de": 1})}
MADE = MadeCorpus("made", "pairs", "句对", "ours", "made here", PARTS)


@pytest.fixture(autouse=True)
def _own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known, "CORPORA", (MADE,))
    monkeypatch.setenv("HEADWISE_DATA", str(tmp_path / "data"))


def answer(monkeypatch: pytest.MonkeyPatch, content: bytes | Exception) -> list[str]:
    asked = []

    def open_url(request: urllib.request.Request, timeout: float) -> io.BytesIO:
        asked.append(request.full_url)
        if isinstance(content, Exception):
            raise content
        return io.BytesIO(content)

    monkeypatch.setattr(known._OPENER, "open", open_url)
    return asked


@pytest.mark.parametrize(
    "content", [TEXT.encode(), gzip.compress(TEXT.encode(), 1)], ids=["plain", "packed"]
)
def test_fetching_publishes_the_checked_text(
    content: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked, progress = answer(monkeypatch, content), []
    assert [state.state for state in check_corpus("made")] == ["missing"]
    paths = fetch_corpus("made", progress=lambda *step: progress.append(step))
    assert gzip.decompress(paths[0].read_bytes()).decode() == TEXT
    assert [state.state for state in check_corpus("made")] == ["right"]
    assert progress == [("made/pairs.tsv.gz", len(content), len(TEXT))]
    fetch_corpus("made")
    assert asked == ["https://example.org/pairs.tsv"], "what is there is not fetched again"
    assert [path.name for path in (tmp_path / "data/made").iterdir()] == ["pairs.tsv.gz"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (TEXT.replace("hello", "hullo").encode(), "not the published file"),
        (gzip.compress(TEXT.encode())[:-9], "not the published file"),
        (TEXT.encode() * 100, "more than the expected 12,000 bytes"),
        (
            urllib.error.URLError("no route"),
            r"cannot be fetched from https://example\.org/pairs\.tsv .*no route",
        ),
        (TimeoutError("slow"), "check the network"),
    ],
    ids=["other", "cut", "large", "unreachable", "slow"],
)
def test_a_failed_fetch_leaves_nothing(
    content, message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answer(monkeypatch, content)
    with pytest.raises(DataError, match=message):
        fetch_corpus("made")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_mirror_is_used_before_the_network(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = answer(monkeypatch, ConnectionError("not to be asked"))
    (tmp_path / "data/made").mkdir(parents=True)
    (tmp_path / "data/made/pairs.tsv.gz").write_bytes(gzip.compress(TEXT.encode()))
    paths = fetch_corpus("made", tmp_path / "elsewhere")
    assert paths == [tmp_path / "elsewhere/made/pairs.tsv.gz"]
    assert paths[0].is_file()
    assert not asked


def test_a_corpus_without_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known, "CORPORA", (dataclasses.replace(MADE, url=None),))
    with pytest.raises(DataError, match="has no address it can be fetched from: made here"):
        fetch_corpus("made")
    with pytest.raises(
        DataError, match="has no address it can be fetched from: made here; make or copy"
    ) as missing:
        find_known("made/pairs", languages=("en", "de"))
    assert "data fetch" not in str(missing.value), "what cannot be fetched is not advised"
    (data_directory() / "made").mkdir(parents=True)
    (data_directory() / "made/pairs.tsv.gz").write_bytes(b"other")
    with pytest.raises(DataError, match=r"remove it and put the right one there \(made here\)"):
        find_known("made/pairs", languages=("en", "de"))


def test_a_text_made_of_many_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        known, "CORPORA", (dataclasses.replace(MADE, url="https://example.org/*/train.data.txt"),)
    )
    monkeypatch.setattr(
        known, "join_senses", lambda read, address: read(address.replace("*", "bank"))
    )
    asked = answer(monkeypatch, TEXT.encode())
    assert gzip.decompress(fetch_corpus("made")[0].read_bytes()).decode() == TEXT
    assert asked == ["https://example.org/bank/train.data.txt"]


def test_a_part_and_a_file_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, TEXT.encode())
    assert fetch_corpus("made/pairs") == [data_directory() / "made/pairs.tsv.gz"]
    assert find_known_file("made/pairs.tsv.gz") == data_directory() / "made/pairs.tsv.gz"
    with pytest.raises(
        UsageError, match=r"has no file 'made/other'; choose one of: known:made/pairs\.tsv\.gz"
    ):
        find_known_file("made/other")
    with pytest.raises(UsageError, match="has no part 'made/other'"):
        fetch_corpus("made/other")


def test_finding_parts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="bring it with `headwise data fetch made`"):
        find_known("made/pairs", languages=("en", "de"))
    answer(monkeypatch, TEXT.encode())
    fetch_corpus("made")
    assert find_known("made/pairs", languages=("de", "en")).columns == {"en": 0, "de": 1}
    with pytest.raises(UsageError, match="has en, de, not fr"):
        find_known("made/pairs", languages=("en", "fr"))
    with pytest.raises(
        UsageError, match="has no part 'made/other'; choose one of: known:made/pairs"
    ):
        find_known("made/other", languages=("en", "de"))
    with pytest.raises(UsageError, match="no known corpus is called 'mode'"):
        find_corpus("mode")
    (tmp_path / "data/made/pairs.tsv.gz").write_bytes(b"other")
    assert check_corpus("made")[0].state == "wrong"


def test_where_files_live(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert data_directory() == tmp_path / "data"
    monkeypatch.delenv("HEADWISE_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert data_directory() == tmp_path / "cache/headwise/data"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert data_directory() == Path.home() / ".cache/headwise/data"


def test_the_table_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    names = [corpus.name for corpus in list_corpora()]
    assert len(set(names)) == len(names)
    assert set(NOT_TRIED) <= {corpus.name for corpus in list_corpora() if corpus.addresses}
    for corpus in list_corpora():
        assert corpus.files
        assert corpus.licence
        assert corpus.description_zh
        paths = [file.path for file in corpus.files]
        for file in corpus.files:
            assert len(file.sha256) == 64
            assert file.path.startswith(corpus.name + "/")
            assert file.url is None or (file.url.startswith("https://") and "{" not in file.url)
        for name, part in corpus.parts.items():
            assert name.startswith(corpus.name + "/")
            is_one = part.columns or part.form != "parallel"
            wanted = (
                [part.file] if is_one else [f"{part.file}.{code}.gz" for code in part.languages]
            )
            assert set(wanted) <= set(paths)


@pytest.mark.parametrize(
    "address",
    ["http://example.org/x", "ftp://example.org/x", "file:///etc/hostname", "HTTPS:x", ""],
)
def test_only_https_is_fetched_from(address: str) -> None:
    with pytest.raises(DataError, match="is not an https address, and only those are fetched from"):
        known._open(address)


def test_a_server_may_not_lead_away_from_https() -> None:
    handler = known._SafeRedirects()
    request = urllib.request.Request("https://example.org/x")
    with pytest.raises(DataError, match=r"http://example\.org/y is not an https address"):
        handler.redirect_request(request, None, 302, "Found", {}, "http://example.org/y")
    followed = handler.redirect_request(request, None, 302, "Found", {}, "https://example.org/y")
    assert followed.full_url == "https://example.org/y"
    assert any(isinstance(one, known._SafeRedirects) for one in known._OPENER.handlers)


def test_the_nearest_name_of_a_corpus_is_proposed() -> None:
    with pytest.raises(
        UsageError, match=r"'maed'; did you mean 'made'\? choose one of made"
    ) as caught:
        find_corpus("maed")
    assert "是否想写 'made'？可选：made" in caught.value.zh
    with pytest.raises(UsageError, match="'qqq'; choose one of"):
        find_corpus("qqq")


@pytest.mark.parametrize(
    "corpus",
    [one for one in list_corpora() if any(file.url is None for file in one.files)],
    ids=lambda one: one.name,
)
def test_what_the_user_must_make_is_described_in_chinese(corpus: KnownCorpusEntry) -> None:
    assert corpus.source_zh is not None
    assert " ours" not in corpus.source_zh
    file = next(file for file in corpus.files if file.url is None)
    said = known._explain_missing(corpus, file, Path(file.path)).zh
    assert corpus.source_zh in said
    assert corpus.source not in said
