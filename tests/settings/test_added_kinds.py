"""Words of other packages: found by name, imported alone, checked like ours, and missed by name."""

import os
import shutil
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from headwise.attention.choices import attention_kinds
from headwise.attention.kernels.full import Full
from headwise.attention.score_choices import find_scores
from headwise.blocks.choices import norm_kinds
from headwise.errors import SettingsError, StoppedBySignal
from headwise.models.choices import EncoderDecoderSettings, build_model
from headwise.positions.choices import position_kinds
from headwise.randomness import torch_generator
from headwise.settings import apply_overrides, check_settings, read_settings_file
from headwise.settings.added_kinds import added_words, check_packages, describe_words, words_in

MODULE = """
from typing import ClassVar, Literal
from torch import nn
from headwise.blocks.declaration import NormKind
from headwise.blocks.normalization import LayerNorm
from headwise.attention.scores.declaration import ScoreKind
from headwise.attention.scores.dot import scaled_dot_scores
from headwise.positions.declaration import PositionKind
from headwise.positions.sinusoidal import SinusoidalPositions

class Double(NormKind):
    kind: Literal["double"] = "double"
    times: int = 2
    def build(self, *, dim):
        return nn.Sequential(*(LayerNorm(dim) for _ in range(self.times)))

class Half(ScoreKind):
    kind: Literal["half"] = "half"
    title, summary, paper = ("half", "一半"), ("half of it", "取一半"), ""
    formula = "q · k / 2"
    def build(self, *, query_dim, key_dim):
        return lambda q, k: scaled_dot_scores(q, k) / 2

class Bare(ScoreKind):
    kind: str = "bare"

class Waves(PositionKind):
    kind: Literal["waves"] = "waves"
    def build_added(self, *, dim):
        return SinusoidalPositions(dim)
"""
ENTRIES = """[headwise.norms]
double = someone:Double
wrong = someone:Waves
[headwise.scores]
half = someone:Half
other = someone:Half
bare = someone:Bare
[headwise.positions]
waves = someone:Waves
[headwise.attention]
broken = someone_else:Broken
fused = someone_else:Fused
"""


def install(place: Path, name: str, entries: str) -> None:
    facts = place / f"{name}-1.5.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.5\n")
    (facts / "entry_points.txt").write_text(entries)


@pytest.fixture
def someone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "someone.py").write_text(MODULE)
    install(tmp_path, "someones-words", ENTRIES)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "someone", raising=False)
    return tmp_path


DATA = {
    "dim": 8,
    "norm": {"kind": "double", "times": 3, "place": "after"},
    "position": {"kind": "waves"},
    "encoder": {"layers": 1, "heads": 2, "attention": {"kind": "full", "score": {"kind": "half"}}},
    "decoder": {"layers": 1, "heads": 2},
}


def test_words_are_read_built_and_written_again(someone: Path) -> None:
    settings = check_settings(EncoderDecoderSettings, DATA)
    dumped = settings.model_dump(mode="json")
    assert dumped["norm"] == {"kind": "double", "times": 3, "place": "after"}
    assert check_settings(EncoderDecoderSettings, dumped) == settings
    build_model(settings, source_size=7, target_size=7, generator=torch_generator("added"))
    found = {(one.group, one.word, one.package, one.version) for one in words_in(settings)}
    assert found == {
        ("headwise.norms", "double", "someones-words", "1.5"),
        ("headwise.positions", "waves", "someones-words", "1.5"),
        ("headwise.scores", "half", "someones-words", "1.5"),
    }


def test_an_override_may_name_a_word(someone: Path) -> None:
    data = apply_overrides({"dim": 8}, ["norm.kind=double"], settings=EncoderDecoderSettings)
    assert check_settings(EncoderDecoderSettings, data).norm.kind == "double"


def test_mistakes_inside_are_told_with_their_path(someone: Path) -> None:
    data = DATA | {"norm": {"kind": "double", "times": "many", "tims": 2}}
    with pytest.raises(SettingsError, match=r"norm\.times: must be a whole number") as caught:
        check_settings(EncoderDecoderSettings, data)
    assert "norm.tims" in caught.value.en


def test_a_list_of_words_imports_nothing(someone: Path) -> None:
    assert added_words("headwise.norms") == ["double", "wrong"]
    assert "someone" not in sys.modules


def test_what_is_built_in_wins(someone: Path) -> None:
    data = {"dim": 8, "encoder": {"attention": {"kind": "fused"}}}
    settings = check_settings(EncoderDecoderSettings, data)
    assert type(settings.encoder.attention).__module__ == "headwise.attention.kernels.fused"
    assert words_in(settings) == []


def test_a_package_that_fails_is_named(someone: Path) -> None:
    data = DATA | {"encoder": {"attention": {"kind": "broken"}}}
    with pytest.raises(SettingsError, match=r"package someones-words gives the kind 'broken', but"):
        check_settings(EncoderDecoderSettings, data)
    with pytest.raises(SettingsError, match=r"'wrong' as .*Waves.*NormKind is needed"):
        check_settings(EncoderDecoderSettings, DATA | {"norm": {"kind": "wrong"}})


def test_a_list_of_kinds_leaves_out_what_cannot_be_imported(
    someone: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert "fused" in attention_kinds()
    assert "broken" not in attention_kinds()
    (record,) = [one for one in caplog.records if "'broken'" in one.message]
    assert "package someones-words" in record.message


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import sys; sys.exit(7)", "SystemExit: 7"),
        ("class Odd(BaseException): ...\nraise Odd('here')", "Odd: here"),
        ("raise ValueError('one\\ntwo \\x1b[31m')", r"ValueError: one two  \[31m"),
        ("raise ValueError('x' * 9999)", "ValueError: x{288}…"),
    ],
)
def test_what_a_package_says_stays_on_one_line(
    someone: Path, code: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (someone / "someone_else.py").write_text(code)
    monkeypatch.delitem(sys.modules, "someone_else", raising=False)
    data = DATA | {"encoder": {"attention": {"kind": "broken"}}}
    with pytest.raises(SettingsError, match=rf"importing it failed \({reason}\); mend"):
        check_settings(EncoderDecoderSettings, data)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, lambda: StoppedBySignal(15)])
def test_a_stop_by_the_user_while_importing_is_no_fault_of_the_package(
    someone: Path, stop: Callable[[], BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(entry: EntryPoint) -> None:
        raise stop()

    monkeypatch.setattr(EntryPoint, "load", load)
    with pytest.raises((KeyboardInterrupt, StoppedBySignal), match=r"^(143|)$"):
        check_settings(EncoderDecoderSettings, DATA)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("other", r"someones-words gives the kind 'other' as Half, whose `kind` is 'half'; both"),
        ("bare", r"someones-words gives the kind 'bare' as Bare, whose `kind` is no fixed name"),
    ],
)
def test_a_word_that_is_not_that_of_its_class_is_the_fault_of_the_package(
    someone: Path, word: str, message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        check_settings(Full, {"score": {"kind": word}})


def test_words_that_cannot_be_used_are_told_apart(someone: Path) -> None:
    """`waves` and `double` are used by recipes, but have no title for a list of kinds."""
    scores = find_scores()
    assert {"dot", "half"} <= set(scores.usable)
    assert {word: error.packages for word, error in scores.refused.items()} == {
        "bare": ("someones-words",),
        "other": ("someones-words",),
    }
    assert "waves" not in position_kinds()
    assert "double" not in norm_kinds()
    install(someone, "others-words", "[headwise.scores]\nhalf = other:Half\n")
    assert find_scores().refused["half"].packages == ("others-words", "someones-words")


def test_two_packages_with_one_word_are_refused(someone: Path) -> None:
    install(someone, "others-words", "[headwise.norms]\ndouble = other:Double\n")
    with pytest.raises(SettingsError, match=r"several packages \(others-words, someones-words\)"):
        check_settings(EncoderDecoderSettings, DATA)


def test_a_word_that_nobody_has_is_refused_as_before() -> None:
    with pytest.raises(SettingsError, match=r"norm: no kind 'double'; choose one of 'layer'"):
        check_settings(EncoderDecoderSettings, DATA)


def test_a_saved_recipe_names_the_packages_that_are_missing(
    someone: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    saved = describe_words(words_in(check_settings(EncoderDecoderSettings, DATA)))
    check_packages(dict(saved), file=tmp_path)
    monkeypatch.setattr(sys, "path", [one for one in sys.path if one != str(someone)])
    with pytest.raises(
        SettingsError, match="of the package someones-words, which is not installed"
    ):
        check_packages(dict(saved), file=tmp_path)


def test_damaged_lists_of_packages_are_refused(tmp_path: Path) -> None:
    for text in ("packages: 3\nkey: 1\n", "packages: [3]\nkey: 1\n", "packages: {a: b}\nkey: 1\n"):
        (tmp_path / "recipe.yaml").write_text(text)
        with pytest.raises(SettingsError, match="packages is written by headwise"):
            read_settings_file(tmp_path / "recipe.yaml")
    (tmp_path / "recipe.yaml").write_text("packages: [{word: 1, group: [2]}]\n")
    with pytest.raises(SettingsError, match="not installed"):
        read_settings_file(tmp_path / "recipe.yaml")


def test_a_package_that_comes_or_goes_later_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is known of the packages is kept while no directory of packages changes."""
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "late" not in added_words("headwise.norms")
    install(tmp_path, "a-late-one", "[headwise.norms]\nlate = late:Late\n")
    os.utime(tmp_path, (1, 1))  # the clock of a file system ticks every few milliseconds only
    assert "late" in added_words("headwise.norms")
    shutil.rmtree(tmp_path / "a-late-one-1.5.dist-info")
    os.utime(tmp_path, (2, 2))
    assert "late" not in added_words("headwise.norms")
