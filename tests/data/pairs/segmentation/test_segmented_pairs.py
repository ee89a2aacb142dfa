import itertools
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from headwise.data import batching
from headwise.data.batching import Cursor, Share, batches
from headwise.data.fixed_targets import FixedTargets
from headwise.data.packing import NAMES, PackedBatch, unpack_pairs
from headwise.data.pairs.segmentation.segmented_pairs import SegmentedPairs

from .pocket_pairs import ROWS, Algorithm, prepared, segmented

EVERY = np.arange(300)
SHAPE = {"source_row": ROWS[0], "target_row": ROWS[1], "rows": 4}


@pytest.fixture(name="pairs", params=["bpe", "unigram"])
def _pairs(request: pytest.FixtureRequest, tmp_path: Path) -> SegmentedPairs:
    return segmented(request.param, tmp_path)[1]


@pytest.fixture
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwise.data.order.CHUNK_PAIRS", 100)
    monkeypatch.setattr(batching, "CHUNK_PAIRS", 100)


def tokens_of(pairs: SegmentedPairs, *key: int | str) -> list[list[list[int]]]:
    return [[one.tolist() for one in side.split()] for side in pairs.gather(EVERY, key)]


def same(left: PackedBatch, right: PackedBatch) -> bool:
    return all(torch.equal(getattr(left, name), getattr(right, name)) for name in NAMES)


def test_without_a_key_sentences_are_cut_in_the_best_way(pairs: SegmentedPairs) -> None:
    for side, best in zip(tokens_of(pairs), pairs.store.gather(EVERY), strict=True):
        assert side == [one.tolist() for one in best.split()]


@pytest.mark.parametrize("order", ["written", "reversed"])
@pytest.mark.parametrize("algorithm", ["bpe", "unigram"])
def test_texts_stay_and_pieces_change(algorithm: Algorithm, order: str, tmp_path: Path) -> None:
    pairs, tokenizers = segmented(algorithm, tmp_path, order)[1], prepared(algorithm, order)
    both = (tokenizers.tokenizers.source, tokenizers.tokenizers.target)
    best, first, again, second = (
        tokens_of(pairs, *key) for key in ((), (1, "a", 0), (1, "a", 0), (1, "a", 1))
    )
    assert first == again
    for side, tokenizer in enumerate(both):
        texts = [tokenizer.decode(one) for one in best[side]]
        for found in (first, second):
            assert [tokenizer.decode(one) for one in found[side]] == texts
        assert sum(a != b for a, b in zip(first[side], best[side], strict=True)) > 20
        assert sum(a != b for a, b in zip(first[side], second[side], strict=True)) > 20


def test_another_seed_cuts_otherwise(pairs: SegmentedPairs) -> None:
    one, other = tokens_of(pairs, 1, "rows", 0, 0), tokens_of(pairs, 2, "rows", 0, 0)
    for side in (0, 1):
        assert sum(a != b for a, b in zip(one[side], other[side], strict=True)) > 20


def test_a_sentence_does_not_depend_on_the_others(pairs: SegmentedPairs) -> None:
    whole = tokens_of(pairs, 3, "a", 0)
    chosen = np.array([250, 7, 7, 99])
    some = pairs.gather(chosen, (3, "a", 0))
    for side, found in zip(whole, some, strict=True):
        assert [one.tolist() for one in found.split()] == [side[i] for i in chosen]


def test_all_segmentations_of_a_unit_are_used_alike(tmp_path: Path) -> None:
    pairs = segmented("bpe", tmp_path)[1]
    side = pairs.sides["source"]
    found: Counter[int] = Counter()
    for epoch in range(60):
        _, chosen = side.choose(EVERY, (1, "a", epoch))
        found.update(chosen.tolist())
    often = [n for n in range(30) if side.first[n + 1] - side.first[n] > 30]
    assert often
    for unit in often:
        first, last = int(side.first[unit]), int(side.first[unit + 1])
        assert found[first] == 0, "the best one is only for sentences that became too long"
        counts = np.array([found[i] for i in range(first + 1, last)])
        assert (np.abs(counts - counts.mean()) < 5.5 * np.sqrt(counts.mean()) + 1).all()


def test_what_became_too_long_is_cut_in_the_best_way(pairs: SegmentedPairs) -> None:
    lengths = np.array([len(pairs.store.source(i)) for i in EVERY])
    room = int(lengths.max())
    tight = replace(pairs, room={"source": room, "target": 1})
    free, found, best = (
        tokens_of(one, *key)
        for one, key in ((pairs, (1, "a", 0)), (tight, (1, "a", 0)), (pairs, ()))
    )
    assert found[1] == best[1]
    long = [len(one) > room for one in free[0]]
    expected = [best[0][i] if long[i] else free[0][i] for i in EVERY]
    assert found[0] == expected
    assert 0 < sum(long) < len(long)
    count = pairs.sides["source"].long_sentences(EVERY, (1, "a", 0, "source"), room)
    assert count == sum(long)


def test_one_side_alone(pairs: SegmentedPairs) -> None:
    alone = replace(pairs, sides={"target": pairs.sides["target"]})
    source, target = tokens_of(alone, 1, "a", 0)
    assert source == tokens_of(pairs)[0]
    assert target == tokens_of(pairs, 1, "a", 0)[1]
    fixed = FixedTargets(alone, ROWS[1])
    assert set(fixed.gather(EVERY, (1, "a", 0))[1].lengths.tolist()) == {ROWS[1] - 1}


@pytest.mark.usefixtures("_small_chunks")
def test_resuming_anywhere_continues_the_stream(pairs: SegmentedPairs) -> None:
    stream = list(itertools.islice(batches(pairs, seed=3, **SHAPE), 150))
    assert {cursor.epoch for _, cursor in stream} >= {0, 1, 2}
    for number in range(0, 148, 21):
        cursor = Cursor.from_json(json.loads(json.dumps(stream[number][1].to_json())))
        resumed = batches(pairs, seed=3, **SHAPE, cursor=cursor)
        for batch, after in stream[number + 1 : number + 3]:
            found, place = next(resumed)
            assert same(found, batch)
            assert place == after


@pytest.mark.usefixtures("_small_chunks")
@pytest.mark.parametrize("processes", [2, 4])
def test_processes_share_what_one_would_see(pairs: SegmentedPairs, processes: int) -> None:
    one = itertools.islice(batches(pairs, seed=3, **SHAPE), 120)
    shares = [
        batches(pairs, seed=3, **SHAPE, share=Share(number, processes))
        for number in range(processes)
    ]
    for batch, after in one:
        parts = [next(share) for share in shares]
        assert all(place == after for _, place in parts)
        for name in NAMES:
            whole = torch.cat([getattr(part, name) for part, _ in parts])
            assert torch.equal(whole, getattr(batch, name))


@pytest.mark.usefixtures("_small_chunks")
def test_every_pair_once_an_epoch_and_other_pieces_in_the_next(tmp_path: Path) -> None:
    pairs, tokenizers = segmented("bpe", tmp_path)[1], prepared("bpe").tokenizers
    epochs: list[list[tuple[list[int], list[int]]]] = [[], [], []]
    for batch, cursor in batches(pairs, seed=3, **{**SHAPE, "rows": 1}):
        if cursor.epoch > 1:
            break
        epochs[cursor.epoch] += unpack_pairs(batch)
    texts = [
        sorted((tokenizers.source.decode(s), tokenizers.target.decode(t)) for s, t in epoch)
        for epoch in epochs[:2]
    ]
    seen = texts[0] + texts[1]
    assert len(set(seen)) == len(set(texts[0]) | set(texts[1])) >= 395
    pieces = [{tuple(map(tuple, pair)) for pair in epoch} for epoch in epochs[:2]]
    assert len(pieces[0] & pieces[1]) < len(pieces[0]) / 2
