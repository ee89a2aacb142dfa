"""Reads and writes word vectors in the two formats of word2vec, which gensim and most tools use.

    text      "2 3\\n" then a line a word: "the 0.1 -0.2 0.3"
    binary    "2 3\\n" then for each word: its UTF-8 bytes, a space, 3 little-endian float32
              (and, in some writers, a newline)

Everything is checked: the header against the size of the file before memory is allocated, the width
of every line, every number finite, no word empty or twice, exactly as many words as announced.
Nothing is unpickled.

Tested against: gensim's save_word2vec_format and load_word2vec_format, both ways; damaged files by
file and line.
"""

import io
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from headwise.errors import DataError
from headwise.storage import write_bytes

MAX_DIM = 65_536
MAX_WORD_BYTES = 4096
MAX_HEADER_BYTES = 64
LARGEST = float(np.finfo(np.float32).max)


def write_vectors(path: Path, words: Sequence[str], vectors: np.ndarray, *, binary: bool) -> None:
    """Write a file completely or not at all."""
    content = io.BytesIO()
    content.write(f"{len(words)} {vectors.shape[1]}\n".encode())
    for word, vector in zip(words, vectors.astype("<f4"), strict=True):
        if binary:
            content.write(word.encode() + b" " + vector.tobytes())
        else:
            # repr of a float32 is the shortest text that reads back as the same number.
            content.write((word + " " + " ".join(map(str, vector)) + "\n").encode())
    write_bytes(path, content.getvalue())


def read_vectors(path: Path) -> tuple[list[str], np.ndarray]:
    """Words and vectors of a text or binary file; the first entry decides which it is."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            num_words, dim = _read_header(file, path, size)
            start = file.tell()
            first = file.read(min(size - start, MAX_WORD_BYTES + 64 * dim))
            file.seek(start)
            read = _read_text if _is_text(first, dim) else _read_binary
            words, vectors = read(file, path, num_words, dim)
    except OSError as error:
        raise DataError(
            f"cannot be read ({error.strerror}); give a file in word2vec's text or binary format",
            f"无法读取（{error.strerror}）；请给出 word2vec 文本或二进制格式的文件",
            file=path,
        ) from error
    _check_distinct(words, path)
    return words, vectors


def _read_header(file: BinaryIO, path: Path, size: int) -> tuple[int, int]:
    line = file.readline(MAX_HEADER_BYTES)
    fields = line.split()
    if (
        len(fields) != 2
        or not line.endswith(b"\n")
        or not all(field.isdigit() and len(field) < 12 for field in fields)
    ):
        raise DataError(
            f"begins with {line!r:.40}; the first line must hold the number of words and the "
            "width, e.g. 71291 100",
            f"以 {line!r:.40} 开头；首行应为词数与维数，例如 71291 100",
            file=path,
            line=1,
        )
    num_words, dim = int(fields[0]), int(fields[1])
    # The shortest entry is a one-byte word, a space and two bytes a number ("0 "), as text.
    if not 1 <= dim <= MAX_DIM or num_words < 1 or num_words * (2 + 2 * dim) - 1 > size:
        raise DataError(
            f"announces {num_words:,} words of {dim:,} numbers, which a file of {size:,} bytes "
            f"cannot hold (at least one word, 1 to {MAX_DIM:,} numbers); use another copy",
            f"声明有 {num_words:,} 个词、每个 {dim:,} 个数，而文件仅 {size:,} 字节，放不下"
            f"（至少一个词，维数 1 到 {MAX_DIM:,}）；请换一份文件",
            file=path,
            line=1,
        )
    return num_words, dim


def _is_text(first: bytes, dim: int) -> bool:
    """Whether the first entry can be read as a word and `dim` numbers."""
    fields = first.partition(b"\n")[0].split()
    try:
        return len(fields) >= 2 and all(isinstance(float(field), float) for field in fields[1:])
    except ValueError:
        return False


def _read_text(
    file: BinaryIO, path: Path, num_words: int, dim: int
) -> tuple[list[str], np.ndarray]:
    words, vectors = [], np.empty((num_words, dim), dtype=np.float32)
    longest = MAX_WORD_BYTES + 64 * dim
    number = 0
    while raw := file.readline(longest + 1):
        fields = raw.rstrip().split(b" ")
        line = number + 2
        if len(raw) > longest:
            raise DataError(
                f"is longer than {longest:,} bytes, too long for {dim:,} numbers; use another copy",
                f"超过 {longest:,} 字节，对 {dim:,} 个数来说过长；请换一份文件",
                file=path,
                line=line,
            )
        if number == num_words:
            raise _wrong_count(
                path, line, f"more than {num_words:,}", f"多于 {num_words:,}", num_words
            )
        if len(fields) != dim + 1:
            raise DataError(
                f"has {len(fields) - 1:,} numbers, the first line announces {dim:,}; every word "
                "needs the same width",
                f"有 {len(fields) - 1:,} 个数，而首行声明为 {dim:,}；每个词的维数必须相同",
                file=path,
                line=line,
            )
        try:
            numbers = np.array([float(field) for field in fields[1:]])
        except ValueError:
            raise _not_numbers(path, line) from None
        # Python reads 1_0 as 10, no other tool does; what is finite may still be too large for the
        # vectors.
        if b"_" in raw.rstrip()[len(fields[0]) :] or not (np.abs(numbers) <= LARGEST).all():
            raise _not_numbers(path, line)
        vectors[number] = numbers
        words.append(_decode(fields[0], path, line))
        number += 1
    if number < num_words:
        raise _wrong_count(path, number + 1, f"{number:,}", f"{number:,}", num_words)
    return words, vectors


def _read_binary(
    file: BinaryIO, path: Path, num_words: int, dim: int
) -> tuple[list[str], np.ndarray]:
    start = file.tell()
    if num_words * (4 * dim + 2) > os.fstat(file.fileno()).st_size - start:
        raise _wrong_count(path, None, "fewer", "不足", num_words)
    words, vectors = [], np.empty((num_words, dim), dtype=np.float32)
    for number in range(num_words):
        entry = bytearray()
        while (byte := file.read(1)) != b" ":
            if not byte:
                raise _wrong_count(path, None, f"{number:,}", f"{number:,}", num_words)
            if byte != b"\n" or entry:  # some writers put a newline behind each vector
                entry += byte
            if len(entry) > MAX_WORD_BYTES:
                raise DataError(
                    f"word {number + 1:,} is longer than {MAX_WORD_BYTES:,} bytes; the file is "
                    "damaged or of another format",
                    f"第 {number + 1:,} 个词超过 {MAX_WORD_BYTES:,} 字节；文件已损坏或格式不同",
                    file=path,
                )
        numbers = file.read(4 * dim)
        if len(numbers) < 4 * dim:
            raise _wrong_count(path, None, f"{number:,}", f"{number:,}", num_words)
        vectors[number] = np.frombuffer(numbers, dtype="<f4")
        if not np.isfinite(vectors[number]).all():
            raise _not_numbers(path, None, word=number + 1)
        words.append(_decode(bytes(entry), path, None))
    if file.read(2).strip(b"\n"):
        raise _wrong_count(path, None, f"more than {num_words:,}", f"多于 {num_words:,}", num_words)
    return words, vectors


def _decode(raw: bytes, path: Path, line: int | None) -> str:
    if not raw:
        raise DataError(
            "has numbers without a word before them; every vector needs its word: write one, or "
            "remove the vector",
            "只有数而没有词；每个向量都要有词：请补上词，或删去该向量",
            file=path,
            line=line,
        )
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"the word {raw!r:.40} is not UTF-8; write the file again in UTF-8",
            f"词 {raw!r:.40} 不是 UTF-8；请以 UTF-8 重新写出文件",
            file=path,
            line=line,
        ) from error


def _check_distinct(words: list[str], path: Path) -> None:
    if len(set(words)) == len(words):
        return
    twice = next(word for word, count in Counter(words).items() if count > 1)
    raise DataError(
        f"holds {twice!r} twice; a word has one vector: remove one of them",
        f"{twice!r} 出现两次；一个词只有一个向量：请删去其一",
        file=path,
    )


def _wrong_count(path: Path, line: int | None, en: str, zh: str, num_words: int) -> DataError:
    return DataError(
        f"holds {en} words, the first line announces {num_words:,}; the file was cut short or its "
        "header is wrong",
        f"有 {zh} 个词，而首行声明为 {num_words:,}；文件不完整，或首行有误",
        file=path,
        line=line,
    )


def _not_numbers(path: Path, line: int | None, *, word: int | None = None) -> DataError:
    place_en, place_zh = ("", "") if word is None else (f"word {word:,} ", f"第 {word:,} 个词")
    return DataError(
        f"{place_en}holds something that is not a finite number; a vector consists of numbers "
        "such as -0.25",
        f"{place_zh}含有不是有限数的内容；向量应由 -0.25 这样的数组成",
        file=path,
        line=line,
    )
