import logging

import pytest
import torch

from headwise.errors import UsageError
from headwise.training import compilation
from headwise.training.choices import ShardedLayout
from headwise.training.compilation import Compilation
from headwise.training.distributed_model import build_layout, decide_parallel_compilation
from headwise.training.gradient_all_reduce import group_parameters
from headwise.training.process_group import OneProcess, check_devices
from headwise.training.updates import WholeModel
from tests.training.tiny import TinyTrainable, tiny_settings

CPU, GPU = torch.device("cpu"), torch.device("cuda")


class Pair(OneProcess):
    """The first of two processes, for decisions that need no other."""

    count, is_alone = 2, False


def test_one_process_has_the_whole_model_whatever_the_recipe_says():
    settings = tiny_settings(parallel={"kind": "sharded"})
    assert isinstance(settings.parallel, ShardedLayout)
    assert (
        type(build_layout(TinyTrainable(), settings, OneProcess(), device=CPU, overlap=True))
        is WholeModel
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"parallel": {"kind": "sharded"}, "compile": "on"},
            "sharded weights are gathered block by block",
        ),
        ({"cuda_graphs": "on"}, "an update that sums over processes is not recorded"),
    ],
)
def test_what_several_processes_cannot_have(changes, message):
    with pytest.raises(UsageError, match=message):
        decide_parallel_compilation(tiny_settings(**changes), CPU, alone=False)


def test_what_is_not_insisted_on_is_done_without(caplog, monkeypatch):
    monkeypatch.setattr(compilation, "find_compiler", lambda device: "triton")
    changes = {"compile": "auto", "steps": 100_000}
    decided = decide_parallel_compilation(tiny_settings(**changes), GPU, alone=False)
    assert decided == Compilation(enabled=True, cuda_graphs=False)
    with caplog.at_level(logging.WARNING):
        settings = tiny_settings(**changes, parallel={"kind": "sharded"})
        assert decide_parallel_compilation(settings, GPU, alone=False) == Compilation(enabled=False)
    assert "training runs uncompiled" in caplog.text
    assert decide_parallel_compilation(tiny_settings(**changes), GPU, alone=True).cuda_graphs


def test_more_processes_than_gpus(monkeypatch):
    for name, value in (
        ("RANK", "0"),
        ("WORLD_SIZE", "4"),
        ("MASTER_ADDR", "here"),
        ("MASTER_PORT", "1"),
    ):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(UsageError, match=r"4 processes were started on a machine with 1 GPU\(s\)"):
        check_devices(GPU)
    check_devices(CPU)


def test_buffers_begin_with_the_last_layers_and_hold_one_type(monkeypatch):
    monkeypatch.setattr("headwise.training.gradient_all_reduce.BUFFER_BYTES", 80)
    tensors = [torch.zeros(size) for size in (3, 50, 11, 7)] + [torch.zeros(2, dtype=torch.float64)]
    groups = group_parameters(tensors)
    assert [[len(tensor) for tensor in group] for group in groups] == [[2], [7, 11], [50], [3]]
    assert groups[0][0] is tensors[-1]
