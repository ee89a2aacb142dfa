"""Mask-Predict: the numbers of masks, kept probabilities, and a program for one candidate."""

import math

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from headwise.decoding.parallel.mask_predict import (
    MaskPredictResult,
    MaskPredictSettings,
    least_probable,
    mask_predict,
    num_masked,
)
from headwise.errors import SettingsError
from headwise.randomness import numpy_generator
from headwise.settings import check_settings
from headwise.text.tokenizer import EOS, PAD

VOCAB = 13
MASK = -1


def improvised(source: int, sequence: list[int]) -> np.ndarray:
    """Random preferences, a function of the source and of the whole sequence, [position, vocab]."""
    logits = numpy_generator(source, str(sequence)).normal(size=(len(sequence), VOCAB)) * 2
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


class Improviser:
    """A model for candidates of the given sources; it remembers what it was asked."""

    def __init__(self, sources: list[int]) -> None:
        self.sources = sources
        self.asked: list[tuple[Tensor, Tensor]] = []

    def predict(self, tokens: Tensor, known: Tensor) -> Tensor:
        self.asked.append((tokens, known))
        table = torch.full((*tokens.shape, VOCAB), math.nan, dtype=torch.float64)
        for row, source in enumerate(self.sources):
            length = int(tokens[row].ne(PAD).sum())
            sequence = torch.where(known, tokens, MASK)[row, :length].tolist()
            table[row, :length] = torch.from_numpy(improvised(source, sequence))
        return table


Steps = list[tuple[list[int], list[bool], list[float]]]


def refine(source: int, num_words: int, num_passes: int, excluded: tuple[int, ...]) -> Steps:
    """Mask-Predict of one candidate, with lists."""
    words, values, steps = [MASK] * num_words, [0.0] * num_words, []
    for number in range(num_passes):
        count = math.floor(num_words * (num_passes - number) / num_passes + 1e-9)
        worst = sorted(range(num_words), key=lambda i: values[i])[:count]
        masked = [i in worst for i in range(num_words)]
        shown = [MASK if hidden else word for word, hidden in zip(words, masked, strict=True)]
        table = improvised(source, [*shown, EOS])
        table[:, list(excluded)] = -np.inf
        for i in worst:
            words[i], values[i] = int(table[i].argmax()), float(table[i].max())
        if count:
            steps.append((list(words), masked, list(values)))
    return steps


LENGTHS = torch.tensor([[3, 4, 7], [1, 2, 11], [5, 6, 8]])
SOURCES = [source for source in (17, 19, 23) for _ in range(3)]


def search(num_passes: int, *, num_best: int = 3, unknown: bool = True) -> list[MaskPredictResult]:
    settings = MaskPredictSettings(
        passes=num_passes, lengths=3, num_best=num_best, allow_unknown=unknown
    )
    return mask_predict(Improviser(SOURCES), LENGTHS, settings, traced=True)


@pytest.mark.parametrize("num_passes", [1, 2, 3, 5, 13])
@pytest.mark.parametrize("unknown", [True, False])
def test_a_batch_is_its_candidates_one_by_one(num_passes: int, unknown: bool) -> None:
    excluded = (0, 1, 2) if unknown else (0, 1, 2, 3)
    found = search(num_passes, unknown=unknown)
    for row, result in enumerate(found):
        candidates = [
            refine(SOURCES[3 * row], num_words, num_passes, excluded)
            for num_words in LENGTHS[row].tolist()
        ]
        candidates.sort(key=lambda steps: -float(np.mean(steps[-1][2])))
        for steps, hypothesis in zip(candidates, result.hypotheses, strict=True):
            words, _, values = steps[-1]
            assert list(hypothesis.tokens) == words
            # Confidence is kept in fp32.
            assert hypothesis.token_log_probabilities == pytest.approx([*values, 0.0], rel=1e-6)
            assert hypothesis.log_probability == pytest.approx(sum(values), rel=1e-6)
            assert hypothesis.score == pytest.approx(np.mean(values), rel=1e-6)
            assert hypothesis.finished
        assert len(result.passes) == len(candidates[0])
        for one, (words, masked, values) in zip(result.passes, candidates[0], strict=True):
            assert list(one.tokens) == words
            assert list(one.masked) == masked
            assert one.log_probabilities == pytest.approx(values, rel=1e-6)


def test_one_pass_is_argmax() -> None:
    model = Improviser([29])
    settings = MaskPredictSettings(passes=1, lengths=1)
    (result,) = mask_predict(model, torch.tensor([[7]]), settings)
    table = improvised(29, [MASK] * 7 + [EOS])[:7, 3:]
    assert list(result.hypotheses[0].tokens) == (table.argmax(-1) + 3).tolist()
    assert len(model.asked) == 1
    assert result.passes == ()


def test_numbers_of_masks_are_those_of_the_formula_and_the_end_is_known() -> None:
    num_passes, model = 7, Improviser(SOURCES)
    mask_predict(model, LENGTHS, MaskPredictSettings(passes=num_passes, lengths=3))
    assert len(model.asked) == num_passes
    for number, (tokens, known) in enumerate(model.asked):
        for row, num_words in enumerate(LENGTHS.flatten().tolist()):
            count = num_words * (num_passes - number) // num_passes
            assert (~known[row]).sum() == count
            assert known[row, num_words:].all()
            assert tokens[row, num_words] == EOS
            assert tokens[row, num_words + 1 :].eq(PAD).all()
            assert tokens[row, :num_words].ne(PAD).all()


def test_passes_that_would_change_nothing_are_left_out() -> None:
    model = Improviser([31, 37])
    settings = MaskPredictSettings(passes=10, lengths=1)
    results = mask_predict(model, torch.tensor([[1], [4]]), settings, traced=True)
    # floor(4 · (10 - t) / 10) is 4, 3, 3, 2, 2, 2, 1, 1, 0 …
    assert len(model.asked) == 8
    assert [sum(one.masked) for one in results[1].passes] == [4, 3, 3, 2, 2, 2, 1, 1]
    assert [sum(one.masked) for one in results[0].passes] == [1]


def test_probabilities_of_kept_words_are_not_refreshed() -> None:
    for result in search(5):
        for before, after in zip(result.passes, result.passes[1:], strict=False):
            kept = [i for i, masked in enumerate(after.masked) if not masked]
            assert kept
            for i in kept:
                assert after.tokens[i] == before.tokens[i]
                assert after.log_probabilities[i] == before.log_probabilities[i]
                worst = [before.log_probabilities[j] for j, goes in enumerate(after.masked) if goes]
                assert before.log_probabilities[i] >= max(worst)


def test_of_equal_words_those_further_left_are_masked() -> None:
    confidence = torch.tensor([[-1.0, -1.0, -1.0, -9.0], [-2.0, -1.0, -3.0, -1.0]])
    may_mask = torch.tensor([[True, True, True, False], [True, True, True, True]])
    chosen = least_probable(confidence, may_mask, torch.tensor([2, 3]))
    assert chosen.tolist() == [[True, True, False, False], [True, True, True, False]]


def test_the_best_candidate_has_the_best_mean_and_not_the_best_sum() -> None:
    class Longer:
        """Every word of the longer candidate is a little more probable."""

        def predict(self, tokens: Tensor, known: Tensor) -> Tensor:
            share = tokens.ne(PAD).sum(1)[:, None, None] * torch.ones(1, tokens.shape[1], VOCAB)
            return torch.log(0.1 * share).sub_(torch.arange(VOCAB))

    settings = MaskPredictSettings(passes=1, lengths=2, num_best=2)
    (result,) = mask_predict(Longer(), torch.tensor([[2, 5]]), settings)
    assert [len(one.tokens) for one in result.hypotheses] == [5, 2]
    assert result.hypotheses[0].log_probability < result.hypotheses[1].log_probability


def test_the_work_can_be_stopped_before_every_pass() -> None:
    class StoppedError(Exception):
        pass

    model, calls = Improviser([41]), []

    def stop() -> None:
        calls.append(len(model.asked))
        if len(calls) == 3:
            raise StoppedError("enough")

    with pytest.raises(StoppedError, match="enough"):
        mask_predict(
            model, torch.tensor([[9]]), MaskPredictSettings(passes=9, lengths=1), before_pass=stop
        )
    assert calls == [0, 1, 2]


def test_the_formula_of_one_candidate_is_that_of_many() -> None:
    many = torch.arange(1, 41)
    for number in range(7):
        found = num_masked(many, number=number, num_passes=7).tolist()
        assert found == [num_masked(one, number=number, num_passes=7) for one in many.tolist()]
        assert found == [math.floor(one * (7 - number) / 7) for one in many.tolist()]


@pytest.mark.parametrize("field", ["passes", "lengths", "num_best"])
def test_settings_refuse_nothing_at_all(field: str) -> None:
    with pytest.raises(ValidationError, match="greater than or equal to 1"):
        MaskPredictSettings(**{field: 0})


def test_no_more_results_than_lengths() -> None:
    with pytest.raises(SettingsError, match=r"num_best \(7\) .* set lengths=7 as well"):
        check_settings(MaskPredictSettings, {"lengths": 3, "num_best": 7})
    settings = MaskPredictSettings(lengths=3)
    assert settings.with_num_results(7, may_widen=False) is None
    widened = settings.with_num_results(7, may_widen=True)
    assert widened is not None
    assert (widened.lengths, widened.num_best) == (7, 7)
    fewer = settings.with_num_results(2, may_widen=False)
    assert fewer is not None
    assert (fewer.lengths, fewer.num_best) == (3, 2)


def test_a_request_for_fewer_lengths_gets_fewer_results() -> None:
    settings = MaskPredictSettings(lengths=5, num_best=4)
    asked = settings.with_request_options({"lengths": 2, "passes": 3})
    assert (asked.lengths, asked.num_best, asked.passes) == (2, 2, 3)
    assert settings.num_hypotheses == 5
