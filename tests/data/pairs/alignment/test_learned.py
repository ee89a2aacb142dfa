"""The aligner of a prepared corpus: learned once, the same when opened, learned again if needed."""

import logging
from pathlib import Path

import numpy as np
import pytest
from benchmarks.made_data import write_store

from headwise.data.pairs.alignment.aligner import AlignerSettings, fit_aligner
from headwise.data.pairs.alignment.learned import (
    DESCRIPTION,
    FOLDER,
    TABLE,
    open_alignment,
    prepare_alignment,
)
from headwise.data.shards import TokenStore
from headwise.errors import CheckpointError
from headwise.storage import write_json, write_manifest
from tests.data.pairs.alignment.pairs import draw_pairs

WORDS = 17


def make_store(directory: Path, *, seed: int) -> TokenStore:
    pairs = draw_pairs(41, words=13, longest=7, seed=seed)
    return write_store(
        directory,
        zip(pairs.source, pairs.target, strict=True),
        vocabulary_sizes={"source": WORDS, "target": WORDS},
    )


@pytest.fixture
def store(tmp_path: Path) -> TokenStore:
    return make_store(tmp_path / "train", seed=3)


def test_what_is_opened_is_what_was_learned(tmp_path: Path, store: TokenStore) -> None:
    seen: list[tuple[int, int]] = []
    made = prepare_alignment(
        tmp_path, store, num_targets=WORDS, progress=lambda *done: seen.append(done)
    )
    assert seen == [(number, 5) for number in range(1, 6)]
    expected = fit_aligner(store, num_targets=WORDS)
    for found in (made, open_alignment(tmp_path)):
        for name in ("keys", "probabilities", "null"):
            assert np.array_equal(getattr(found.table, name), getattr(expected, name))
        assert found.table.tension == expected.tension
        assert found.table.null_probability == expected.null_probability
        assert found.fingerprint == made.fingerprint


def test_it_is_learned_once(
    tmp_path: Path, store: TokenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = prepare_alignment(tmp_path, store, num_targets=WORDS)
    monkeypatch.setattr("headwise.data.pairs.alignment.learned.fit_aligner", None)
    assert prepare_alignment(tmp_path, store, num_targets=WORDS).fingerprint == made.fingerprint


def test_other_pairs_or_settings_are_learned_again(tmp_path: Path, store: TokenStore) -> None:
    first = prepare_alignment(tmp_path, store, num_targets=WORDS)
    other = prepare_alignment(tmp_path, make_store(tmp_path / "other", seed=5), num_targets=WORDS)
    assert other.fingerprint != first.fingerprint
    settings = AlignerSettings(iterations=2)
    shorter = prepare_alignment(tmp_path, store, num_targets=WORDS, settings=settings)
    assert shorter.fingerprint not in (first.fingerprint, other.fingerprint)
    again = prepare_alignment(tmp_path, store, num_targets=WORDS)
    assert again.fingerprint == first.fingerprint


def test_damage_is_said_and_repaired(
    tmp_path: Path, store: TokenStore, caplog: pytest.LogCaptureFixture
) -> None:
    made = prepare_alignment(tmp_path, store, num_targets=WORDS)
    (tmp_path / FOLDER / TABLE).write_bytes(b"damaged")
    with caplog.at_level(logging.WARNING):
        again = prepare_alignment(tmp_path, store, num_targets=WORDS)
    assert "it is learned again" in caplog.text
    assert again.fingerprint == made.fingerprint


def test_a_description_without_its_entries_is_refused(tmp_path: Path, store: TokenStore) -> None:
    prepare_alignment(tmp_path, store, num_targets=WORDS)
    write_json(tmp_path / FOLDER / DESCRIPTION, {"inputs": 3})
    write_manifest(tmp_path / FOLDER, kind="alignment")
    with pytest.raises(CheckpointError, match="a required entry is missing"):
        open_alignment(tmp_path)
