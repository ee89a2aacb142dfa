"""A resume with another recipe, data, vocabulary or build, as its user meets it: what differs, what
holds, and whether it goes on."""

import json
from pathlib import Path

import pytest

from headwise.cli.main import main
from headwise.storage import write_manifest
from headwise.training.checkpoints import KIND
from tests.tasks.tiny import OVERRIDES

NUM_PAIRS = 120
SOURCES = [f"the cat number {number} sleeps" for number in range(NUM_PAIRS)]
TARGETS = [f"die Katze Nummer {number} schläft" for number in range(NUM_PAIRS)]
CHANGES = (
    "training.steps=4",
    "data.train=t",
    "data.valid=v",
    "data.test=null",
    "text={size: 60, byte_fallback: false}",
)


def write_corpus(name: str, sources: list[str], targets: list[str]) -> None:
    for language, lines in (("en", sources), ("de", targets)):
        Path(f"{name}.{language}").write_text(
            "".join(f"{line}\n" for line in lines), encoding="utf-8"
        )


class User:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def resumes(self, *changes: str, recipe: str = "pocket") -> tuple[int, str]:
        self.capsys.readouterr()
        status = main(["train", recipe, *OVERRIDES, *CHANGES, *changes, "--run", "run", "--resume"])
        said = self.capsys.readouterr().err
        assert "Traceback" not in said
        return status, said


@pytest.fixture(name="user")
def _user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> User:
    """Stands in a folder with a corpus and a run of four steps."""
    monkeypatch.chdir(tmp_path)
    write_corpus("t", SOURCES, TARGETS)
    write_corpus("v", SOURCES[:3], TARGETS[:3])
    user = User(capsys)
    assert user.resumes()[0] == 0
    return user


def test_the_same_again_is_silent(user: User) -> None:
    status, said = user.resumes()
    assert status == 0
    assert "note" not in said


def test_another_recipe(user: User) -> None:
    status, said = user.resumes("training.seed=2", "model.dim=32")
    assert status == 2
    assert "run/recipe.yaml: the recipe differs from the one this run began with:" in said
    assert "  model.dim: 16 → 32\n  training.seed: 1 → 2\n" in said
    assert "undo these changes or start a new run" in said
    status, said = user.resumes("training.steps=5", "decoding={kind: beam, size: 2}")
    assert status == 0
    assert "decoding.kind: greedy → beam\n" in said
    assert (
        "training.steps: 4 → 5\nthe data and its order stay the same, but the cosine "
        "schedule ends with"
    ) in said
    status, said = user.resumes("training.steps=5", "training.checkpoint_every=3")
    assert status == 0
    assert "training.checkpoint_every: 2 → 3\nno update of the weights depends on it" in said


def test_other_training_pairs(user: User) -> None:
    write_corpus("t", [*SOURCES[:-1], "a dog barks"], [*TARGETS[:-1], "ein Hund bellt"])
    status, said = user.resumes("training.steps=5")
    assert status == 3
    assert "the data is not what this run began with:\n  training pairs: fingerprint " in said
    assert "put the old data back, or start a new run" in said
    write_corpus("t", SOURCES, TARGETS)
    assert user.resumes("training.steps=5")[0] == 0, "the old data back: it goes on"


def test_other_validation_pairs_alone(user: User) -> None:
    write_corpus("v", SOURCES[5:8], TARGETS[5:8])
    status, said = user.resumes("training.steps=5")
    assert status == 3
    assert "validation pairs: fingerprint" in said
    assert "vocabulary, row lengths; going on would be another training" in said


def change_environment(name: str, value: object) -> None:
    """As if the newest checkpoint had been written elsewhere."""
    checkpoint = Path("run/checkpoints") / Path("run/LATEST").read_text(encoding="utf-8").strip()
    state = json.loads((checkpoint / "state.json").read_text(encoding="utf-8"))
    state["environment"][name] = value
    (checkpoint / "state.json").write_text(json.dumps(state), encoding="utf-8")
    write_manifest(checkpoint, kind=KIND)


def test_another_vocabulary(user: User) -> None:
    """The pieces a newer sentencepiece would have learnt from the same text."""
    checkpoint = Path("run/checkpoints/step-4/state.json")
    known = json.loads(checkpoint.read_text(encoding="utf-8"))["environment"]["fingerprint"]
    parts = dict(part.split(":") for part in known.split())
    change_environment("fingerprint", known.replace(parts["vocabulary"], "0123456789abcdef"))
    status, said = user.resumes("training.steps=5")
    assert status == 3
    assert f"vocabulary: fingerprint 0123456789abcdef → {parts['vocabulary']}" in said
    assert "the same: training pairs, validation pairs, row lengths" in said


@pytest.mark.parametrize(
    ("name", "value"), [("torch_version", "2.10.0+cpu"), ("num_threads", 64), ("machine", "arm64")]
)
def test_another_build_or_machine(user: User, name: str, value: object) -> None:
    change_environment(name, value)
    status, said = user.resumes("training.steps=5")
    assert status == 0
    assert f"going on with another machine or build ({name}: {value} → " in said
    assert (
        "the steps, the order of the data, the schedule and the seeds of dropout are the same"
        in said
    )


def test_another_number_of_processes(user: User) -> None:
    change_environment("num_processes", 4)
    status, said = user.resumes("training.steps=5")
    assert status == 0
    assert "going on with the work shared differently (num_processes: 4 → 1)" in said
    assert "the batches, their order and the schedule are the same" in said
