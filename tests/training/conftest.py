"""Products here are a few numbers large: a second thread would only wait for the first. Nor is the
disk waited for: flushing protects from a power cut, which no test makes (a killed process leaves
what it wrote)."""

import os
from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
