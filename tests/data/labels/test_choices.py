"""Labelled text: every form read as written, every mistake with its file and line."""

from pathlib import Path
from typing import Any

import pytest

from headwise.data.labels.choices import LabelDataSettings, parse_labels, read_labelled
from headwise.data.labels.labelled_files import read_comma_table
from headwise.errors import DataError, SettingsError, UsageError
from headwise.settings import check_settings

TAGGED = [(("I", "saw", "it"), ("PRON", "VERB", "PRON")), (("saws",), ("NOUN",))]
CONLLU = (
    "# text = I saw "
    "it\n1\tI\t_\tPRON\tPRP\t_\t_\t_\t_\t_\n2-3\tsawit\t_\t_\t_\t_\t_\t_\t_\t_\n2\tsaw\t_\tVERB\tVBD\t_\t_\t_\t_\t_\n2.1\tx\t_\tX\tX\t_\t_\t_\t_\t_\n3\tit\t_\tPRON\tPRP\t_\t_\t_\t_\t_\n\n1\tsaws\t_\tNOUN\tNNS\t_\t_\t_\t_\t_\n"
)


def _write(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def _read(given: Any, shape: str) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    return [
        (one.words, one.labels)
        for one in read_labelled(parse_labels(given), language="en", shape=shape)
    ]  # type: ignore[arg-type]


def test_one_label_a_text(tmp_path: Path) -> None:
    wanted = [(("a film",), ("1",)), (("dull, dull",), ("0",))]
    assert _read(_write(tmp_path, "a.tsv", "a film\t1\n\ndull, dull\t0\n"), "one") == wanted
    headed = _write(tmp_path, "h.tsv", "text\tlabel\na film\t1\ndull, dull\t0\n")
    assert _read({"path": headed, "header": True}, "one") == wanted
    turned = _write(tmp_path, "b.tsv", "1\ta film\n0\tdull, dull\n")
    assert _read({"path": turned, "text_column": 1, "label_column": 0}, "one") == wanted
    assert (
        _read(_write(tmp_path, "c.csv", 'text,label\na film,1\n"dull, dull",0\n'), "one") == wanted
    )
    leading = _write(tmp_path, "d.txt", "1:x a film\n0:y dull, dull\n")
    assert _read({"path": leading, "kind": "leading", "coarse": True}, "one") == wanted
    assert _read({"path": leading, "kind": "leading", "limit": 1}, "one") == [
        (("a film",), ("1:x",))
    ]


def test_a_tag_for_each_word(tmp_path: Path) -> None:
    assert _read(_write(tmp_path, "a.conllu", CONLLU), "each") == TAGGED
    columns = _write(tmp_path, "a.txt", "I\tPRON\nsaw\tVERB\nit\tPRON\n\n\nsaws\tNOUN\n")
    assert _read({"path": columns, "kind": "columns"}, "each") == TAGGED
    slashed = _write(tmp_path, "b.txt", "I/PRON [saw/VERB it/PRON]nt\n\nsaws/NOUN\n")
    assert _read({"path": slashed, "kind": "slashed"}, "each") == TAGGED
    words, tags = (
        _write(tmp_path, "w.txt", "I saw it\nsaws\n"),
        _write(tmp_path, "t.txt", "PRON VERB PRON\nNOUN\n"),
    )
    assert _read({"path": words, "kind": "aligned", "tags_path": tags}, "each") == TAGGED
    own = parse_labels({"path": str(tmp_path / "a.conllu"), "tags": "xpos"})
    assert next(read_labelled(own, language="en", shape="each")).labels == ("PRP", "VBD", "PRP")


@pytest.mark.parametrize(
    ("name", "text", "extra", "shape", "message"),
    [
        ("a.tsv", "", {}, "one", "empty"),
        (
            "a.tsv",
            "good\t1\nno label\n",
            {},
            "one",
            r"a\.tsv:2: the line has 1 column\(s\), column 1",
        ),
        ("a.tsv", "good\t1\n\t0\n", {}, "one", r"a\.tsv:2: the text is empty"),
        ("a.tsv", "good\t \n", {}, "one", r"a\.tsv:1: the label is empty"),
        ("a.csv", 'text,label\n"a\nb",1\nc\n', {}, "one", r"a\.csv:4: the line has 1 column"),
        ("a.csv", 'text,label\na,1\n"b,1\n', {}, "one", r"a\.csv:3: is not comma-separated text"),
        ("a.tsv", "x" * 70_000 + "\t1\n", {}, "one", r"a\.tsv:1: is longer than 65,536 bytes"),
        ("a.conllu", "1\tI\tPRON\n", {}, "each", r"a\.conllu:1: has 3 columns, CoNLL-U has 10"),
        (
            "a.conllu",
            "1\tI\ti\t_\tPRP" + "\t_" * 5 + "\n",
            {},
            "each",
            r"a\.conllu:1: 'I' has no upos tag \(4th column: _\)",
        ),
        (
            "a.txt",
            "I\tPRON\nsaw\n",
            {"kind": "columns"},
            "each",
            r"a\.txt:2: has 1 column\(s\), a word, a tab and its tag",
        ),
        (
            "a.txt",
            "I\tPRON\nsaw\t\n",
            {"kind": "columns"},
            "each",
            r"a\.txt:2: a word or its tag is empty",
        ),
        ("a.txt", "I/PRON saw\n", {"kind": "slashed"}, "each", r"a\.txt:1: 'saw' has no tag"),
    ],
)
def test_mistakes_have_a_place(
    tmp_path: Path, name: str, text: str, extra: Any, shape: str, message: str
) -> None:
    path = _write(tmp_path, name, text)
    with pytest.raises(DataError, match=message):
        _read({"path": path, **extra}, shape)


def test_tags_that_do_not_match_their_words(tmp_path: Path) -> None:
    words = _write(tmp_path, "w.txt", "I saw it\nsaws\n")
    given = {
        "path": words,
        "kind": "aligned",
        "tags_path": _write(tmp_path, "t.txt", "PRON VERB PRON\nNOUN NOUN\n"),
    }
    with pytest.raises(DataError, match=r"t\.txt:2: has 2 tags for the 1 words of w\.txt"):
        _read(given, "each")
    _write(tmp_path, "t.txt", "PRON VERB PRON\n")
    with pytest.raises(DataError, match=r"t\.txt:2: has no line for this line of w\.txt"):
        _read(given, "each")


def test_the_other_shape_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match="has a tag for each word, one label a text is needed; set task=tagging"
    ):
        _read(_write(tmp_path, "a.conllu", CONLLU), "one")
    with pytest.raises(
        UsageError,
        match="has one label a text, a tag for each word is needed; set task=classification",
    ):
        _read(_write(tmp_path, "a.tsv", "a\t1\n"), "each")


def test_a_name_that_does_not_tell_its_form() -> None:
    with pytest.raises(SettingsError, match=r"'my/data\.txt' does not show the format"):
        check_settings(LabelDataSettings, {"language": "en", "train": "my/data.txt"})
    split = {"by": "de", "part": "train"}
    with pytest.raises(SettingsError, match=r"split\.by is 'de'; the text is 'en'"):
        check_settings(
            LabelDataSettings, {"language": "en", "train": {"path": "a.tsv", "split": split}}
        )


def test_a_corpus_without_labels() -> None:
    with pytest.raises(
        UsageError, match="known:ptb/train has no labels; choose one of: known:people-daily"
    ):
        _read("known:ptb/train", "one")


def test_a_published_corpus_with_a_row_without_text(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("label,review\n1,好\n0,\n0,差\n", encoding="utf-8")
    found = read_comma_table(
        tmp_path / "a.csv", text_column=1, label_column=0, header=True, skip_empty=True
    )
    assert [(one.words, one.labels) for one in found] == [(("好",), ("1",)), (("差",), ("0",))]
    with pytest.raises(DataError, match=r"a\.csv:3: the text is empty"):
        list(read_comma_table(tmp_path / "a.csv", text_column=1, label_column=0, header=True))
