"""Text of one language, from every place it may stand."""

from pathlib import Path

import pytest

from headwise.data.known import corpora as known
from headwise.data.text.choices import TextDataSettings, read_texts
from headwise.errors import DataError, SettingsError, UsageError
from headwise.settings import check_settings


def _read(train: object, language: str = "en", **more: object) -> list[str]:
    data = check_settings(TextDataSettings, {"language": language, "train": train, **more})
    return list(read_texts(data, "train"))


def test_files_columns_and_the_grammar(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(" one \n\ntwo\n", encoding="utf-8")
    (tmp_path / "b.tsv").write_text("x\teins\ny\tzwei\n", encoding="utf-8")
    assert _read(str(tmp_path / "a.txt")) == ["one", "two"]
    assert _read(str(tmp_path / "a.txt"), keep_empty=True) == ["one", "", "two"]
    assert _read(
        [str(tmp_path / "a.txt"), {"path": str(tmp_path / "b.tsv"), "column": 1, "limit": 1}]
    ) == [
        "one",
        "two",
        "eins",
    ]
    assert _read({"path": str(tmp_path / "b.tsv"), "header": True}) == ["y"]
    assert len(_read("pocket:valid:7", "zh")) == 7
    parts = [
        _read({"path": str(tmp_path / "a.txt"), "split": {"by": "en", "part": p, "of": 3}})
        for p in ("train", "valid", "test")
    ]
    assert sorted(line for part in parts for line in part) == ["one", "two"]


def test_known_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(known.VARIABLE, str(tmp_path))
    monkeypatch.setattr(known, "_check_files", lambda name, files: None)
    for name, content in {
        "ptb/ptb.train.txt.gz": " no it <unk> \n",
        "people-daily-199801/train.txt.gz": "[中央/n 电台/n]nt 说/v\n",
        "sighan15-csc/test.tsv.gz": "朋唷\t朋友\n",
        "3am-zh-en/train.zh.gz": "一张照片\n",
        "tatoeba-challenge/dev-v2023-09-26.eng-zho.txt.gz": (
            "eng\tcmn_Hant\ta\t這\neng\tcmn_Hans\tb\t这\n"
        ),
    }.items():
        import gzip

        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(gzip.compress(content.encode()))
    assert _read("known:ptb/train") == ["no it <unk>"]
    assert _read("known:people-daily-199801/train", "zh") == ["中央电台说"]
    assert _read({"name": "people-daily-199801/train", "spaced": True}, "zh") == ["中央 电台 说"]
    data = check_settings(
        TextDataSettings, {"language": "zh", "train": "known:people-daily-199801/train"}
    )
    assert list(read_texts(data, "train", in_words=True)) == ["中央 电台 说"]
    joined = {"name": "people-daily-199801/train", "spaced": False}
    data = check_settings(TextDataSettings, {"language": "zh", "train": joined})
    assert list(read_texts(data, "train", in_words=True)) == ["中央电台说"]
    assert _read("known:sighan15-csc/test", "zh") == ["朋友"]
    assert _read("known:3am-zh-en/train", "zh") == ["一张照片"]
    assert _read("known:tatoeba-challenge/dev-v2023-09-26.eng-zho", "zh") == ["这"]
    with pytest.raises(UsageError, match=r"known:ptb/train has en, not zh; change data\.language"):
        _read("known:ptb/train", "zh")


def test_what_is_wrong_is_named(tmp_path: Path) -> None:
    (tmp_path / "b.tsv").write_text("x\teins\nzwei\n", encoding="utf-8")
    with pytest.raises(DataError, match="column 1 \\(from 0\\) is asked for") as caught:
        _read({"path": str(tmp_path / "b.tsv"), "column": 1})
    assert caught.value.line == 2
    with pytest.raises(SettingsError, match=r"split\.by is 'de'; the text is 'en'"):
        _read({"path": "a.txt", "split": {"by": "de", "part": "train"}})
    with pytest.raises(DataError, match=r"there is no nothing\.txt"):
        _read(str(tmp_path / "nothing.txt"))
