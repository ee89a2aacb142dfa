import shutil
from pathlib import Path

import pytest

from headwise.errors import CheckpointError
from headwise.language import use_language
from headwise.tasks.diagnosis import examine_machine, examine_run
from headwise.training.run_directory import release_lock, take_lock


@pytest.fixture(name="run")
def _run(tiny_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_run, tmp_path / "run"))


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def test_links_in_a_circle_are_damage(tiny_run: Path, tmp_path: Path) -> None:
    bundle = Path(shutil.copytree(tiny_run / "model", tmp_path / "model"))
    for name in ("weights.safetensors", "MANIFEST.json"):
        (bundle / name).unlink()
        (bundle / name).symlink_to(name)
        assert [finding.state for finding in examine_run(bundle)] == ["damaged"]


def test_the_machine_is_described() -> None:
    findings = examine_machine()
    assert [finding.topic for finding in findings][:4] == ["headwise", "processor", "accelerator", "compiler"]
    assert not [finding for finding in findings if finding.state == "damaged"]
    translating = next(finding for finding in findings if finding.topic == "translating on a CPU")
    assert "--precision auto: " in translating.text
    use_language("zh")
    assert "处理器" in [finding.topic for finding in examine_machine()]


def test_missing_extras_are_notes_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("headwise.tasks.diagnosis.find_compiler", lambda device: None)
    texts = {finding.topic: finding.text for finding in examine_machine()}
    assert "pip install headwise[plots]" in texts["matplotlib"]
    assert "install g++" in texts["compiler"]


def test_a_healthy_run_has_only_good_findings(run: Path) -> None:
    findings = examine_run(run)
    assert {finding.state for finding in findings} == {"good"}
    topics = {Path(finding.topic).name for finding in findings}
    assert {"step-4", "step-6", "tokenizers", "train", "valid", "model"} <= topics


@pytest.mark.parametrize(
    ("file", "hint"),
    [
        ("checkpoints/step-6/optimizer.safetensors", "resuming will use step-4"),
        ("data/train/source.tokens", "remove this directory and resume"),
        ("data/tokenizers/probes.json", "remove this directory and resume"),
        ("model/weights.safetensors", "is damaged"),
    ],
)
def test_a_flipped_bit_is_found_and_named(run: Path, file: str, hint: str) -> None:
    damage(run / file)
    damaged = [finding for finding in examine_run(run) if finding.state == "damaged"]
    assert len(damaged) == 1
    assert str(run / file) in damaged[0].text
    assert hint in damaged[0].text


def test_a_bundle_can_be_examined_by_itself(run: Path) -> None:
    assert [finding.text for finding in examine_run(run / "model")] == ["a whole bundle, en → de"]


def test_leftovers_and_a_trainer_at_work_are_noted(run: Path) -> None:
    (run / "checkpoints" / "step-8.incomplete").mkdir()
    lock = take_lock(run)
    texts = [finding.text for finding in examine_run(run) if finding.state == "note"]
    release_lock(lock)
    assert texts == ["a trainer is at work here", "left by an interrupted save; removed at the next start"]


def test_what_is_no_run(tmp_path: Path) -> None:
    assert [finding.text for finding in examine_run(tmp_path)] == ["holds no run"]
    with pytest.raises(CheckpointError, match="is not a directory; give a run directory such as runs/demo"):
        examine_run(tmp_path / "none")


def test_the_machine_says_what_keeps_translation_from_being_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwise.models.inference._refusal", lambda make, tolerance: "operator not found")
    translating = next(finding for finding in examine_machine() if finding.topic == "translating on a CPU")
    assert translating.state == "note"
    assert "oneDNN cannot be used here (operator not found)" in translating.text
    assert "; use --precision fp32" in translating.text


def test_when_every_checkpoint_is_damaged_what_is_left_is_said(run: Path) -> None:
    for step in (4, 6):
        damage(run / f"checkpoints/step-{step}/optimizer.safetensors")
    *two, rest = [finding for finding in examine_run(run) if finding.state == "damaged"]
    assert len(two) == 2
    assert not [finding for finding in two if "resuming will use" in finding.text]
    assert "no checkpoint is whole, resuming is not possible; whole is still best/step-" in rest.text
    assert f"headwise translate --model {run / 'model'}" in rest.text
    assert f"mv {run} {run}-old" in rest.text
    use_language("zh")
    assert "没有完好的检查点，无法恢复；仍完好的有 best/step-" in str(examine_run(run))


def test_an_older_damaged_checkpoint_names_the_newer_whole_one(run: Path) -> None:
    damage(run / "checkpoints/step-4/optimizer.safetensors")
    (found,) = [finding for finding in examine_run(run) if finding.state == "damaged"]
    assert "resuming will use step-6" in found.text


def test_missing_checkpoints_are_damage(run: Path) -> None:
    shutil.rmtree(run / "checkpoints")
    (found,) = [finding for finding in examine_run(run) if finding.state == "damaged"]
    assert "LATEST names step 6, but checkpoints/ is missing" in found.text
    (run / "LATEST").unlink()
    states = {Path(finding.topic).name: finding.state for finding in examine_run(run)}
    assert states["checkpoints"] == "note", "taken away on purpose, to keep the model alone"
