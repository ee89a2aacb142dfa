"""The highest point of a run is seen, and what was there before is not counted."""

import pytest
import torch

from headwise.planning.peak_memory import MemoryMeter


def test_the_peak_is_what_the_run_held() -> None:
    meter = MemoryMeter(torch.device("cpu"))
    kept = torch.ones(1 << 22)
    meter.start_building()

    def run() -> None:
        torch.ones(1 << 24).add_(kept[0])

    peak = meter.peak_of(run)
    if peak is None:
        pytest.skip("the system does not tell")
    assert 60 < peak < 90
