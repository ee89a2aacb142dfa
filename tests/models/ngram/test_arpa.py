"""ARPA files: ours written and read again, and every kind of damage named by its line."""

import gzip
import io
from pathlib import Path

import numpy as np
import pytest

from headwise.errors import DataError, UsageError
from headwise.models.ngram import NgramModel, TokenStream, arpa_writing, count_ngrams, estimate
from headwise.models.ngram.arpa import ArpaModel, is_arpa, read_arpa
from headwise.models.ngram.arpa_writing import save_arpa, write_arpa
from headwise.models.ngram.choices import (
    AbsoluteDiscounting,
    AddK,
    Katz,
    KneserNey,
    ModifiedKneserNey,
    StupidBackoff,
)
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
@pytest.mark.parametrize("name", ["model.arpa", "model.arpa.gz", "model.arpa.xz"])
def test_what_is_written_is_read(order: int, name: str, tmp_path: Path) -> None:
    tables = _tables(order)
    assert is_arpa(tmp_path / name)
    save_arpa(tmp_path / name, tables, WORDS)
    read = read_arpa(tmp_path / name)
    found = read.tables
    assert (read.words, read.units) == (WORDS, "words")
    sentences = [*draw_sentences(13, key="new"), [UNKNOWN, 5]]
    pairs = zip(
        NgramModel(found).score(sentences), NgramModel(tables).score(sentences), strict=True
    )
    assert all(ours == pytest.approx(theirs, abs=1e-5) for ours, theirs in pairs)
    with pytest.raises(UsageError, match="exists already; choose another name"):
        save_arpa(tmp_path / name, tables, WORDS)


def _read(text: str, tmp_path: Path) -> ArpaModel:
    (tmp_path / "x.arpa").write_text(text, encoding="utf-8")
    return read_arpa(tmp_path / "x.arpa")


def test_a_file_written_by_hand(tmp_path: Path) -> None:
    read = _read(SMALL, tmp_path)
    assert read.words == ["cat", "dog"]
    cat, dog = 4, 5
    scores = NgramModel(read.tables).score([[cat], [dog], [cat, cat], [UNKNOWN]])
    expected = [
        [-0.2, -0.4],
        [-0.3 - 0.7, -0.1 - 0.5],
        [-0.2, -0.2 - 0.6, -0.4],
        [-0.3 - 100, -0.5],
    ]
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
        ("cat\t-0.2", "cat\t1e308", 10, "is not a 1-gram: a logarithm of at most 0, 1 word"),
        ("cat\t-0.2", "cat\t1000", 10, "is not a 1-gram"),
        (
            "cat\t-0.2",
            "cat\t5",
            10,
            "the weight 5 gives words probabilities of more than 1; here it may be at most 0.165",
        ),
        ("cat\t-0.2", "cat\t0.17", 10, "the weight 0.17 gives words probabilities of more than 1"),
        ("dog\t-0.1", "dog\t0.01", 11, "here it may be at most 0;"),
        ("-0.4\tcat", "x\tcat", 15, "is not a 2-gram"),
        ("-0.4\tcat </s>", "-0.4\tcat", 15, "is not a 2-gram"),
        ("cat </s>", "cow </s>", 15, "the word 'cow' is not among the 1-grams"),
        ("cat </s>", "<s> cat", 15, "this 2-gram stands twice"),
        ("dog", "cat", 11, "the word 'cat' stands twice"),
        ("-0.5\t</s>", "-0.5\tend", 13, "has no </s> among its words"),
    ],
)
def test_damage_is_named_by_its_line(
    before: str, after: str, line: int, message: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=message) as caught:
        _read(SMALL.replace(before, after, 1), tmp_path)
    assert caught.value.line == line
    assert caught.value.exit_status == 3


def test_back_off_over_three_orders(tmp_path: Path) -> None:
    """log₁₀ p(</s> | cat dog): listed nowhere but as a word, so both weights are added; a weight
    above 1 where it may stand."""
    text = SMALL.replace("ngram 2=2\n", "ngram 2=3\nngram 3=1\n").replace(
        "-0.6\tcat\t-0.2", "-0.6\tcat\t0.16"
    )
    text = text.replace("-0.4\tcat </s>\n", "-0.4\tcat </s>\n-0.9\tcat dog\t-0.05\n")
    text = text.replace("\\end\\", "\\3-grams:\n-0.01\t<s> cat dog\n\\end\\")
    (found,) = NgramModel(_read(text, tmp_path).tables).score([[4, 5]])
    assert found / np.log(10) == pytest.approx([-0.2, -0.01, -0.05 - 0.1 - 0.5], rel=1e-5)
    (found,) = NgramModel(_read(text, tmp_path).tables).score([[4, 4, 5]])
    assert found / np.log(10) == pytest.approx(
        [-0.2, 0.16 - 0.6, -0.9, -0.05 - 0.1 - 0.5], rel=1e-5
    )


@pytest.mark.parametrize("form", [Katz(), AbsoluteDiscounting(form="backoff"), StupidBackoff()])
def test_our_own_weights_above_one_are_read(
    form: Katz | AbsoluteDiscounting | StupidBackoff, tmp_path: Path
) -> None:
    stream = TokenStream.of_sentences(draw_sentences())
    tables = estimate(count_ngrams(stream, order=3, vocabulary=SIZE), form)
    assert isinstance(form, StupidBackoff) or any(
        (level.weights > 0.05).any() for level in tables.levels
    )
    save_arpa(tmp_path / "own.arpa", tables, WORDS)
    scores = NgramModel(read_arpa(tmp_path / "own.arpa").tables).score(
        draw_sentences(13, key="new")
    )
    assert max(float(one.max()) for one in scores) <= 1e-3


def test_only_tabs_and_plain_spaces_separate(tmp_path: Path) -> None:
    """KenLM's files hold U+00A0 and U+3000 inside words."""
    read = _read(
        SMALL.replace("cat", "c\u00a0a\u3000t").replace("-0.7\tdog\t-0.1", "-0.7 dog  -0.1"),
        tmp_path,
    )
    assert read.words == ["c\u00a0a\u3000t", "dog"]


def test_characters_are_written_and_read(tmp_path: Path) -> None:
    characters = [
        " ",
        "\u3000",
        "\t",
        "▁",
        *(chr(0x4E00 + number) for number in range(SIZE - NUM_SPECIAL - 4)),
    ]
    save_arpa(tmp_path / "zh.arpa", _tables(2), characters, units="characters")
    read = read_arpa(tmp_path / "zh.arpa")
    assert (read.words, read.units) == (characters, "characters")
    text = (tmp_path / "zh.arpa").read_text(encoding="utf-8")
    assert text.startswith("# units: characters\n\n\\data\\\n")
    with pytest.raises(
        DataError,
        match="'U\\+110000' is not a character, though the file says `# units: characters`",
    ):
        _read(text.replace("U+3000", "U+110000"), tmp_path)


def test_half_a_file_is_never_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is written under another name, so that a kill leaves nothing that could be taken for a
    model."""
    path = tmp_path / "a.arpa"

    def write(file: io.TextIOBase, *rest: object, **options: object) -> None:
        file.write("\\data\\\n")
        file.flush()
        assert not path.exists()
        assert [child.suffix for child in tmp_path.iterdir()] == [".incomplete"]
        raise KeyboardInterrupt

    monkeypatch.setattr(arpa_writing, "write_arpa", write)
    with pytest.raises(KeyboardInterrupt):
        save_arpa(path, _tables(2), WORDS)
    assert not list(tmp_path.iterdir())


def test_a_context_must_be_listed(tmp_path: Path) -> None:
    longer = SMALL.replace("ngram 2=2\n", "ngram 2=2\nngram 3=1\n").replace(
        "\\end\\", "\\3-grams:\n-0.1\tdog cat cat\n\\end\\"
    )
    with pytest.raises(
        DataError, match="the first 2 words of this 3-gram are not among the 2-grams"
    ) as caught:
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
    assert gzip.decompress((tmp_path / "a.arpa.gz").read_bytes()).startswith(
        b"\\data\\\nngram 1=22\n"
    )
