"""Memory that runs out is told with the setting to lower; other errors pass."""

import pytest
import torch

from headwise.decoding.choices import decode
from headwise.decoding.search.beam import BeamSettings
from headwise.decoding.search.greedy import GreedySettings
from headwise.decoding.search.sampling import SamplingSettings
from headwise.errors import UsageError
from tests.decoding.conftest import FakeStepper, spell

ERRORS = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
    MemoryError(),
    RuntimeError(
        "[enforce fail at alloc_cpu.cpp:121] err == 0. DefaultCPUAllocator: can't allocate memory"
    ),
]


class Greedy(FakeStepper):
    """A stepper that asks for more memory than there is."""

    def __init__(self, error):
        super().__init__(spell)
        self.error = error

    def start(self, sources, *, width, max_length):
        raise self.error


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize(
    ("settings", "levers"),
    [
        (GreedySettings(max_length=4000), "max_length=2000 or batching.sentences=1"),
        (
            BeamSettings(size=8, max_length=4000),
            "max_length=2000 or size=4 or batching.sentences=1",
        ),
        (SamplingSettings(num_samples=6), "max_length=11 or num_samples=3 or batching.sentences=1"),
    ],
)
def test_the_settings_to_lower_are_named(error, settings, levers):
    with pytest.raises(
        UsageError, match="memory ran out while decoding 2 sentences at once"
    ) as caught:
        decode(Greedy(error), [(5,), (), (6,)], settings)
    assert f"lower a decoding setting: {levers} (" in str(caught.value)


def test_other_errors_pass():
    with pytest.raises(RuntimeError, match="shapes"):
        decode(Greedy(RuntimeError("shapes do not fit")), [(5,)], GreedySettings())
