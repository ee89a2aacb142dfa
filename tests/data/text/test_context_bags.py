"""Bags against the windows of the same draws: the same pairs seen from the centre and from the
place.
"""

import numpy as np
import pytest
import torch

from headwise.data.text.context_bags import BagCutter, Bags
from headwise.data.text.context_windows import WindowCutter

WINDOW, SHARE = 3, 4
IDS = np.random.default_rng(7).integers(0, 97, 61).astype(np.int32)
SENTENCES = np.repeat([0, 1, 2, 5], [13, 1, 30, 17]).astype(np.int32)


def cut(batch: int, window: int = WINDOW) -> Bags:
    cutter = BagCutter(window=window, share=SHARE, batch=batch)
    return cutter.cut(IDS, SENTENCES, generator=np.random.default_rng(11))


def true_pairs(window: int) -> set[tuple[int, int]]:
    """(centre, context) as places in the text, by the other cutter."""
    windows = WindowCutter(window=window, share=SHARE).cut(
        IDS, SENTENCES, generator=np.random.default_rng(11)
    )
    return {
        (block * SHARE + centre, block * SHARE + context - window)
        for block, centre, context in torch.nonzero(windows.pairs).tolist()
    }


@pytest.mark.parametrize("batch", [1, 13, 32, 512])
@pytest.mark.parametrize("window", [1, WINDOW, 70])
def test_a_centre_and_a_place_see_the_pairs_of_the_windows(batch: int, window: int) -> None:
    bags, pairs = cut(batch, window), true_pairs(window)
    num_batches, size = bags.centres.shape
    assert size % SHARE == 0
    assert size <= max(batch, SHARE)
    # Less than a block of filling a batch.
    assert num_batches * (size - SHARE) < len(IDS) <= num_batches * size
    num_near = [sum(centre == first for first, _ in pairs) for centre in range(num_batches * size)]
    words, averaging = (
        part.view(num_batches, size, bags.near) for part in (bags.words, bags.averaging)
    )
    for batch_number, centre, near in torch.nonzero(averaging).tolist():
        place = batch_number * size + centre
        assert (place, place + near - window) in pairs
        assert words[batch_number, centre, near] == IDS[place + near - window]
        assert averaging[batch_number, centre, near] == pytest.approx(1 / num_near[place])
    assert int((averaging > 0).sum()) == len(pairs)
    assert bags.centres.view(-1)[: len(IDS)].tolist() == IDS.tolist()

    spreading = bags.spreading.view(num_batches, -1, bags.near)
    watchers = bags.watchers.view(-1, bags.near)
    found = []
    for batch_number, place, near in torch.nonzero(spreading).tolist():
        found.append(
            (batch_number * size + int(watchers[place, near]), batch_number * size + place - window)
        )
        assert spreading[batch_number, place, near] == 1
        assert bags.places[batch_number, place] == IDS[found[-1][1]]
    assert sorted(found) == sorted(pairs)


def test_a_word_alone_in_its_sentence_sees_nothing() -> None:
    averaging = cut(512).averaging.view(-1, 2 * WINDOW + 1)
    assert not averaging[13].any()
    assert averaging[:13].sum(1).numpy() == pytest.approx(np.ones(13))
