"""The highest point of a run is seen, and what was there before is not counted."""

import pytest
import torch

from headwise.planning.peak_memory import MemoryMeter


def test_the_peak_is_what_the_work_held() -> None:
    """100 MiB kept and 200 MiB more for a moment, beside 300 MiB that belong to somebody else."""
    neighbour = torch.ones(300 << 18)
    meter = MemoryMeter(torch.device("cpu"))
    meter.start_building()
    kept = torch.ones(100 << 18)
    peak = meter.peak_of(lambda: torch.ones(200 << 18).sum())
    assert peak is None or peak == pytest.approx(300, abs=30)
    assert len(neighbour) > len(kept)
