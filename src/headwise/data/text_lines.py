"""Lines of a text file, read with bounded memory; errors name the line.

Plain, gzip and xz files are supported. A line ends at "\\n" only (U+2028 and similar characters
belong to the text); a carriage return before it and a byte order mark at the start of the file are
dropped. A line longer than `MAX_LINE_BYTES` is not held in memory: it is skipped and reported as
`None`, so that line counts of two files still agree. Files are read in blocks, and a block without
defects is split in two calls, so that 100 million lines take minutes instead of an hour.

Tested against: files with every defect of the guide's page on bad input, and str.split on generated
text.
"""

import gzip
import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from headwise.errors import DataError

MAX_LINE_BYTES = 64 << 10
SUFFIXES = ("", ".gz", ".xz")
_SKIP_BYTES = 1 << 20
_BLOCK_BYTES = 1 << 18
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def open_bytes(path: Path, *, once: bool = False) -> BinaryIO:
    """The uncompressed bytes of a file; a file that cannot be opened is a DataError with the
    reason. `once`: it is read once, so that it may be a pipe.
    """
    try:
        if path.is_dir():
            raise _explain_directory(path)
        if path.exists() and not path.is_file() and not (once and path.is_fifo()):
            raise DataError(
                "is a pipe or device, a file that can be read again is needed; save it to a file "
                "first",
                "是管道或设备，需要可以重复读取的文件；请先存成文件",
                file=path,
            )
        if path.suffix == ".gz":
            return cast(BinaryIO, gzip.open(path, "rb"))
        if path.suffix == ".xz":
            return cast(BinaryIO, lzma.open(path, "rb"))
        return path.open("rb", buffering=1 << 20)
    except OSError as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: OSError) -> DataError:
    reason = error.strerror or str(error)
    if isinstance(error, FileNotFoundError):
        return DataError(
            "does not exist; check the path in the data section of the recipe",
            "不存在；请检查配方 data 部分的路径",
            file=path,
        )
    return DataError(
        f"cannot be read ({reason}); check its permissions or give another file",
        f"无法读取（{reason}）；请检查权限或换一个文件",
        file=path,
    )


def read_lines(path: Path, *, once: bool = False) -> Iterator[str | None]:
    """Each line without its line end; None for a line longer than MAX_LINE_BYTES.

    `once`: the file is read once, so that it may be a pipe.
    """
    number, offset = 0, 0
    with open_bytes(path, once=once) as stream:
        while True:
            try:
                block = stream.read(_BLOCK_BYTES)
                if block and not block.endswith(b"\n"):
                    block += stream.readline(MAX_LINE_BYTES + 2)
                cut = bool(block) and not block.endswith(b"\n")
                skipped = _skip_line(stream) if cut else 0
            except (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError) as error:
                raise DataError(
                    f"the compressed file is damaged or cut short ({error}); copy or download it "
                    "again",
                    f"压缩文件已损坏或不完整（{error}）；请重新复制或下载",
                    file=path,
                    line=number + 1,
                ) from error
            except OSError as error:
                raise unreadable(path, error) from error
            if not block:
                return
            plain = _plain_lines(block) if number and not skipped else None
            if plain is not None:
                number += len(plain)
                yield from plain
                offset += len(block)
                continue
            for raw in _cut_lines(block):
                number += 1
                too_long = len(raw) > MAX_LINE_BYTES + (2 if raw.endswith(b"\n") else 0)
                yield None if too_long else decode_line(raw, path, number, offset)
                offset += len(raw)
            offset += skipped


def _plain_lines(block: bytes) -> list[str] | None:
    """All lines of a block without defects; None if a line must be examined by itself."""
    try:
        lines = block.decode("utf-8").split("\n")
    except UnicodeDecodeError:
        return None
    if block.endswith(b"\n"):
        lines.pop()
    if max(map(len, lines)) * 4 > MAX_LINE_BYTES:  # a character has at most four bytes
        return None
    return [line.removesuffix("\r") for line in lines] if b"\r" in block else lines


def _cut_lines(block: bytes) -> list[bytes]:
    lines = [line + b"\n" for line in block.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _skip_line(stream: BinaryIO) -> int:
    skipped = 0
    while piece := stream.readline(_SKIP_BYTES):
        skipped += len(piece)
        if piece.endswith(b"\n"):
            break
    return skipped


def decode_line(raw: bytes, path: Path, number: int, offset: int) -> str:
    """UTF-8 text of one line, or an error with file, line, byte and the likely encoding."""
    if number == 1 and raw.startswith(b"\xef\xbb\xbf"):
        raw = raw[3:]
    end = len(raw)
    if raw.endswith(b"\n"):
        end -= 2 if raw.endswith(b"\r\n") else 1
    try:
        return raw[:end].decode("utf-8")
    except UnicodeDecodeError as error:
        guess = guess_encoding(raw, is_first=number == 1)
        en, zh = (
            (
                "no usual encoding has such text: the line is damaged; correct or remove it",
                "常见编码中没有这样的文本：该行已损坏；请改正或删除",
            )
            if guess is None
            else (
                f"the file looks like {guess}; convert it, e.g. iconv -f {guess} -t UTF-8",
                f"文件像是 {guess}；请转换编码，例如 iconv -f {guess} -t UTF-8",
            )
        )
        raise DataError(
            f"byte {offset + error.start:,} (0x{raw[error.start]:02x}) is not UTF-8; {en}",
            f"第 {offset + error.start:,} 字节（0x{raw[error.start]:02x}）不是 UTF-8；{zh}",
            file=path,
            line=number,
        ) from error


def guess_encoding(raw: bytes, *, is_first: bool) -> str | None:
    """A likely encoding of bytes that are not UTF-8: by byte order mark (in the first line of a
    file), zero bytes, trial decoding. None if no encoding is likely: the two bytes of a byte order
    mark do not stand side by side in a text of another encoding.
    """
    has_mark = is_first and raw.startswith(_UTF_16_MARKS)
    if has_mark or raw.count(0) * 3 > len(raw):
        return "UTF-16"
    if any(mark in raw for mark in _UTF_16_MARKS):
        return None
    try:
        text = raw.rstrip(b"\r\n").decode("gb18030")
    except UnicodeDecodeError:
        return "ISO-8859-1"
    chinese = sum("\u4e00" <= character <= "\u9fff" for character in text)
    # Common Chinese characters are two high bytes in GB18030; in Latin-1 an accent stands between
    # ASCII letters, and the two together look like one rare Chinese character.
    high = sum(byte >= 0x80 for byte in raw)
    return "GB18030" if 1.5 * chinese <= high <= 3 * chinese else "ISO-8859-1"


def _explain_directory(path: Path) -> DataError:
    return DataError(
        "is a directory, a text file is needed; give the file, or the prefix before the language "
        "code",
        "是目录，需要文本文件；请给出文件，或语言代码之前的路径前缀",
        file=path,
    )


def find_text_file(path: Path) -> Path:
    """The file, or the file with .gz or .xz added; a DataError lists the names that were tried."""
    for suffix in SUFFIXES:
        candidate = Path(f"{path}{suffix}")  # not with_name, which `.` and `/` do not have
        if candidate.exists() and not candidate.is_dir():
            return candidate
    if path.is_dir():
        raise _explain_directory(path)
    # An absolute path says all; of a relative one the reader must learn where it starts.
    rule = (
        ("", "")
        if path.is_absolute()
        else (
            " (a relative path starts in the working directory)",
            "（相对路径从当前工作目录算起）",
        )
    )
    folder = path.parent.absolute()
    raise DataError(
        f"there is no {path.name}, {path.name}.gz or {path.name}.xz in {folder}{rule[0]}; check "
        "the path",
        f"{folder} 中没有 {path.name}、{path.name}.gz 或 {path.name}.xz{rule[1]}；请检查路径",
        file=path,
    )
