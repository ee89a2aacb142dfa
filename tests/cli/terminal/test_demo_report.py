"""The demo's last words: numbers with their scales, and next steps that are not the one just
taken."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headwise.cli.terminal.demo_report import print_demo
from headwise.demo import DemoResult, ShownTranslation
from headwise.evaluation.alignment import AlignmentScores
from headwise.evaluation.translation import score_translations
from headwise.pocket import pronouns_word_for_word, sentences
from headwise.tasks.translation.pocket_test import (
    AlignmentScale,
    HeadAlignment,
    PocketScores,
)


def say_demo(pair: str, capsys: pytest.CaptureFixture[str]) -> str:
    source, target = pair.split("-")
    languages: Any = SimpleNamespace(source_language=source, target_language=target)
    scored = score_translations(
        ["a cat sat there"], ["a cat sat there"], language="en", num_resamples=0
    )
    share = pronouns_word_for_word(list(sentences("test", 200)), source, target)
    print_demo(
        DemoResult(
            languages,
            Path("runs/x"),
            {"training_seconds": 131.7},
            PocketScores("test", 1, scored, 1.0, 1, share, ()),
            PocketScores("unseen", 1, scored, 0.5, 1, share, ()),
            HeadAlignment(1, None, False, AlignmentScores(0.25, 0.7, 0.8, 200)),
            AlignmentScale(0.125, 0.75),
            (ShownTranslation("累", "wide", "tired"),),
            (Path("runs/x/pictures/a.png"),),
        )
    )
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("pair", "other", "languages", "easy"),
    [
        ("en-de", "zh-en", "", False),
        ("zh-en", "zh-de", " data.source=zh data.target=en", True),
        ("en-zh", "en-de", " data.source=en data.target=zh", True),
        ("de-en", "en-de", " data.source=de data.target=en", False),
    ],
)
def test_numbers_have_scales_and_the_next_step_is_another(
    pair: str, other: str, languages: str, easy: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    said = say_demo(pair, capsys)
    assert "error rate 0.250 (decoder layer 2, the mean of its heads)" in said
    assert (
        "linking words by their position alone gives 0.750; with one link for each word "
        "0.125 is the lowest"
    ) in said
    assert f"headwise demo --pair {other} --run runs/demo-{other}\n" in said
    assert f"--pair {pair} --run" not in said
    assert f"headwise train pocket --run runs/deeper{languages} model.encoder.layers=4" in said
    assert ("Between Chinese and English that is nearly all there is to it" in said) == easy
    assert "✗ wide\n  (right: tired)" in said
