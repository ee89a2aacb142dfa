import json
import logging
import math

import pytest
import torch

from headwise.errors import HeadwiseError, UsageError
from headwise.training.environment import compare_environments
from headwise.training.log_file import read_log
from headwise.training.loop import train
from headwise.training.run_directory import RunDirectory
from tests.training.runs import (
    Breaking,
    Measured,
    StopAfter,
    equal,
    lines_of,
    measured_run,
    run_in,
    weights_after,
)
from tests.training.tiny import LENGTH, ROWS, TinyBatches, TinyTrainable, tiny_settings


@pytest.mark.parametrize("limit", [3, 5, 9, 12, 17])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"accumulation": 2, "steps": 9, "checkpoint_every": 2, "validate_every": 3},
        {"ema": 0.9},
        {"average": {"last": 3, "every": 2}},
    ],
    ids=["plain", "accumulation", "ema", "average"],
)
def test_resumed_run_equals_the_undisturbed_one(tmp_path, limit, changes):
    """Bit for bit, in weights and log; broken in the first, a middle and the last epoch, between
    all kinds of events.
    """
    whole, weights = measured_run(tmp_path / "whole", **changes)
    measured = Measured()
    with pytest.raises(StopAfter):
        run_in(
            tmp_path / "broken",
            batches=Breaking(limit),
            evaluate=measured,
            trainable=measured.trainable,
            **changes,
        )
    resumed, resumed_weights = measured_run(tmp_path / "broken", resume=True, **changes)
    assert equal(weights, resumed_weights)
    assert lines_of(tmp_path / "whole") == lines_of(tmp_path / "broken")
    assert (whole.step, whole.best, whole.weights, whole.target_tokens) == (
        resumed.step,
        resumed.best,
        resumed.weights,
        resumed.target_tokens,
    )


def test_more_steps_later_equal_all_at_once(tmp_path):
    """Ten steps, then twenty: the same weights as twenty at once; the schedule does not depend on
    the end.
    """
    _, weights = run_in(tmp_path / "whole", steps=20)
    run_in(tmp_path / "parts", steps=10)
    result, extended = run_in(tmp_path / "parts", steps=20, resume=True)
    assert result.step == 20
    assert equal(weights, extended)


def test_resuming_a_finished_run_changes_nothing(tmp_path):
    first, weights = measured_run(tmp_path / "run")
    log = lines_of(tmp_path / "run")
    again, same = measured_run(tmp_path / "run", resume=True)
    assert equal(weights, same)
    assert lines_of(tmp_path / "run") == log
    assert (again.step, again.best, again.target_tokens) == (
        first.step,
        first.best,
        first.target_tokens,
    )


def test_randomness_belongs_to_the_step_and_not_to_the_caller():
    results = []
    for seed in range(2):
        trainable = TinyTrainable()
        torch.manual_seed(seed)
        state = torch.random.get_rng_state()
        train(trainable, TinyBatches(), tiny_settings())
        results.append(weights_after(trainable))
        assert torch.equal(torch.random.get_rng_state(), state)
    assert equal(*results)
    other = TinyTrainable()
    train(other, TinyBatches(), tiny_settings(seed=8))
    assert not equal(results[0], weights_after(other))


def test_learns_to_copy():
    trainable = TinyTrainable(dropout=0.1)
    settings = tiny_settings(steps=150, schedule={"kind": "cosine", "peak": 0.02, "warmup": 10})
    train(trainable, TinyBatches(), settings)
    trainable.module.eval()
    batch = TinyBatches(seed=3).batch(0)
    with torch.no_grad():
        guess = (trainable.module(batch.words) @ trainable.module.output.weight.t()).argmax(-1)
    assert (guess == batch.words).float().mean() == 1.0


def test_log_lines(tmp_path):
    run_in(tmp_path, evaluate=lambda step: {"loss": 9.0 / step, "bleu": math.nan}, steps=8)
    lines = read_log(tmp_path / "log.jsonl")
    assert [(line["kind"], line["step"]) for line in lines] == [
        ("train", 3),
        ("valid", 4),
        ("train", 6),
        ("valid", 8),
        ("train", 8),
    ]
    assert set(lines[0]) == {
        "kind",
        "step",
        "epoch",
        "learning_rate",
        "loss",
        "nll",
        "gradient_norm",
        "target_tokens",
        "total_tokens",
        "skipped",
        "tokens_per_second",
        "seconds",
    }
    assert lines[1]["bleu"] is None
    tokens = [int((TinyBatches().batch(index).targets != 0).sum()) for index in range(8)]
    assert lines[0]["target_tokens"] == sum(tokens[:3]) < 3 * ROWS * LENGTH
    assert lines[-1]["total_tokens"] == sum(tokens)
    assert lines[2]["epoch"] == 1


def test_best_weights_are_kept_and_patience_ends():
    seen = {}
    trainable = TinyTrainable()
    values = {4: 3.0, 8: 1.0, 12: 2.0, 16: 1.0}

    def evaluate(step):
        seen[step] = weights_after(trainable)
        return {"loss": values[step]}

    result = train(
        trainable, TinyBatches(), tiny_settings(steps=100, patience=2), evaluate=evaluate
    )
    assert (result.step, result.reason, result.weights) == (16, "patience", "best")
    assert (result.best.step, result.best.value) == (8, 1.0)
    assert equal(weights_after(trainable), seen[8])


def test_averaged_weights_are_the_mean_of_the_last_snapshots(tmp_path):
    trainable = TinyTrainable()
    seen = {}

    def evaluate(step):
        seen[step] = weights_after(trainable)
        return {"loss": 1.0}

    changes = {"steps": 9, "validate_every": 1, "average": {"last": 3, "every": 2}}
    result, weights = run_in(tmp_path, evaluate=evaluate, trainable=trainable, **changes)
    assert result.weights == "averaged"
    for name, tensor in weights.items():
        mean = sum(seen[step][name].double() for step in (4, 6, 8)) / 3
        assert torch.equal(tensor, mean.float())


def test_moving_average_is_validated_and_returned():
    trainable = TinyTrainable()
    seen = {}

    def evaluate(step):
        seen[step] = weights_after(trainable)
        return {"loss": 1.0}

    result = train(trainable, TinyBatches(), tiny_settings(steps=8, ema=0.5), evaluate=evaluate)
    assert result.weights == "ema"
    assert equal(seen[8], weights_after(trainable))
    plain = TinyTrainable()
    train(plain, TinyBatches(), tiny_settings(steps=8))
    assert not equal(weights_after(plain), weights_after(trainable))


def test_time_limit_counts_earlier_sessions(tmp_path, monkeypatch):
    ticks = iter(range(10**6))
    monkeypatch.setattr("headwise.training.progress.time.monotonic", lambda: float(next(ticks)))
    result, _ = run_in(tmp_path, steps=1000, time_limit=60)
    assert result.reason == "time_limit"
    assert 1 < result.step < 60
    again, _ = run_in(tmp_path, steps=1000, time_limit=60, resume=True)
    assert (again.step, again.reason) == (result.step, "time_limit")


def test_a_finite_stream_ends_training():
    result = train(TinyTrainable(), TinyBatches(num_batches=7), tiny_settings(accumulation=2))
    assert (result.step, result.reason) == (3, "data")


def test_errors_of_the_data_end_training():
    with pytest.raises(StopAfter):
        train(TinyTrainable(), Breaking(4), tiny_settings())


class Diverging(TinyTrainable):
    calls = 0

    def loss(self, batch):
        self.calls += 1
        sums = super().loss(batch)
        return sums if self.calls < 8 else sums._replace(loss=sums.loss * math.inf)


def test_divergence_ends_with_the_last_good_checkpoint(tmp_path):
    with pytest.raises(HeadwiseError, match=r"not finite in 4 updates in a row \(up to step 11\)"):
        run_in(tmp_path, trainable=Diverging(), max_skipped=4)
    with RunDirectory.open(tmp_path, recipe=flat_recipe(max_skipped=4), resume=True) as run:
        checkpoint = run.load()
    assert checkpoint.state.step == 10
    assert all(tensor.isfinite().all() for tensor in checkpoint.weights.values())


def flat_recipe(**changes):
    return {"training": tiny_settings(**changes).model_dump(mode="json")}


def test_progress_tells_what_happens():
    heard = []
    settings = tiny_settings(steps=8, time_limit=1000)
    train(
        TinyTrainable(),
        TinyBatches(),
        settings,
        evaluate=lambda step: {"loss": 2.0},
        progress=heard.append,
    )
    assert [(p.phase, p.step) for p in heard if p.phase != "training"] == [
        ("validating", 4),
        ("validating", 8),
        ("finished", 8),
    ]
    assert [p.step for p in heard if p.phase == "training"] == list(range(9))
    last = heard[-1]
    assert last.metrics == {"loss": 2.0}
    assert last.loss is not None
    assert last.seconds_left == 0
    assert heard[0].loss is None
    assert heard[0].seconds_left == pytest.approx(1000, abs=1)


def test_another_machine_is_said_but_allowed(tmp_path, caplog, monkeypatch):
    run_in(tmp_path, steps=5)
    monkeypatch.setattr("headwise.training.environment.torch.get_num_threads", lambda: 77)
    with caplog.at_level(logging.WARNING):
        run_in(tmp_path, steps=6, resume=True)
    assert "num_threads: 1 → 77" in caplog.text


def test_a_checkpoint_of_more_processes_is_said_but_allowed(tmp_path, caplog):
    run_in(tmp_path, steps=5)
    with RunDirectory.open(tmp_path, recipe=flat_recipe(steps=5), resume=True) as run:
        now = run.load().state.environment
    compare_environments(now, now.model_copy(update={"num_processes": 3, "layout": "sharded"}))
    assert "num_processes: 1 → 3, layout: whole → sharded" in caplog.text
    assert "the batches, their order and the schedule are the same" in caplog.text


def test_tensorboard_if_asked(tmp_path):
    pytest.importorskip("tensorboard")
    run_in(tmp_path, steps=4, tensorboard=True)
    assert list((tmp_path / "tensorboard").glob("events*"))


def test_tensorboard_missing_is_said(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch.utils.tensorboard", None)
    with pytest.raises(UsageError, match=r"pip install 'headwise\[tensorboard\]'"):
        run_in(tmp_path, steps=4, tensorboard=True)


def test_damaged_best_weights_do_not_spoil_the_end(tmp_path, caplog):
    first, _ = run_in(tmp_path, steps=9, evaluate=lambda step: {"loss": float(step)})
    assert (first.weights, first.best.step) == ("best", 4)
    (tmp_path / "best/step-4/model.safetensors").write_bytes(b"")
    with caplog.at_level(logging.WARNING):
        again, weights = run_in(
            tmp_path, steps=9, resume=True, evaluate=lambda step: {"loss": float(step)}
        )
    assert again.weights == "last"
    assert "best/step-4/model.safetensors: has 0 bytes" in caplog.text
    with RunDirectory.open(tmp_path, recipe=flat_recipe(steps=9), resume=True) as run:
        assert equal(weights, run.load().weights)


def test_a_limit_that_earlier_sessions_used_up_is_said_and_the_speed_is_none(tmp_path, caplog):
    run_in(tmp_path, steps=5, log_every=7)
    state = tmp_path / "checkpoints" / "step-5" / "state.json"
    used = json.loads(state.read_text(encoding="utf-8"))["seconds"]
    began, seen = tiny_settings(steps=5, log_every=7), []
    settings = began.model_copy(update={"steps": 9, "time_limit": used / 2})
    with (
        RunDirectory.open(
            tmp_path, recipe={"training": began.model_dump(mode="json")}, resume=True
        ) as run,
        caplog.at_level(logging.WARNING),
    ):
        result = train(TinyTrainable(), TinyBatches(), settings, run, progress=seen.append)
    assert (result.step, result.reason) == (5, "time_limit")
    assert "counts the time of earlier sessions too" in caplog.text
    assert {progress.tokens_per_second for progress in seen} == {0}
