"""Text as batches: every line once, windows laid end to end give the text back, resumed =
uninterrupted.
"""

from itertools import islice

import numpy as np
import torch

from headwise.data.packing import unpack_pairs
from headwise.data.shards import as_ragged
from headwise.data.text.text_batches import (
    LineStore,
    PackedLines,
    PaddedLines,
    StreamWindows,
    cut_lines,
    join_lines,
)
from headwise.text.tokenizer import EOS

LINES = [[10 * line + place + 4 for place in range(line % 7 + 1)] for line in range(41)]


def test_one_text_has_an_end_after_every_line() -> None:
    assert join_lines(as_ragged([[5, 6], [], [7]])).tolist() == [EOS, 5, 6, EOS, EOS, 7, EOS]


def test_long_lines_are_cut_into_pieces() -> None:
    cut = cut_lines(as_ragged([[4, 5, 6, 7, 8], [], [9, 10]]), 2)
    assert [part.tolist() for part in cut.split()] == [[4, 5], [6, 7], [8], [], [9, 10]]


def test_packed_and_padded_lines_come_once_an_epoch() -> None:
    packed = PackedLines(LineStore(as_ragged(LINES)), 2, 16, 1, "text")
    seen: list[list[int]] = []
    for batch, after in packed.stream(None):
        if after["epoch"] > 0:
            break
        seen += [target for _, target in unpack_pairs(batch)]
    assert all(line in LINES for line in seen)
    padded = PaddedLines(as_ragged(LINES), 24, 1, "text")
    found: list[list[int]] = []
    for batch, after in padded.stream(None):
        if after["epoch"] > 0:
            break
        assert batch.tokens.numel() <= 24
        found += [[word for word in row if word > EOS] for row in batch.targets.tolist()]
    assert sorted(found) == sorted(LINES)


def test_carried_windows_laid_end_to_end_are_the_text() -> None:
    text = join_lines(as_ragged(LINES))
    windows = StreamWindows.of(
        text, batch_tokens=15, length=5, carried=True, seed=1, fingerprint="text"
    )
    batches = [batch for batch, after in islice(windows.stream(None), 40) if after["epoch"] == 0]
    rows = torch.cat([batch.tokens for batch in batches], dim=1).numpy()
    joined = rows.reshape(-1)
    begin = next(i for i in range(5) if np.array_equal(text[i : i + 10], joined[:10]))
    assert np.array_equal(text[begin : begin + len(joined)], joined)
    assert [bool(batch.fresh.all()) for batch in batches] == [True] + [False] * (len(batches) - 1)
    assert torch.equal(batches[0].tokens[:, 1:], batches[0].targets[:, :-1])


def test_a_text_of_one_word_is_one_window() -> None:
    windows = StreamWindows.of(
        np.array([2, 4, 2]), batch_tokens=999, length=35, carried=True, seed=1, fingerprint="text"
    )
    batch, _ = next(windows.stream(None))
    assert (batch.tokens.tolist(), batch.targets.tolist()) == ([[2, 4]], [[4, 2]])


def test_resumed_is_uninterrupted() -> None:
    text = join_lines(as_ragged(LINES))
    sources = [
        PaddedLines(as_ragged(LINES), 24, 1, "text"),
        *(
            StreamWindows.of(
                text, batch_tokens=15, length=5, carried=carried, seed=1, fingerprint="text"
            )
            for carried in (True, False)
        ),
    ]
    for source in sources:
        whole = list(islice(source.stream(None), 40))
        for stop in (0, 7, 29):
            (again, _) = next(iter(source.stream(whole[stop][1])))
            assert torch.equal(again.tokens, whole[stop + 1][0].tokens)
            assert torch.equal(again.fresh, whole[stop + 1][0].fresh)
