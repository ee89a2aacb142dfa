"""Threads over pieces: each exactly once, one thread in order, failures reach the caller."""

import pytest
import torch

from headwise.training.hogwild import learn_pieces


@pytest.mark.parametrize("threads", [1, 3])
def test_every_piece_once_and_progress_reaches_the_total(threads: int) -> None:
    seen, heard, before = [], [], torch.get_num_threads()

    def learn(piece: int, progress: float) -> int:
        assert torch.is_inference_mode_enabled()
        assert 0 <= progress < 1
        assert torch.get_num_threads() == 1
        seen.append(piece)
        return 7

    learn_pieces(learn, 41, total=41 * 7, threads=threads, watch=heard.append)
    assert sorted(seen) == list(range(41))
    assert threads > 1 or seen == list(range(41))
    assert heard[-1] == 41 * 7
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("threads", [1, 2])
def test_a_failure_reaches_the_caller(threads: int) -> None:
    def learn(piece: int, progress: float) -> int:
        if piece == 5:
            raise ValueError("piece five")
        return 1

    with pytest.raises(ValueError, match="piece five"):
        learn_pieces(learn, 11, total=11, threads=threads, watch=lambda done: None)
