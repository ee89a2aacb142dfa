import gzip
import hashlib
import io
import zipfile
from pathlib import Path

import pytest

from headwise.data.known.download import receive
from headwise.data.known.table import Change, KnownFile
from headwise.errors import DataError

TEXT = "sister\u00f0city\n"
ZIP = "https://example.org/all.zip#all/text.txt"


def known(url: str, change: Change | None = None) -> KnownFile:
    return KnownFile(
        "made/text.txt.gz",
        hashlib.sha256(TEXT.encode()).hexdigest(),
        len(TEXT.encode()),
        url,
        change,
    )


def zipped(content: bytes, member: str = "all/text.txt") -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, content)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("file", "arrived"),
    [
        (known("https://example.org/text.txt"), TEXT.encode()),
        (known("https://example.org/text.txt", "trim"), TEXT.encode() + b"\n"),
        (known("https://example.org/text.txt", "latin-1"), TEXT.encode("latin-1")),
        (known(ZIP), zipped(TEXT.encode())),
        (known(ZIP, "latin-1"), zipped(TEXT.encode("latin-1"))),
    ],
    ids=["as it is", "an empty line", "latin-1", "zip", "zip of latin-1"],
)
def test_what_publishers_send_becomes_the_text(
    file: KnownFile, arrived: bytes, tmp_path: Path
) -> None:
    path = tmp_path / file.path
    receive(io.BytesIO(arrived), path, file, progress=None, is_original=True)
    assert gzip.decompress(path.read_bytes()).decode() == TEXT
    receive(io.BytesIO(gzip.compress(TEXT.encode())), path, file, progress=None, is_original=False)
    assert gzip.decompress(path.read_bytes()).decode() == TEXT, "a mirror has it as it is"


@pytest.mark.parametrize(
    "arrived",
    [b"no zip", zipped(TEXT.encode(), "other.txt"), zipped(TEXT.encode())[:40]],
    ids=["no zip", "another name", "cut off"],
)
def test_a_zip_that_is_none_leaves_nothing(arrived: bytes, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not the published file"):
        receive(
            io.BytesIO(arrived),
            tmp_path / "made/text.txt.gz",
            known(ZIP),
            progress=None,
            is_original=True,
        )
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
