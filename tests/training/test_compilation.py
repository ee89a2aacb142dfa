import logging

import pytest
import torch

from headwise.errors import UsageError
from headwise.training import compilation
from headwise.training.compilation import (
    Compilation,
    compile_loss,
    decide_compilation,
    find_compiler,
)
from headwise.training.updates import Updater
from tests.training.tiny import TinyBatches, TinyTrainable, tiny_settings

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


@pytest.fixture
def compiler(monkeypatch):
    monkeypatch.setattr(compilation, "find_compiler", lambda device: "there")


def test_no_compiler(monkeypatch, caplog):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    assert find_compiler(CPU) is None
    monkeypatch.setattr(compilation, "find_compiler", lambda device: None)
    with caplog.at_level(logging.WARNING):
        decided = decide_compilation(tiny_settings(compile="auto", steps=10**6), CUDA)
    assert decided == Compilation(enabled=False, cuda_graphs=True)
    assert "no compiler for cuda found" in caplog.text
    with pytest.raises(UsageError, match="no compiler for cpu is installed"):
        decide_compilation(tiny_settings(compile="on"), CPU)


def test_auto_compiles_long_runs_on_a_gpu_only(compiler):
    assert not decide_compilation(tiny_settings(compile="auto", steps=20), CUDA).enabled
    assert decide_compilation(tiny_settings(compile="auto", steps=5000), CUDA).enabled
    assert not decide_compilation(tiny_settings(compile="auto", steps=10**6), CPU).enabled
    assert not decide_compilation(
        tiny_settings(compile="auto", steps=5000, time_limit=60), CUDA
    ).enabled
    assert not decide_compilation(tiny_settings(compile="off", steps=5000), CPU).enabled
    assert decide_compilation(tiny_settings(compile="on", steps=2), CPU).enabled


def test_a_resumed_run_keeps_its_decision(compiler):
    for recorded in (Compilation(enabled=False), Compilation(enabled=True)):
        for steps in (20, 5000):
            assert (
                decide_compilation(
                    tiny_settings(compile="auto", steps=steps), CPU, recorded=recorded
                )
                == recorded
            )


def test_cuda_graphs_on_a_gpu_unless_told_otherwise(compiler):
    for compiling in ("on", "off"):
        for graphs in ("auto", "on", "off"):
            settings = tiny_settings(compile=compiling, cuda_graphs=graphs)
            assert decide_compilation(settings, CUDA).cuda_graphs == (graphs != "off")
            assert not decide_compilation(settings, CPU).cuda_graphs


@pytest.mark.prove
def test_compiled_loss_equals_the_plain_one():
    trainable = TinyTrainable(dropout=0.0)
    batch = TinyBatches().batch(0)
    compiled = compile_loss(trainable.loss, Compilation(enabled=True))
    torch.testing.assert_close(tuple(compiled(batch)[:3]), tuple(trainable.loss(batch)[:3]))
    assert compile_loss(trainable.loss, Compilation(enabled=False)) == trainable.loss


def test_a_failing_compiler_is_said_and_done_without(monkeypatch, caplog):
    def broken(loss, **options):
        def fail(batch):
            raise torch._dynamo.exc.TorchDynamoException("Python.h: no such file\nmore")

        return fail

    monkeypatch.setattr(torch, "compile", broken)
    trainable = TinyTrainable(dropout=0.0)
    batch = TinyBatches().batch(0)
    loss = compile_loss(trainable.loss, Compilation(enabled=True), insist=False)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert torch.equal(loss(batch).loss, trainable.loss(batch).loss)
    assert caplog.text.count("torch.compile failed (Python.h: no such file)") == 1
    updater = Updater(
        trainable, tiny_settings(compile="auto"), device=CPU, compilation=Compilation(enabled=True)
    )
    updater.update([batch], step=1, learning_rate=0.0)
    assert updater.compilation == Compilation(enabled=False), (
        "a resumed run must not compile either"
    )
    with pytest.raises(torch._dynamo.exc.TorchDynamoException, match=r"Python\.h"):
        compile_loss(trainable.loss, Compilation(enabled=True))(batch)


def test_an_assertion_inside_the_compiler_is_a_failure_of_the_compiler(monkeypatch, caplog):
    inside: dict[str, object] = {"__name__": "torch._dynamo.side_effects"}
    exec("def fail(batch):\n    assert False", inside)
    monkeypatch.setattr(torch, "compile", lambda loss, **options: inside["fail"])
    trainable = TinyTrainable(dropout=0.0)
    loss = compile_loss(trainable.loss, Compilation(enabled=True), insist=False)
    loss(TinyBatches().batch(0))
    assert "torch.compile failed (AssertionError)" in caplog.text


def test_an_error_of_the_loss_itself_is_not_called_one_of_the_compiler(monkeypatch, caplog):
    def wrong(batch):
        raise ValueError("a batch of another size")

    monkeypatch.setattr(torch, "compile", lambda loss, **options: loss)
    loss = compile_loss(wrong, Compilation(enabled=True), insist=False)
    with pytest.raises(ValueError, match="another size"):
        loss(TinyBatches().batch(0))
    assert not caplog.text
