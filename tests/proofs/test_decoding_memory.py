"""Decoding needs the memory of one window, however long the file: 8 N sentences take what N take.

Each stream runs in a process of its own (streaming.py), because a high-water mark never falls. The
measure is shown to see a leak: with every translation kept, the same comparison fails.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.made_data import save_untrained

from headwise.models.choices import build_model
from headwise.randomness import torch_generator
from headwise.settings import check_settings
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.text.choices import learn_tokenizers
from tests.proofs.streaming import WORDS, sentences

ROOT = Path(__file__).resolve().parents[2]
MAX_GROWTH = 0.03
WINDOW = 256


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A translator of five words with random weights: what it says is of no interest."""
    stack = {"layers": 1, "heads": 1}
    recipe = check_settings(
        TranslationRecipe,
        {
            "data": {"source": "en", "target": "de", "train": "pocket:train"},
            "text": {"kind": "words", "shared": True},
            "model": {"dim": 8, "encoder": stack, "decoder": stack},
        },
    )
    tokenizers = learn_tokenizers(recipe.text, WORDS, WORDS)
    size = tokenizers.source.size
    model = build_model(
        recipe.model, source_size=size, target_size=size, generator=torch_generator("memory")
    )
    directory = tmp_path_factory.mktemp("memory") / "model"
    save_untrained(directory, recipe=recipe, tokenizers=tokenizers, model=model, results={})
    return directory


def measure(bundle: Path, count: int, *extra: str) -> tuple[int, int]:
    """High-water marks in KiB: after the first window and at the end."""
    done = subprocess.run(
        [
            sys.executable,
            str(ROOT / "tests" / "proofs" / "streaming.py"),
            str(bundle),
            str(count),
            str(WINDOW),
            *extra,
        ],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    first, last = map(int, done.stdout.split())
    return first, last


def test_memory_stays_after_the_first_window(bundle: Path) -> None:
    first, last = measure(bundle, 8 * WINDOW)
    assert last / first - 1 < MAX_GROWTH


@pytest.mark.prove
def test_eight_times_the_sentences_take_the_same_memory(bundle: Path) -> None:
    count = 40 * WINDOW
    short, long = measure(bundle, count), measure(bundle, 8 * count)
    assert short[1] / short[0] - 1 < MAX_GROWTH
    assert long[1] / short[1] - 1 < MAX_GROWTH
    kept = measure(bundle, 8 * count, "keep")
    assert kept[1] / short[1] - 1 > 2 * MAX_GROWTH, (
        "a leak of one translation a sentence would be seen"
    )


def test_the_stream_is_made_as_it_is_read() -> None:
    stream = sentences(10**12)
    assert [len(next(stream).split()) for _ in range(8)] == [1, 2, 3, 4, 5, 6, 7, 1]
