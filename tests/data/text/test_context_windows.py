"""Windows and draws: the vectorised form against loops, and what is drawn against its
distribution.
"""

import numpy as np
import torch

from headwise.data.text.context_windows import NegativeSampler, WindowCutter, keep_probabilities


def test_keep_probabilities_are_the_c_codes() -> None:
    counts = np.array([9000, 900, 90, 10])
    kept = keep_probabilities(counts, 1e-2)
    for count, probability in zip(counts, kept, strict=True):
        share = count / counts.sum()
        assert np.isclose(probability, min(1, ((share / 1e-2) ** 0.5 + 1) * 1e-2 / share))
    assert keep_probabilities(counts, 0).tolist() == [1, 1, 1, 1]


def test_negatives_follow_the_three_quarter_power() -> None:
    counts = np.array([5000, 1300, 170, 23, 7, 1, 1])
    sampler = NegativeSampler(counts, 0.75)
    drawn = sampler.draw((700, 1000), np.random.default_rng(3)).numpy()
    expected = counts**0.75 / (counts**0.75).sum() * drawn.size
    seen = np.bincount(drawn.ravel(), minlength=len(counts))
    assert (
        (seen - expected) ** 2 / expected
    ).sum() < 27.9  # chi-squared with 6 degrees: exceeded once in 10,000


def test_alias_columns_add_up_to_the_distribution_exactly() -> None:
    counts = np.random.default_rng(5).integers(1, 10_000, 211)
    sampler = NegativeSampler(counts, 0.75)
    mass = sampler.share + np.bincount(sampler.other, weights=1 - sampler.share, minlength=211)
    assert np.allclose(mass / 211, counts**0.75 / (counts**0.75).sum(), rtol=1e-9)


def test_windows_against_the_double_loop() -> None:
    rng = np.random.default_rng(7)
    ids = rng.integers(0, 97, 61).astype(np.int32)
    sentences = np.repeat([0, 1, 2, 5], [13, 1, 30, 17]).astype(np.int32)
    window, share = 3, 8
    windows = WindowCutter(window=window, share=share).cut(
        ids, sentences, generator=np.random.default_rng(11)
    )
    radius = (
        np.random.default_rng(11).integers(1, window + 1, (8, share, 1), dtype=np.int16).ravel()
    )
    expected = sorted(
        (centre, context)
        for centre in range(61)
        for context in range(max(0, centre - radius[centre]), min(61, centre + radius[centre] + 1))
        if context != centre and sentences[centre] == sentences[context]
    )
    blocks, centres, contexts = (
        axis.tolist() for axis in torch.nonzero(windows.pairs, as_tuple=True)
    )
    found = sorted(
        (block * share + centre, block * share + context - window)
        for block, centre, context in zip(blocks, centres, contexts, strict=True)
    )
    assert found == expected
    for block, centre, context in zip(blocks, centres, contexts, strict=True):
        assert windows.centres[block, centre] == ids[block * share + centre]
        assert windows.contexts[block, context] == ids[block * share + context - window]
