"""Losses of models that copy by fertility: packed = one by one, refusals, plans, validation."""

from pathlib import Path

import pytest
import torch
from benchmarks.made_data import write_store

from headwise.data.pairs.alignment.aligner import fit_aligner
from headwise.errors import DataError
from headwise.tasks.translation.fertile_batches import (
    FertileLoss,
    add_fertilities,
    check_copies,
    empty_fertilities,
)
from headwise.text.tokenizer import EOS
from headwise.training.parallel.fertility_targets import BatchAligner
from tests.data.pairs.alignment.pairs import MemoryPairs
from tests.tasks.translation.parallel_models import Pair, draw_pairs, make_loss, pack

VOCABULARY = 23
FERTILITY = "model.length={kind: fertility, weight: 0.7}"


@pytest.fixture
def pairs() -> list[Pair]:
    lengths = [(3, 4), (6, 2), (2, 5), (7, 7), (1, 3), (4, 4), (5, 8)]
    return draw_pairs(lengths, vocabulary=VOCABULARY, seed=19)


@pytest.fixture
def aligner(pairs: list[Pair]) -> BatchAligner:
    sides = MemoryPairs([source for source, _ in pairs], [target for _, target in pairs])
    return BatchAligner.of(fit_aligner(sides, num_targets=VOCABULARY), most=49)


@pytest.mark.parametrize("crf", [(), ("model.structure={kind: crf, rank: 3, candidates: 5}",)])
def test_packed_rows_equal_pairs_one_by_one(
    pairs: list[Pair],
    aligner: BatchAligner,
    crf: tuple[str, ...],
) -> None:
    learner = make_loss(FERTILITY, *crf, vocabulary=VOCABULARY)
    learner.module.eval()
    together = learner.loss(add_fertilities(pack(pairs, row=20), aligner))
    alone = [learner.loss(add_fertilities(pack([pair], row=20), aligner)) for pair in pairs]
    for field in ("loss", "negative_log_likelihood", "num_tokens"):
        expected = sum(getattr(one, field) for one in alone)
        torch.testing.assert_close(getattr(together, field), expected)


def test_glancing_shows_tokens_among_the_copies(pairs: list[Pair], aligner: BatchAligner) -> None:
    learner = make_loss(FERTILITY, "training.objective.kind=glancing", vocabulary=VOCABULARY)
    batch = add_fertilities(pack(pairs, row=20), aligner)
    sums = learner.loss(batch)
    assert 0 < int(sums.num_tokens) < sum(len(target) for _, target in pairs)
    assert sums.loss.isfinite()


def test_the_decoder_reads_each_source_token_as_often_as_it_is_linked(
    pairs: list[Pair], aligner: BatchAligner
) -> None:
    learner = make_loss(FERTILITY, vocabulary=VOCABULARY)
    for pair in pairs:
        batch = add_fertilities(pack([pair], row=16), aligner)
        copied = learner.copied(batch)
        assert copied is not None
        fertility = batch.fertility[0, : len(pair[0]) + 1]
        assert int(fertility.sum()) == len(pair[1]) + 1
        expected = torch.tensor([*pair[0], EOS]).repeat_interleave(fertility)
        assert copied[0, : len(expected)].tolist() == expected.tolist()


def test_words_of_the_source_are_all_that_the_decoder_reads(
    pairs: list[Pair], aligner: BatchAligner
) -> None:
    """Other targets of the same fertilities change nothing that the decoder computes."""
    learner = make_loss(FERTILITY, vocabulary=VOCABULARY)
    learner.module.eval()
    batch = add_fertilities(pack(pairs[:1], row=12), aligner)
    nothing = torch.zeros_like(batch.target_output).bool()
    memory = learner.module.encode(
        batch.source, segment=batch.source_segment, position=batch.source_position
    )
    before = learner.decode(batch, memory, nothing)
    words = (batch.target_output != EOS) & (batch.target_segment > 0)
    batch.target_output[words] = 4
    assert torch.equal(learner.decode(batch, memory, nothing), before)


def test_a_loss_on_pairs_finds_the_fertilities_itself(
    pairs: list[Pair], aligner: BatchAligner
) -> None:
    learner = make_loss(FERTILITY, vocabulary=VOCABULARY)
    learner.module.eval()
    batch = pack(pairs, row=20)
    measured = FertileLoss(learner, aligner).loss(batch)
    torch.testing.assert_close(measured.loss, learner.loss(add_fertilities(batch, aligner)).loss)


def test_batches_for_plans_have_fertilities(pairs: list[Pair]) -> None:
    found = empty_fertilities(pack(pairs, row=20))
    assert found.fertility.shape == found.source.shape


@pytest.mark.parametrize(
    ("part", "remedy"), [("train", "data.filter.max_ratio"), ("valid", "take such pairs out")]
)
def test_a_target_longer_than_all_copies_is_refused(tmp_path: Path, part: str, remedy: str) -> None:
    pairs = [([5, 6], [7, 8]), ([5], [6, 7, 8, 9, 10, 11, 12]), ([9], [5] * 5)]
    store = write_store(tmp_path / "store", pairs, vocabulary_sizes={"source": 13, "target": 13})
    check_copies(store, 4, part=part)  # 8 tokens of a source of 2, the ends counted
    with pytest.raises(
        DataError,
        match=rf"1 pair of data\.{part} has a target more than 3 times .*one of 2 and 8 tokens"
        rf".*set model\.length\.most=4 or more, or .*{remedy}",
    ):
        check_copies(store, 3, part=part)
