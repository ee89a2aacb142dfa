"""ARPA files: ours written and read again, and every kind of damage named by its line."""

import gzip
import io
from pathlib import Path

import numpy as np
import pytest

from headwise.errors import DataError, UsageError
from headwise.models.ngram import NgramModel, TokenStream, count_ngrams, estimate
from headwise.models.ngram.arpa import is_arpa, read_arpa, save_arpa, write_arpa
from headwise.models.ngram.choices import AddK, KneserNey, ModifiedKneserNey
from headwise.models.ngram.tables import NgramTables
from headwise.text.tokenizer import NUM_SPECIAL, UNKNOWN
from tests.models.ngram.texts import SIZE, draw_sentences

WORDS = [f"词{number}" for number in range(SIZE - NUM_SPECIAL)]
SMALL = """\
written by hand

\\data\\
ngram 1=4
ngram 2=2

\\1-grams:
-99\t<s>\t-0.3
-0.5\t</s>
-0.6\tcat\t-0.2
-0.7\tdog\t-0.1

\\2-grams:
-0.2\t<s> cat
-0.4\tcat </s>

\\end\\
"""


def _tables(order: int) -> NgramTables:
    stream = TokenStream.of_sentences(draw_sentences())
    return estimate(count_ngrams(stream, order=order, vocabulary=SIZE), ModifiedKneserNey())


@pytest.mark.parametrize("order", [1, 2, 4])
@pytest.mark.parametrize("name", ["model.arpa", "model.arpa.gz"])
def test_what_is_written_is_read(order: int, name: str, tmp_path: Path) -> None:
    tables = _tables(order)
    assert is_arpa(tmp_path / name)
    save_arpa(tmp_path / name, tables, WORDS)
    words, found = read_arpa(tmp_path / name)
    assert words == WORDS
    sentences = [*draw_sentences(13, key="new"), [UNKNOWN, 5]]
    pairs = zip(NgramModel(found).score(sentences), NgramModel(tables).score(sentences), strict=True)
    assert all(ours == pytest.approx(theirs, abs=1e-5) for ours, theirs in pairs)
    with pytest.raises(UsageError, match="exists already; choose another name"):
        save_arpa(tmp_path / name, tables, WORDS)


def _read(text: str, tmp_path: Path) -> tuple[list[str], NgramTables]:
    (tmp_path / "x.arpa").write_text(text, encoding="utf-8")
    return read_arpa(tmp_path / "x.arpa")


def test_a_file_written_by_hand(tmp_path: Path) -> None:
    words, tables = _read(SMALL, tmp_path)
    assert words == ["cat", "dog"]
    cat, dog = 4, 5
    scores = NgramModel(tables).score([[cat], [dog], [cat, cat], [UNKNOWN]])
    expected = [[-0.2, -0.4], [-0.3 - 0.7, -0.1 - 0.5], [-0.2, -0.2 - 0.6, -0.4], [-0.3 - 100, -0.5]]
    for found, logarithms in zip(scores, expected, strict=True):
        assert found / np.log(10) == pytest.approx(logarithms, rel=1e-5)


@pytest.mark.parametrize(
    ("before", "after", "line", "message"),
    [
        ("\\data\\", "data", 17, r"has no line \\data\\"),
        ("ngram 1=4\nngram 2=2\n", "", 5, "announces no n-grams"),
        ("ngram 2=2", "ngram 3=2", 5, "stands where `ngram 2=COUNT`"),
        ("ngram 1=4", "ngram 1=5", 13, "5 1-grams are announced, 4 stand before"),
        ("ngram 1=4", "ngram 1=3", 11, "3 1-grams are announced, here stands one more"),
        ("ngram 2=2", "ngram 2=1", 15, "1 2-grams are announced, here stands one more"),
        ("\\end\\\n", "", 16, r"ends without \\end\\: it is cut short"),
        ("-0.4\tcat", "0.4\tcat", 15, "is not a 2-gram: a logarithm of at most 0"),
        ("-0.4\tcat", "nan\tcat", 15, "is not a 2-gram"),
        ("-0.4\tcat", "x\tcat", 15, "is not a 2-gram"),
        ("-0.4\tcat </s>", "-0.4\tcat", 15, "is not a 2-gram"),
        ("cat </s>", "cow </s>", 15, "the word 'cow' is not among the 1-grams"),
        ("cat </s>", "<s> cat", 15, "this 2-gram stands twice"),
        ("dog", "cat", 11, "the word 'cat' stands twice"),
        ("-0.5\t</s>", "-0.5\tend", 13, "has no </s> among its words"),
    ],
)
def test_damage_is_named_by_its_line(before: str, after: str, line: int, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message) as caught:
        _read(SMALL.replace(before, after, 1), tmp_path)
    assert caught.value.line == line
    assert caught.value.exit_status == 3


def test_a_context_must_be_listed(tmp_path: Path) -> None:
    longer = SMALL.replace("ngram 2=2\n", "ngram 2=2\nngram 3=1\n").replace(
        "\\end\\", "\\3-grams:\n-0.1\tdog cat cat\n\\end\\"
    )
    with pytest.raises(DataError, match="the first 2 words of this 3-gram are not among the 2-grams") as caught:
        _read(longer, tmp_path)
    assert caught.value.line == 19


def test_a_line_without_end(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is too long for an ARPA file"):
        _read("x" * 100_000 + "\n" + SMALL, tmp_path)


def test_what_cannot_be_written(tmp_path: Path) -> None:
    stream = TokenStream.of_sentences(draw_sentences())
    tables = count_ngrams(stream, order=2, vocabulary=SIZE)
    with pytest.raises(UsageError, match="add_k or maximum_likelihood cannot be written as ARPA"):
        save_arpa(tmp_path / "a.arpa", estimate(tables, AddK()), WORDS)
    assert not (tmp_path / "a.arpa").exists()
    with pytest.raises(UsageError, match="the token 'a b' cannot stand in an ARPA file"):
        write_arpa(io.StringIO(), estimate(tables, KneserNey()), ["a b", *WORDS[1:]])


def test_packed_is_packed(tmp_path: Path) -> None:
    save_arpa(tmp_path / "a.arpa.gz", _tables(2), WORDS)
    assert gzip.decompress((tmp_path / "a.arpa.gz").read_bytes()).startswith(b"\\data\\\nngram 1=22\n")
