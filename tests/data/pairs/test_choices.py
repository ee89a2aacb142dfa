from pathlib import Path

import pytest

from headwise.data.pairs.choices import (
    DataSettings,
    FilesCorpus,
    KnownCorpus,
    PocketCorpus,
    TsvCorpus,
    choose_columns,
    corpus_files,
    corpus_name,
    read_corpus,
)
from headwise.errors import SettingsError
from headwise.settings import check_settings
from tests.data.made import write_lines


def settings(**changes) -> DataSettings:
    return check_settings(
        DataSettings, {"source": "en", "target": "de", "train": "corpus/train", **changes}
    )


@pytest.mark.parametrize(
    ("short", "expected"),
    [
        ("corpus/train", FilesCorpus(path=Path("corpus/train"))),
        ("a/b.tsv", TsvCorpus(path=Path("a/b.tsv"))),
        ("a/b.tsv.gz", TsvCorpus(path=Path("a/b.tsv.gz"))),
        ("known:multi30k/raw/train", KnownCorpus(name="multi30k/raw/train")),
        ("pocket:train", PocketCorpus(split="train")),
        ("pocket:valid:50", PocketCorpus(split="valid", count=50)),
        ({"path": "corpus/train", "weight": 2}, FilesCorpus(path=Path("corpus/train"), weight=2.0)),
        (
            {"path": "x.txt", "columns": {"en": 1, "de": 0}},
            TsvCorpus(path=Path("x.txt"), columns={"en": 1, "de": 0}),
        ),
        ({"path": "known:ptb", "limit": 5}, KnownCorpus(name="ptb", limit=5)),
        ({"name": "ptb"}, KnownCorpus(name="ptb")),
        (
            {"kind": "pocket", "split": "train", "count": 7, "seed": 1},
            PocketCorpus(count=7, seed=1),
        ),
    ],
)
def test_short_and_long_forms(short, expected) -> None:
    assert settings(train=short).train == (expected,)
    assert settings(train=[short, "other"]).train[0] == expected


def test_a_resolved_recipe_reads_the_same() -> None:
    first = settings(
        train=["known:ptb", {"path": "a.tsv", "split": {"by": "en", "part": "train"}}],
        valid="pocket:valid",
    )
    assert check_settings(DataSettings, first.model_dump(mode="json")) == first


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"target": "en"}, "source and target are both 'en'"),
        (
            {"train": {"path": "a", "split": {"by": "fr", "part": "train"}}},
            "split.by is 'fr'; it must be 'en' or 'de'",
        ),
        ({"row_tokens": 100}, "multiple of 8"),
        ({"train": {"path": "a", "wieght": 2}}, "wieght"),
        ({"train": {"kind": "folder"}}, "no kind 'folder'; choose one of"),
        ({"train": "pocket:nowhere"}, "nowhere"),
    ],
)
def test_mistakes_are_named(changes: dict, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        settings(**changes)


@pytest.mark.parametrize("tag", ["two words", "", "the", "<a b>", "<bt>\n", "<>"])
def test_a_tag_is_a_word_in_angle_brackets(tag: str) -> None:
    with pytest.raises(SettingsError) as caught:
        settings(train={"path": "a", "tag": tag})
    assert f"{tag!r} is no tag; a tag is a word in angle brackets, such as <bt>" in caught.value.en
    assert "标签是尖括号中的一个词，例如 <bt>" in caught.value.zh
    settings(train={"path": "a", "tag": "<bt>"})


def test_columns_must_name_both_languages() -> None:
    with pytest.raises(SettingsError, match=r"columns names en, fr, but 'en' and 'de' are needed"):
        choose_columns({"en": 0, "fr": 1}, (), "en", "de")


def test_reading_each_kind(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.en", ["one", "two"])
    write_lines(tmp_path / "a.de", ["eins", "zwei"])
    write_lines(tmp_path / "b.tsv", ["drei\tthree\tx", "vier\tfour\ty"])
    files, tsv = settings(
        train=[
            str(tmp_path / "a"),
            {
                "path": str(tmp_path / "b.tsv"),
                "columns": {"en": 1, "de": 0},
                "keep": [{"column": 2, "values": ["y"]}],
            },
        ]
    ).train
    pairs = [
        p[:2] for corpus in (files, tsv) for p in read_corpus(corpus, source="en", target="de")
    ]
    assert pairs == [("one", "eins"), ("two", "zwei"), ("four", "vier")]
    assert [p[:2] for p in read_corpus(files, source="de", target="en")] == [
        ("eins", "one"),
        ("zwei", "two"),
    ]
    assert corpus_name(tsv) == str(tmp_path / "b.tsv")
    assert corpus_files(files, source="en", target="de") == [tmp_path / "a.en", tmp_path / "a.de"]
    limited = files.model_copy(update={"limit": 1})
    assert [p.source for p in read_corpus(limited, source="en", target="de")] == ["one"]


def test_parts_of_two_corpora_share_no_sentence(tmp_path: Path) -> None:
    lines = [f"sentence number {n}" for n in range(500)]
    write_lines(tmp_path / "a.tsv", [f"{line}.\tx" for line in lines])
    write_lines(tmp_path / "b.tsv", [f"{line.upper()}!\ty" for line in reversed(lines)])
    seen: dict[str, set[str]] = {}
    for part in ("train", "valid", "test"):
        corpora = settings(
            train=[
                {
                    "path": str(tmp_path / name),
                    "split": {"by": "en", "part": part, "valid": 10, "test": 20},
                }
                for name in ("a.tsv", "b.tsv")
            ]
        ).train
        seen[part] = {
            pair.source.lower().rstrip(".!")
            for corpus in corpora
            for pair in read_corpus(corpus, source="en", target="de")
        }
    assert sum(map(len, seen.values())) == 500
    assert min(map(len, seen.values())) > 20


def test_the_built_in_grammar() -> None:
    pytest.importorskip("headwise.pocket")
    corpus = PocketCorpus(split="valid", count=5)
    pairs = list(read_corpus(corpus, source="en", target="zh"))
    assert [pair.line for pair in pairs] == [1, 2, 3, 4, 5]
    assert all(pair.source.isascii() and not pair.target.isascii() for pair in pairs)
    assert (corpus_name(corpus), corpus_files(corpus, source="en", target="zh")) == (
        "pocket:valid",
        [],
    )
