"""word2vec's formats: both ways with gensim, and every defect by its place."""

import importlib
from pathlib import Path

import numpy as np
import pytest

from headwise.errors import DataError
from headwise.text.word_vector_files import MAX_WORD_BYTES, read_vectors, write_vectors

WORDS = ["the", "词性", "naïve", "1990", "-"]
VECTORS = np.random.default_rng(1).normal(size=(5, 7)).astype(np.float32)


@pytest.mark.parametrize("binary", [False, True])
def test_there_and_back_and_through_gensim(tmp_path: Path, binary: bool) -> None:
    gensim = importlib.import_module("gensim.models")
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    write_vectors(ours, WORDS, VECTORS, binary=binary)
    words, vectors = read_vectors(ours)
    assert words == WORDS
    assert np.array_equal(vectors, VECTORS)
    loaded = gensim.KeyedVectors.load_word2vec_format(str(ours), binary=binary)
    assert loaded.index_to_key == WORDS
    assert np.array_equal(loaded.vectors, VECTORS)
    loaded.save_word2vec_format(str(theirs), binary=binary)
    words, vectors = read_vectors(theirs)
    assert sorted(words) == sorted(WORDS)
    assert np.allclose(vectors[words.index("词性")], VECTORS[1], atol=1e-6)


def test_binary_with_a_newline_behind_each_vector_is_read(tmp_path: Path) -> None:
    path = tmp_path / "vectors"
    path.write_bytes(
        b"2 1\n"
        + b"".join(f"{word} ".encode() + np.float32(1.5).tobytes() + b"\n" for word in "ab")
    )
    assert read_vectors(path)[0] == ["a", "b"]


@pytest.mark.parametrize(
    ("content", "reason", "line"),
    [
        (b"", "the first line must hold", 1),
        (b"3\nthe 1 2 3\n", "the first line must hold", 1),
        (b"-1 3\nthe 1 2 3\n", "the first line must hold", 1),
        (b"99999999999 300\nthe 1 2 3\n", "cannot hold", 1),
        (b"0 3\n", "at least one word", 1),
        (b"1 0\nthe\n", "1 to 65,536 numbers", 1),
        (b"2 3\nthe 1 2 3\nof 1 2\n", "has 2 numbers, the first line announces 3", 3),
        (b"2 3\nthe 1 2 3 4\nof 1 2 3\n", "has 4 numbers, the first line announces 3", 2),
        (b"3 2\nthe 1 2\nof 1 2.0000000\n", "holds 2 words, the first line announces 3", 3),
        (b"1 2\nthe 1 2\nof 1 2\n", "more than 1 words", 3),
        (b"2 2\nthe 1 2\nof 1 x\n", "not a finite number", 3),
        (b"2 2\nthe 1 2\nof 1 nan\n", "not a finite number", 3),
        (b"2 2\nthe 1 2\nof 1 -1e39\n", "not a finite number", 3),
        (b"2 2\nthe 1 2\nof_it 1 1_0\n", "not a finite number", 3),
        (b"2 2\nthe 1 2\n 1 2\n", "has numbers without a word", 3),
        (b"2 1\nab \x00\x00\x80\x3f \x00\x00\x80\x3f", "has numbers without a word", None),
        (b"2 2\nthe 1 2\nthe 1 2\n", "holds 'the' twice", None),
        (b"1 2\n\xff\xfe 1 2\n", "is not UTF-8", 2),
        (b"1 1\n" + b"x" * 6000 + b" 1\n", "longer than", None),
        (b"2 2\na \x00\x00\x80\x3f\x00\x00\x80\x3fb \x00\x00", "holds fewer words", None),
        (b"1 1\na \x00\x00\xc0\x7f", "not a finite number", None),
        (b"1 1\na \x00\x00\x80\x3fb \x00\x00\x80\x3f", "more than 1 words", None),
    ],
)
def test_defects_are_named(tmp_path: Path, content: bytes, reason: str, line: int | None) -> None:
    path = tmp_path / "vectors.txt"
    path.write_bytes(content)
    with pytest.raises(DataError, match=reason) as caught:
        read_vectors(path)
    assert caught.value.line == line


def test_a_missing_file_and_a_word_without_end(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot be read \(No such file"):
        read_vectors(tmp_path / "none")
    path = tmp_path / "long"
    path.write_bytes(b"1 1\n" + b"\x01" * (MAX_WORD_BYTES + 100))
    with pytest.raises(DataError, match=r"word 1 is longer than"):
        read_vectors(path)
