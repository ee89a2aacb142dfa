"""Runs that learn from samples: resuming to the same bits, the log, starting from a finished
translator, rewards of other packages, and learning itself."""

import copy
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from headwise.errors import TrainingStopped, UsageError
from headwise.randomness import numpy_generator
from headwise.tasks.run import train
from headwise.tasks.translation.losses import loss_of
from headwise.tasks.translation.objective import TranslationLoss
from headwise.tasks.translation.sequence_loss import SequenceLoss
from headwise.training.choices import TrainingSettings
from headwise.training.loop import train as run_loop
from headwise.weights import weights_of
from tests.promises.recipes import weights_of_run
from tests.promises.stopping import StopAtStep
from tests.settings.test_added_kinds import install
from tests.tasks.tiny import tiny_recipe
from tests.tasks.translation.sampled_models import (
    batch_of,
    build,
    letters,
    sampled_recipe,
    without_dropout,
)

CONSTANT = "training.objective.reward={kind: constant}"
REINFORCE = "training.objective={kind: reinforce, samples: {count: 3}, reward: {kind: chrf}}"
RISK = "training.objective={kind: minimum_risk, samples: {count: 3}, likelihood_weight: 0.1}"
MIXER = (
    "training.objective={kind: reinforce, baseline: linear, samples: {count: 2}, "
    "annealing: {tokens: 2, every: 2}}"
)
TRAINED = ("data.valid=null", "data.test=null", "training.schedule.warmup=2")
SMALL = ("training.batch_tokens=256", "decoding.max_length=8")
"""Sampling takes as many steps as the longest translation has tokens."""


def log_of(run: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text("utf-8").splitlines()]
    timed = ("seconds", "tokens_per_second")
    return [{k: v for k, v in line.items() if k not in timed} for line in lines]


@pytest.mark.parametrize(
    "words",
    [(REINFORCE,), (RISK,), (MIXER, "model.reward_baseline=true", "training.accumulation=2")],
    ids=["reinforce", "minimum_risk", "mixer"],
)
def test_a_resumed_run_is_the_uninterrupted_one(words: tuple[str, ...], tmp_path: Path) -> None:
    recipe = tiny_recipe(*TRAINED, *SMALL, *words)
    train(recipe, run=tmp_path / "whole")
    with pytest.raises(TrainingStopped):
        train(recipe, run=tmp_path / "run", events=StopAtStep(3))
    train(recipe, run=tmp_path / "run", resume=True)
    assert weights_of_run(tmp_path / "run") == weights_of_run(tmp_path / "whole")
    lines = log_of(tmp_path / "whole")
    assert log_of(tmp_path / "run") == lines
    trained = [line for line in lines if line["kind"] == "train"]
    assert len(trained) == 3
    for line in trained:
        assert 0 <= line["reward"] <= 1
        assert 0 <= line["reward_of_greedy"] <= 1
        assert 1 <= line["distinct_samples"] <= 3
        assert line["entropy"] > 0


def test_a_finished_translator_goes_on(tiny_run: Path, tmp_path: Path) -> None:
    brief = (f"model.start_from={tiny_run}", "training.steps=3", *SMALL)
    train(tiny_recipe(RISK, *brief), run=tmp_path / "second")
    train(tiny_recipe(MIXER, "model.reward_baseline=true", *brief), run=tmp_path / "third")
    assert (tmp_path / "third/model").is_dir()


PLUGIN = """
import math
from typing import Literal
from headwise.evaluation.rewards.declaration import RewardKind

class Short(RewardKind):
    kind: Literal["short"] = "short"
    title = ("short", "短")
    summary = ("Short translations.", "短译文。")
    paper = ""
    broken_after: int = 1000
    def build(self, text):
        calls = []
        def score(translations, references):
            calls.append(0)
            broken = len(calls) > self.broken_after
            return [math.nan if broken else 1 / (1 + len(one)) for one in translations]
        return score
"""


@pytest.fixture
def added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "package"
    install(place, "a-reward", "[headwise.rewards]\nshort = short_reward:Short\n")
    (place / "short_reward.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(str(place))
    monkeypatch.delitem(sys.modules, "short_reward", raising=False)


def test_a_package_adds_a_reward(added: None, tmp_path: Path) -> None:
    own = "training.objective={kind: reinforce, samples: {count: 2}, reward: {kind: short}}"
    train(tiny_recipe(*TRAINED, own, "training.steps=2"), run=tmp_path / "run")
    saved = (tmp_path / "run/recipe.yaml").read_text("utf-8")
    assert "a-reward" in saved
    assert log_of(tmp_path / "run")[0]["reward"] < 1


def test_a_broken_reward_leaves_a_run_that_goes_on(added: None, tmp_path: Path) -> None:
    own = "training.objective={kind: reinforce, samples: {count: 2}, reward: {kind: short"
    with pytest.raises(UsageError, match=r"is nan, but it must be a finite number: source '.+'"):
        train(tiny_recipe(*TRAINED, own + ", broken_after: 3}}"), run=tmp_path / "run")
    assert not (tmp_path / "run/model").exists()
    assert [path.name for path in (tmp_path / "run/checkpoints").iterdir()] == ["step-2"]
    with pytest.raises(UsageError, match="is nan"):
        train(tiny_recipe(*TRAINED, own + ", broken_after: 3}}"), run=tmp_path / "run", resume=True)


class Copies:
    """Batches of pairs to copy: sources of three letters of four."""

    fingerprint = "copies"

    def stream(self, cursor: Any) -> Any:
        number = 0 if cursor is None else cursor["number"]
        while True:
            drawn = numpy_generator("copies", number).integers(3, 7, size=(12, 2)).tolist()
            number += 1
            yield batch_of([(one, one) for one in drawn]), {"number": number}


def mean_greedy(loss: SequenceLoss) -> float:
    torch.manual_seed(0)
    found = loss.loss(next(Copies().stream({"number": 10_000}))[0]).measured
    assert found is not None
    sums = found.tolist()
    return sums[2] / sums[3]


@pytest.mark.parametrize(
    "objective",
    [
        "{kind: minimum_risk, sharpness: 1, samples: {count: 4}",
        pytest.param(
            "{kind: reinforce, baseline: other_samples, samples: {count: 4}",
            marks=pytest.mark.prove,
        ),
    ],
)
def test_rewards_teach_and_a_constant_reward_does_not(objective: str) -> None:
    """A copy task, begun by cross-entropy and left before it is learned."""
    settings = {"batch_tokens": 128, "device": "cpu", "precision": "fp32"}
    schedule = {"kind": "constant", "peak": 0.003}
    first = TrainingSettings.model_validate({**settings, "steps": 25, "schedule": schedule})
    begun = build(sampled_recipe("{kind: reinforce}", *without_dropout(), longest=4))
    run_loop(TranslationLoss(begun, 0.0), Copies(), first)  # type: ignore[arg-type]
    found = {}
    # A reward that moves no weight in ten updates moves none in sixty.
    for reward, steps in (("{kind: sentence_bleu}", 60), ("{kind: constant}", 10)):
        recipe = sampled_recipe(f"{objective}, reward: {reward}}}", *without_dropout(), longest=4)
        model = copy.deepcopy(begun)
        judge = loss_of(
            sampled_recipe("{kind: reinforce}", *without_dropout(), longest=4),
            model,
            tokenizers=letters(),
        )
        assert isinstance(judge, SequenceLoss)
        before = {name: one.clone() for name, one in weights_of(model).items()}
        start = mean_greedy(judge)
        then = first.model_copy(update={"steps": steps})
        run_loop(loss_of(recipe, model, tokenizers=letters()), Copies(), then)  # type: ignore[arg-type]
        found[reward] = mean_greedy(judge) - start
        if "constant" in reward:
            assert all(torch.equal(one, before[name]) for name, one in weights_of(model).items())
    learned, control = found.values()
    assert control == 0
    assert learned > 0.1, f"{start} {learned}"
