"""What every test of a task runs under."""

import os

import pytest


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flushing protects from a power cut, which no test makes. A tiny training flushes 150 files,
    which takes longer than all else that it does."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
