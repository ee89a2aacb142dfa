"""R8: the same recipe twice gives the same bits, on a CPU with as many threads, on a GPU with
`training.deterministic`.

On a machine with a GPU: python -m pytest tests/survival/test_determinism.py -m "prove or not prove"
"""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from headwise.storage import sha256_of
from headwise.tasks.run import train
from tests.survival.test_resuming import untimed_log
from tests.tasks.tiny import tiny_recipe

SHORT = ("training.steps=8", "data.valid=null", "data.test=null")
LONG = ("training.steps=20", "training.batch_tokens=2048", "data.valid=null", "data.test=null")


def result_of(run: Path, *overrides: str) -> tuple[str, list[dict]]:
    train(tiny_recipe(*overrides), run=run)
    return sha256_of(run / "model/weights.safetensors"), untimed_log(run)


def test_two_runs_are_equal(tmp_path: Path) -> None:
    assert result_of(tmp_path / "one", *SHORT) == result_of(tmp_path / "two", *SHORT)
    assert result_of(tmp_path / "other", *SHORT, "training.seed=2") != result_of(
        tmp_path / "three", *SHORT
    )


@pytest.mark.prove
def test_five_runs_with_each_number_of_threads(tmp_path: Path, record: Callable[..., None]) -> None:
    before, results = torch.get_num_threads(), {}
    try:
        for threads in (1, 2, 4):
            torch.set_num_threads(threads)
            found = [result_of(tmp_path / f"{threads}-{turn}", *LONG) for turn in range(5)]
            assert all(one == found[0] for one in found), threads
            results[threads] = found[0][0]
    finally:
        torch.set_num_threads(before)
    across = "the same" if len(set(results.values())) == 1 else "not the same (and not promised)"
    record(
        "R8",
        "5 runs of one recipe with 1, with 2 and with 4 threads",
        f"bit-equal; across thread counts {across}",
    )


@pytest.mark.prove
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
@pytest.mark.parametrize("compiled", ["off", "on"])
def test_two_runs_on_a_gpu(tmp_path: Path, compiled: str, record: Callable[..., None]) -> None:
    changes = (
        *LONG,
        "model.dim=128",
        "training.device=cuda",
        "training.precision=bf16",
        f"training.compile={compiled}",
        "training.deterministic=true",
    )
    assert result_of(tmp_path / "one", *changes) == result_of(tmp_path / "two", *changes)
    name = torch.cuda.get_device_name()
    record(
        "R8",
        f"2 runs on {name}, bf16, `training.deterministic`, `training.compile={compiled}`",
        "bit-equal",
    )
