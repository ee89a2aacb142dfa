"""Occurrences with senses: the rows written to a file, and every defect."""

from pathlib import Path

import pytest

from headwise.data.labels.word_senses import Occurrence, read_senses
from headwise.errors import DataError, UsageError

ROWS = (
    "bank\triver\t3\tsat on the bank\n"
    "bank\tmoney\t0\tBank of China\n"
    "bank\tmoney\t1\tthe banks lend\n"
    "seal\tanimal\t1\ta seal\n"
)


def _write(folder: Path, text: str) -> str:
    (folder / "senses.tsv").write_text(text, encoding="utf-8")
    return str(folder / "senses.tsv")


def test_rows_become_occurrences_and_other_forms_are_left_out(tmp_path: Path) -> None:
    found = read_senses(_write(tmp_path, ROWS))
    assert found.found[0] == Occurrence("bank", "river", 3, ("sat", "on", "the", "bank"))
    assert [one.sense for one in found.found] == ["river", "money", "animal"]
    assert found.num_left_out == 1
    assert found.words == ("bank", "seal")
    assert len(read_senses(_write(tmp_path, ROWS), words=("seal",)).found) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bank\triver\tsat on the bank\n", "has 3 column"),
        ("bank\triver\t4\tsat on the bank\n", "has 4 words and the position '4'"),
        ("bank\triver\t-1\tsat on the bank\n", "the position '-1'"),
        ("bank\triver\t0\tsat on the bank\n", "no occurrence written as its word"),
        ("", "empty"),
    ],
)
def test_defects_are_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_senses(_write(tmp_path, text))


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no word 'crane'; choose one of: bank, seal"):
        read_senses(_write(tmp_path, ROWS), words=("crane",))
    with pytest.raises(DataError, match=r"nowhere\.tsv"):
        read_senses(str(tmp_path / "nowhere.tsv"))
