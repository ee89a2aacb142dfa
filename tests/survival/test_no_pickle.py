"""Nothing is ever unpickled: the whole way from text to translation, with every door to pickle
bricked up."""

import _pickle
import pickle
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
import torch
import torch._dynamo  # the first optimiser would import it, and it defines unpicklers of its own

from headwise.cli.main import main
from tests.tasks.tiny import OVERRIDES


class Unpickled(AssertionError):
    pass


def refuse(*arguments: Any, **options: Any) -> NoReturn:
    raise Unpickled


class Refusing:
    """In the place of Unpickler, of which others make subclasses as they are imported."""

    __init__ = refuse


@pytest.fixture(autouse=True)
def _bricked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (pickle, _pickle):
        for name in ("load", "loads"):
            monkeypatch.setattr(module, name, refuse)
        monkeypatch.setattr(module, "Unpickler", Refusing)
    monkeypatch.setattr(pickle, "_Unpickler", Refusing)
    monkeypatch.setattr(torch, "load", refuse)
    monkeypatch.setattr(torch.serialization, "load", refuse)
    monkeypatch.setattr(np, "load", refuse)


def test_the_doors_are_shut() -> None:
    with pytest.raises(Unpickled):
        pickle.loads(b"")
    with pytest.raises(Unpickled):
        pickle.Unpickler(None)
    with pytest.raises(Unpickled):
        torch.load("nothing")


def test_train_resume_doctor_evaluate_translate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["train", "pocket", *OVERRIDES, "training.ema=0.9", "data.test=null", "--run", "run"]
    assert main([*words, "training.steps=4"]) == 0
    assert main([*words, "training.steps=6", "--resume"]) == 0
    assert main(["doctor", "run"]) == 0
    Path("text.en").write_text("The cat sleeps.\n", encoding="utf-8")
    Path("text.de").write_text("Die Katze schläft.\n", encoding="utf-8")
    assert main(["translate", "--model", "run/model", "text.en"]) == 0
    assert (
        main(["evaluate", "--model", "run/model", "--source", "text.en", "--reference", "text.de"])
        == 0
    )
