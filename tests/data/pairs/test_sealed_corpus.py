"""A sealed corpus is read only as it was written: every kind of change is told apart."""

import shutil
from pathlib import Path

import pytest

from headwise.data.pairs.choices import DataSettings, corpus_files, read_corpus
from headwise.data.pairs.sealed_corpus import (
    DESCRIPTION,
    KIND,
    check_sealed_corpus,
    corpora_behind,
    read_description,
)
from headwise.errors import DataError
from headwise.storage import MANIFEST, publish_directory, write_sealed_json

LINES = ("one", "two", "three\u2028still three", "four", "five")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    with publish_directory(tmp_path / "sealed", kind=KIND) as folder:
        for code in ("en", "de"):
            text = "".join(f"{line} {code}\n" for line in LINES)
            (folder / f"train.{code}").write_text(text, encoding="utf-8", newline="\n")
        described = {"languages": {"source": "en", "target": "de"}, "pairs": len(LINES)}
        write_sealed_json(folder / DESCRIPTION, {**described, "corpora": [{"kind": "pocket"}]})
    return tmp_path / "sealed"


def data_of(prefix: Path) -> DataSettings:
    return DataSettings.model_validate({"source": "en", "target": "de", "train": str(prefix)})


def test_it_is_read_as_two_files(corpus: Path) -> None:
    data = data_of(corpus / "train")
    pairs = list(read_corpus(data.train[0], source="en", target="de"))
    assert [pair.source for pair in pairs] == [f"{line} en" for line in LINES]
    assert read_description(corpus)["pairs"] == len(LINES)
    assert corpora_behind(corpus / "train") == [{"kind": "pocket"}]


def change(corpus: Path, name: str, old: bytes, new: bytes) -> None:
    content = (corpus / name).read_bytes()
    assert old in content
    (corpus / name).write_bytes(content.replace(old, new))


def lose_a_line(corpus: Path) -> None:
    change(corpus, "train.de", b"two de\n", b"")


def add_a_line(corpus: Path) -> None:
    change(corpus, "train.en", b"two en\n", b"two en\nsix en\n")


def change_a_letter(corpus: Path) -> None:
    change(corpus, "train.de", b"two", b"too")


def change_the_description(corpus: Path) -> None:
    change(corpus, DESCRIPTION, b'"pairs": 5', b'"pairs": 4')


def change_the_manifest(corpus: Path) -> None:
    change(corpus, MANIFEST, b"sha256", b"sha255")


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lose_a_line, r"train\.de: has 4 lines, 5 were distilled; distil again"),
        (add_a_line, r"train\.en: has 6 lines, 5 were distilled; distil again"),
        (change_a_letter, r"train\.de: is not the file that was distilled; distil again"),
        (change_the_description, r"distilled\.json: is not the file that was distilled"),
        (change_the_manifest, r"MANIFEST\.json: is not the file that was distilled"),
        (lambda corpus: (corpus / DESCRIPTION).unlink(), r"distilled\.json: is missing; distil"),
        (lambda corpus: (corpus / MANIFEST).unlink(), r"MANIFEST\.json: is missing; distil"),
        (
            lambda corpus: (corpus / "train.fr").touch(),
            r"train\.fr: is not part of the distilled corpus",
        ),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_a_change_is_refused_and_named(corpus: Path, damage, told: str) -> None:
    check_sealed_corpus(corpus / "train")
    damage(corpus)
    data = data_of(corpus / "train")
    for read in (
        lambda: corpus_files(data.train[0], source="en", target="de"),
        lambda: list(read_corpus(data.train[0], source="en", target="de")),
    ):
        with pytest.raises(DataError, match=told):
            read()


def test_a_missing_text_is_told_as_of_any_corpus(corpus: Path) -> None:
    (corpus / "train.de").unlink()
    with pytest.raises(DataError, match=r"there is no train\.de"):
        corpus_files(data_of(corpus / "train").train[0], source="en", target="de")


def test_other_corpora_are_left_alone(corpus: Path, tmp_path: Path) -> None:
    for code in ("en", "de"):
        shutil.copy(corpus / f"train.{code}", tmp_path / f"train.{code}")
        shutil.copy(corpus / f"train.{code}", corpus / f"valid.{code}")
    (tmp_path / "train.de").write_text("x\n" * len(LINES), encoding="utf-8")
    check_sealed_corpus(tmp_path / "train")
    check_sealed_corpus(corpus / "valid")
    assert corpora_behind(tmp_path / "train") == []


def test_it_is_checked_once_for_each_state(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_sealed_corpus(corpus / "train")
    with monkeypatch.context() as patch:
        patch.delattr("headwise.data.pairs.sealed_corpus.verify_directory")
        check_sealed_corpus(corpus / "train")
    change_a_letter(corpus)
    with pytest.raises(DataError, match="is not the file that was distilled"):
        check_sealed_corpus(corpus / "train")
