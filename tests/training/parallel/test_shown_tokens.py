"""How many tokens are hidden or shown, which ones can be, and that chance treats them alike."""

import torch

from headwise.training.parallel.shown_tokens import (
    choose_tokens,
    count_by_segment,
    hide_for_masking,
    show_for_glancing,
)

SEGMENT = torch.tensor(
    [[1, 1, 1, 1, 1, 2, 2, 2, 3, 0, 0], [1, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3]], dtype=torch.int64
)


def counted(chosen: torch.Tensor) -> list[list[int]]:
    return [
        [int((chosen[row] & (SEGMENT[row] == number)).sum()) for number in (1, 2, 3)]
        for row in range(2)
    ]


def test_the_wanted_number_is_chosen_in_every_sentence() -> None:
    torch.manual_seed(2)
    eligible = (SEGMENT > 0) & (torch.arange(11) != 3)
    for wanted in range(9):
        chosen = choose_tokens(torch.full_like(SEGMENT, wanted), eligible, SEGMENT)
        expected = [[min(wanted, int(n)) for n in row] for row in counted(eligible)]
        assert counted(chosen) == expected
        assert not (chosen & ~eligible).any()


def test_each_token_is_chosen_equally_often() -> None:
    torch.manual_seed(3)
    segment = torch.ones(4000, 5, dtype=torch.int64)
    chosen = choose_tokens(torch.full_like(segment, 2), segment > 0, segment)
    share = chosen.double().mean(0)
    # Four standard deviations of a share of 2/5 in 4,000 draws.
    assert (share - 0.4).abs().max() < 4 * (0.24 / 4000) ** 0.5


def test_masking_hides_any_number_from_one_to_all_equally_often() -> None:
    torch.manual_seed(4)
    segment = torch.ones(6000, 5, dtype=torch.int64)
    eligible = (segment > 0) & (torch.arange(5) != 4)  # the end is always known
    hidden = hide_for_masking(eligible, segment).sum(1)
    share = torch.bincount(hidden, minlength=6).double() / 6000
    assert share[0] == share[5] == 0
    assert (share[1:5] - 0.25).abs().max() < 4 * (0.1875 / 6000) ** 0.5


def test_glancing_shows_the_floor_of_ratio_times_distance() -> None:
    torch.manual_seed(5)
    eligible = SEGMENT > 0
    wrong = torch.rand(SEGMENT.shape) < 0.7
    for ratio in (0.0, 0.3, 0.5, 1.0):
        shown = show_for_glancing(wrong, eligible, SEGMENT, ratio=torch.tensor(ratio))
        expected = [[int(ratio * n) for n in row] for row in counted(wrong & eligible)]
        assert counted(shown) == expected


def test_counts_are_repeated_at_every_token() -> None:
    chosen = torch.arange(11).remainder(2).bool().expand(2, 11)
    found = count_by_segment(chosen & (SEGMENT > 0), SEGMENT)
    assert found[0].tolist() == [2] * 5 + [2] * 3 + [0] + [0, 0]
