"""Which training pairs would show a sentence the model is measured on."""

from pathlib import Path

from headwise.data.pairs.choices import DataSettings
from headwise.data.pairs.held_out import HeldOut
from headwise.data.pairs.parallel_files import Pair
from headwise.data.pairs.preparation import prepare_data
from headwise.text.choices import CharacterSettings


def pair(source: str, target: str) -> Pair:
    return Pair(source, target, "file", 1)


def test_either_side_leaks_and_punctuation_does_not_hide_it() -> None:
    held = HeldOut.of([pair("Hello, world!", "你好，世界！")])
    assert held.holds(pair("hello world", "大家好"))
    assert held.holds(pair("Hi there", "你好世界"))
    assert not held.holds(pair("你好世界", "Hello world"))
    assert not held.holds(pair("Good night", "晚安"))
    assert not HeldOut().holds(pair("", ""))


def test_preparation_leaves_them_out_and_reports_them(tmp_path: Path) -> None:
    train = [
        ("one", "eins"),
        ("two", "zwei"),
        ("three", "drei"),
        ("TWO!", "doch zwei"),
        ("four", "Eins."),
    ]
    for name, pairs in (
        ("train", train),
        ("valid", [("two", "beide")]),
        ("test", [("eight", "eins")]),
    ):
        for code, side in (("en", 0), ("de", 1)):
            text = "".join(f"{one[side]}\n" for one in pairs)
            (tmp_path / f"{name}.{code}").write_text(text, encoding="utf-8")
    data = DataSettings(
        source="en",
        target="de",
        **{name: str(tmp_path / name) for name in ("train", "valid", "test")},
        filter={"drop_leaked": True},
    )
    prepared = prepare_data(data, CharacterSettings(), tmp_path / "prepared")
    assert len(prepared.train) == 1
    assert prepared.train.details["report"]["dropped"] == {"leaked": 4}
