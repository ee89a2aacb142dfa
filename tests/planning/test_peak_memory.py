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


def test_the_peak_of_the_process_does_not_depend_on_what_it_did_before() -> None:
    """The second time, the 200 MiB of the first are there already: nothing is subtracted."""
    peaks = []
    kept = []
    for _ in range(2):
        meter = MemoryMeter(torch.device("cpu"))
        meter.start_building()
        if not kept:
            kept.append(torch.ones(200 << 18))
        if not meter.start_running():
            pytest.skip("the system does not say it")
        assert torch.ones(50 << 18).sum() > 0
        peaks.append(meter.peak_of_process())
    assert peaks[0] == pytest.approx(peaks[1], abs=30)
    assert peaks[1] is not None
    assert peaks[1] > 250
