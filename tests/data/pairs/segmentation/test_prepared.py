import logging
from pathlib import Path

import numpy as np
import pytest

from headwise.data.pairs.segmentation.choices import BpeDropout
from headwise.data.pairs.segmentation.prepared import (
    FOLDER,
    open_segmentation,
    prepare_segmentation,
)
from headwise.errors import CheckpointError

from .pocket_pairs import ROWS, prepared, segmented


def written(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (directory / FOLDER).iterdir()}


@pytest.mark.parametrize("algorithm", ["bpe", "unigram"])
def test_what_is_opened_is_what_was_prepared(algorithm: str, tmp_path: Path) -> None:
    made, pairs = segmented(algorithm, tmp_path / "one")  # type: ignore[arg-type]
    opened = open_segmentation(tmp_path / "one")
    every = np.arange(len(pairs))
    again = opened.of(pairs.store, source=ROWS[0], target=ROWS[1])
    for a, b in zip(pairs.gather(every, (1,)), again.gather(every, (1,)), strict=True):
        assert np.array_equal(a.tokens, b.tokens)
    assert opened.fingerprint == made.fingerprint
    elsewhere, _ = segmented(algorithm, tmp_path / "other")  # type: ignore[arg-type]
    assert elsewhere.fingerprint == made.fingerprint
    assert written(tmp_path / "one") == written(tmp_path / "other")


def test_growth_is_that_of_the_sentences(tmp_path: Path) -> None:
    made, pairs = segmented("bpe", tmp_path)
    every = np.arange(len(pairs))
    for number, side in enumerate(("source", "target")):
        best = len(pairs.gather(every)[number].tokens) + len(pairs)
        found = len(pairs.gather(every, (1, "a", 7))[number].tokens) + len(pairs)
        assert made.growth[side] == pytest.approx(found / best, abs=0.02)  # type: ignore[index]
    assert made.growth["source"] > 1.1
    assert "source +" in made.describe()
    data = prepared("bpe")
    tight = prepare_segmentation(
        tmp_path, data.train, data.tokenizers, BpeDropout(probability=1), rows=(24, 64)
    )
    assert tight.long["source"] > 0.1
    assert "no longer fit a row" in tight.describe()


def test_other_settings_are_drawn_again(tmp_path: Path) -> None:
    data, settings = prepared("bpe"), BpeDropout(probability=0.2, sides="target")
    first, _ = segmented("bpe", tmp_path)
    before = (tmp_path / FOLDER / "target.tokens").stat().st_mtime_ns
    again, _ = segmented("bpe", tmp_path)
    assert again.fingerprint == first.fingerprint
    assert (tmp_path / FOLDER / "target.tokens").stat().st_mtime_ns == before
    other = prepare_segmentation(tmp_path, data.train, data.tokenizers, settings, rows=ROWS)
    assert other.fingerprint != first.fingerprint
    assert list(other.sides) == ["target"]
    assert other.growth["source"] == 1


def test_damage_is_noticed_and_repaired(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    first, _ = segmented("bpe", tmp_path)
    file = tmp_path / FOLDER / "source.tokens"
    content = file.read_bytes()
    file.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    with pytest.raises(CheckpointError):
        open_segmentation(tmp_path)
    with caplog.at_level(logging.WARNING):
        again, _ = segmented("bpe", tmp_path)
    assert "it is made again" in caplog.text
    assert again.fingerprint == first.fingerprint
    assert file.read_bytes() == content
