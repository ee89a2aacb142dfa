"""The comparison of two versions notices a changed weight and a changed tokenizer, and nothing
else."""

import json
from pathlib import Path

import pytest
import torch
from benchmarks.same_results import cases, compare, digests_of_bundle
from safetensors.torch import save_file


def _bundle(
    directory: Path, *, weight: float = 1.0, pieces: bytes = b"pieces", manifest: str = "{}"
) -> Path:
    directory.mkdir()
    save_file({"one": torch.full((3, 5), weight)}, directory / "weights.safetensors")
    (directory / "pieces.model").write_bytes(pieces)
    (directory / "MANIFEST.json").write_text(manifest)
    return directory


def test_a_digest_follows_weights_and_pieces_but_not_the_manifest(tmp_path: Path) -> None:
    first = digests_of_bundle(_bundle(tmp_path / "a"))
    assert first == digests_of_bundle(_bundle(tmp_path / "b", manifest='{"format": 2}'))
    other = digests_of_bundle(_bundle(tmp_path / "c", weight=1.0000001))
    assert {name for name in first if first[name] != other[name]} == {"weights.safetensors"}
    another = digests_of_bundle(_bundle(tmp_path / "d", pieces=b"Pieces"))
    assert {name for name in first if first[name] != another[name]} == {"pieces.model"}


def test_compare_names_the_case_that_differs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = tmp_path / "before.json", tmp_path / "after.json"
    before.write_text(json.dumps({"same": {"bundle": "1"}, "norm=rms": {"bundle": "2"}}))
    after.write_text(json.dumps({"same": {"bundle": "1"}, "norm=rms": {"bundle": "3"}}))
    assert compare(before, after) == 1
    assert "norm=rms" in capsys.readouterr().out
    assert compare(before, before) == 0


def test_every_case_has_a_name_of_its_own() -> None:
    names = [case.name for case in cases(["pocket", "ptb-ngram", "base"], 200)]
    assert len(names) == len(set(names))
    assert "recipe ptb-ngram" in names
    assert "recipe base" not in names
