"""A recorded function does what it did when it was called."""

import pytest
import torch

from headwise.gpu.graph_replay import Recording


@pytest.mark.parametrize(
    "device",
    [
        "cpu",
        pytest.param(
            "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
        ),
    ],
)
def test_each_call_counts_once(device: str) -> None:
    number, step = torch.zeros(1, device=device), torch.ones(1, device=device)
    play = Recording(lambda: number.add_(step), torch.device(device))
    for call in range(1, 6):
        step.fill_(call)
        play()
        assert number.item() == call * (call + 1) / 2


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_the_next_is_recorded_when_all_before_it_are_gone() -> None:
    number = torch.zeros(1, device="cuda")
    for _ in range(2):
        play = Recording(lambda: number.add_(1), torch.device("cuda"))
        for _ in range(3):
            play()
        del play
        torch.cuda.empty_cache()
    assert number.item() == 6
