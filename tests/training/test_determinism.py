import os

import pytest
import torch

from headwise.errors import UsageError
from headwise.training.determinism import WORKSPACE, repeatable
from headwise.training.loop import train
from tests.training.runs import equal, weights_after
from tests.training.tiny import TinyBatches, TinyTrainable, tiny_settings


def test_what_was_set_before_is_put_back(monkeypatch):
    monkeypatch.setenv(WORKSPACE, ":16:8")
    with repeatable(enabled=False):
        assert not torch.are_deterministic_algorithms_enabled()
    with repeatable(enabled=True):
        assert torch.are_deterministic_algorithms_enabled()
        assert os.environ[WORKSPACE] == ":16:8", "a choice of the user's stays"
    assert not torch.are_deterministic_algorithms_enabled()
    assert torch.utils.deterministic.fill_uninitialized_memory


def test_an_operation_without_such_a_form_is_named(monkeypatch):
    monkeypatch.delenv(WORKSPACE, raising=False)

    def work(message):
        raise RuntimeError(message)

    message = "put_ does not have a deterministic implementation"
    with pytest.raises(UsageError, match=rf"no such form .*\({message}"), repeatable(enabled=True):
        work(f"{message}, but you set …. You can …")
    with pytest.raises(RuntimeError, match="out of memory"), repeatable(enabled=True):
        work("out of memory")
    assert os.environ[WORKSPACE] == ":4096:8"
    monkeypatch.delenv(WORKSPACE)


def test_training_with_it_gives_the_same_weights_on_a_cpu(monkeypatch):
    monkeypatch.setenv(WORKSPACE, ":4096:8")
    results = []
    for deterministic in (False, True):
        trainable = TinyTrainable()
        train(trainable, TinyBatches(), tiny_settings(steps=5, deterministic=deterministic))
        results.append(weights_after(trainable))
    assert equal(*results)
