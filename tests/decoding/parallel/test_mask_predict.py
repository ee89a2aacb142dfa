"""Mask-Predict: the numbers of masks, kept probabilities, and a program for one candidate."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from headwise.decoding.choices import make_generator
from headwise.decoding.generator import Watcher
from headwise.decoding.parallel.mask_predict import (
    MaskPredictSettings,
    least_probable,
    num_masked,
    read_passes,
    run_passes,
)
from headwise.decoding.parallel.one_pass import OnePass, OnePassSettings, of_lengths
from headwise.decoding.parallel.protocol import PartialTargets
from headwise.decoding.results import EMPTY_RESULT, SearchResult, written_at_once
from headwise.errors import SettingsError, UsageError
from headwise.randomness import numpy_generator
from headwise.settings import check_settings
from headwise.text.tokenizer import EOS, PAD

VOCAB = 13
MASK = PAD


def improvised(source: int, sequence: list[int]) -> np.ndarray:
    """Random preferences, a function of the source and of the whole sequence, [position, vocab]."""
    logits = numpy_generator(source, str(sequence)).normal(size=(len(sequence), VOCAB)) * 2
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


class Improviser:
    """A model whose sources are numbers; it remembers what it was asked."""

    output_form = "positions"
    device = torch.device("cpu")
    num_begins = None

    def __init__(self) -> None:
        self.asked: list[PartialTargets] = []

    def read_sources(self, sources: Sequence[Sequence[int]]) -> list[int]:
        return [source[0] for source in sources]

    def length_scores(self, memory: list[int], *, longest: int) -> Tensor:
        """Every sentence has its own order of lengths."""
        tables = [numpy_generator("length", source).normal(size=longest) for source in memory]
        return torch.from_numpy(np.stack(tables)).float().log_softmax(-1)

    def predict(self, memory: list[int], candidates: PartialTargets) -> Tensor:
        self.asked.append(candidates)
        table = torch.full((*candidates.known.shape, VOCAB), math.nan, dtype=torch.float64)
        columns = (candidates.sentence.tolist(), candidates.length.tolist(), candidates.known)
        for row, (sentence, length, known) in enumerate(zip(*columns, strict=True)):
            found = improvised(memory[sentence], known[:length].tolist())
            table[row, :length] = torch.from_numpy(found)
        return table


Steps = list[tuple[list[int], list[bool], list[float]]]


def refine(source: int, num_words: int, num_passes: int, excluded: tuple[int, ...]) -> Steps:
    """Mask-Predict of one candidate, with lists."""
    words, values = [MASK] * num_words, [0.0] * num_words
    steps: Steps = []
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


SOURCES = [[17], [19], [], [23]]


def search(
    num_passes: int, sources: list[list[int]] = SOURCES, *, lengths: int = 3, **changes: Any
) -> list[SearchResult]:
    given: dict[str, Any] = {"max_length": 13, "lengths": lengths, "num_best": lengths, **changes}
    settings = MaskPredictSettings(passes=num_passes, **given)
    return OnePass(Improviser()).generate(sources, settings, traced=True)


@pytest.mark.parametrize("num_passes", [1, 2, 3, 5, 13])
@pytest.mark.parametrize("unknown", [True, False])
def test_a_batch_is_its_candidates_one_by_one(num_passes: int, unknown: bool) -> None:
    excluded = (0, 1, 2) if unknown else (0, 1, 2, 3)
    found = search(num_passes, allow_unknown=unknown)
    assert found[2] == EMPTY_RESULT
    filled = [source for source in SOURCES if source]
    for (source,), result in zip(filled, found[:2] + found[3:], strict=True):
        lengths = Improviser().length_scores([source], longest=13)[0]
        lengths[0] = -math.inf  # an empty candidate has no mean log-probability
        tried = lengths.topk(3)
        candidates = [
            refine(source, length, num_passes, excluded) for length in tried.indices.tolist()
        ]
        ends = dict(zip(tried.indices.tolist(), tried.values.tolist(), strict=True))
        candidates.sort(key=lambda steps: -float(np.mean(steps[-1][2])))
        for steps, hypothesis in zip(candidates, result.hypotheses, strict=True):
            words, _, values = steps[-1]
            values = [*values, ends[len(words)]]
            assert list(hypothesis.tokens) == words
            # Confidence is kept in fp32.
            assert hypothesis.token_log_probabilities == pytest.approx(values, rel=1e-6)
            assert hypothesis.log_probability == pytest.approx(sum(values), rel=1e-6)
            assert hypothesis.score == pytest.approx(np.mean(values[:-1]), rel=1e-6)
            assert hypothesis.finished
        assert len(result.passes) == len(candidates[0])
        before: list[int] = []
        for one, (words, masked, values) in zip(result.passes, candidates[0], strict=True):
            assert list(one.before) == before
            assert list(one.tokens) == words
            assert list(one.is_new) == masked
            assert list(one.deleted) == masked[: len(before)]
            assert one.log_probabilities == pytest.approx(values, rel=1e-6)
            before = words


@pytest.mark.parametrize("lengths", [1, 4])
@pytest.mark.parametrize("min_length", [0, 5])
def test_a_single_pass_is_one_pass_exactly(lengths: int, min_length: int) -> None:
    limits: dict[str, Any] = {"max_length": 11, "min_length": min_length, "lengths": lengths}
    sources = [[source] for source in range(29)]
    one = OnePass(Improviser()).generate(sources, OnePassSettings(**limits), traced=True)
    many = OnePass(Improviser()).generate(
        sources, MaskPredictSettings(**limits, passes=1), traced=True
    )
    assert one == many
    for found in one:
        assert found.passes == (written_at_once(found.best) if found.best.tokens else ())


def test_a_sentence_alone_equals_the_sentence_in_a_batch() -> None:
    together = search(7, [[source] for source in range(31)])
    for source, result in enumerate(together):
        assert search(7, [[source]]) == [result]


def given(*num_words: int) -> PartialTargets:
    length = torch.tensor(num_words) + 1
    return of_lengths(torch.zeros_like(length), length, ends_known=True)


def passes_over(candidates: PartialTargets, num_passes: int) -> tuple[Improviser, Any]:
    model = Improviser()
    found = run_passes(
        partial(model.predict, [37]), candidates, num_passes=num_passes, excluded=(0, 1, 2)
    )
    return model, list(found)


def test_numbers_of_masks_are_those_of_the_formula_and_the_end_is_known() -> None:
    num_passes, counts = 7, [3, 4, 7, 1, 2, 11, 5, 6, 8]
    model, _ = passes_over(given(*counts), num_passes)
    assert len(model.asked) == num_passes
    for number, asked in enumerate(model.asked):
        for row, num_words in enumerate(counts):
            words = asked.known[row, :num_words]
            assert words.eq(PAD).sum() == num_words * (num_passes - number) // num_passes
            assert asked.known[row, num_words] == EOS
            assert asked.known[row, num_words + 1 :].eq(PAD).all()


def test_passes_that_would_change_nothing_are_left_out() -> None:
    model, passes = passes_over(given(1, 4), 10)
    # floor(4 · (10 - t) / 10) is 4, 3, 3, 2, 2, 2, 1, 1, 0 …
    assert len(model.asked) == len(passes) == 8
    read = read_passes(passes, row=1, num_words=4)
    assert [sum(one.is_new) for one in read] == [4, 3, 3, 2, 2, 2, 1, 1]
    assert [sum(one.is_new) for one in read_passes(passes, row=0, num_words=1)] == [1]


def test_words_that_are_known_before_are_never_masked() -> None:
    candidates = given(7)
    candidates.known[0, [2, 5]] = torch.tensor([9, 11])
    model, passes = passes_over(candidates, 4)
    assert [int(asked.known.eq(PAD).sum()) for asked in model.asked] == [5, 3, 2, 1]
    for one in passes:
        assert one.tokens[0, [2, 5, 7]].tolist() == [9, 11, EOS]


def test_probabilities_of_kept_words_are_not_refreshed() -> None:
    for result in search(5):
        for before, after in zip(result.passes, result.passes[1:], strict=False):
            kept = [i for i, is_new in enumerate(after.is_new) if not is_new]
            assert kept
            for i in kept:
                assert after.tokens[i] == before.tokens[i]
                assert after.log_probabilities[i] == before.log_probabilities[i]
                worst = [
                    before.log_probabilities[j] for j, goes in enumerate(after.deleted) if goes
                ]
                assert before.log_probabilities[i] >= max(worst)


def test_a_sentence_without_words_has_no_pass() -> None:
    (found,) = search(5, [[17]], lengths=1, max_length=1)
    assert found.best.tokens == ()
    assert found.best.finished
    assert found.passes == ()


def test_of_equal_words_those_further_left_are_masked() -> None:
    confidence = torch.tensor([[-1.0, -1.0, -1.0, -9.0], [-2.0, -1.0, -3.0, -1.0]])
    may_mask = torch.tensor([[True, True, True, False], [True, True, True, True]])
    chosen = least_probable(confidence, may_mask, torch.tensor([2, 3]))
    assert chosen.tolist() == [[True, True, False, False], [True, True, True, False]]


def test_the_best_candidate_has_the_best_mean_and_not_the_best_sum() -> None:
    class Longer(Improviser):
        """Every word of the longer candidate is a little more probable."""

        def length_scores(self, memory: list[int], *, longest: int) -> Tensor:
            return torch.tensor([[-9.0, -9.0, -1.0, -9.0, -9.0, -2.0]])

        def predict(self, memory: list[int], candidates: PartialTargets) -> Tensor:
            share = candidates.length[:, None, None] * torch.ones(1, candidates.known.shape[1], 1)
            return torch.log(0.1 * share) - torch.arange(VOCAB)

    settings = MaskPredictSettings(passes=1, lengths=2, num_best=2, max_length=6)
    (result,) = OnePass(Longer()).generate([[5]], settings)
    assert [len(one.tokens) for one in result.hypotheses] == [5, 2]
    assert result.hypotheses[0].log_probability < result.hypotheses[1].log_probability


def test_the_work_can_be_stopped_before_every_pass() -> None:
    class StoppedError(Exception):
        pass

    model, calls = Improviser(), []

    def stop() -> None:
        calls.append(len(model.asked))
        if len(calls) == 3:
            raise StoppedError("enough")

    settings = MaskPredictSettings(passes=9, lengths=1, min_length=9, max_length=10)
    with pytest.raises(StoppedError, match="enough"):
        OnePass(model).generate([[41]], settings, watcher=Watcher(before_step=stop))
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


def test_a_rule_that_is_not_followed_is_refused_with_those_that_are() -> None:
    refusal = (
        "mask_predict decoding does not follow the rule forbidden, prefix; it follows min_leng"
    )
    with pytest.raises(UsageError, match=refusal):
        OnePass(Improviser()).generate([[5]], MaskPredictSettings(forbidden=("no",), prefix="yes"))


def test_a_fixed_number_of_positions_is_refused_with_what_works() -> None:
    class Fixed(Improviser):
        output_form = "cut_positions"

    assert isinstance(make_generator(OnePassSettings(), Fixed()), OnePass)
    with pytest.raises(SettingsError, match=r"cut at the first end; use decoding\.kind=one_pass"):
        make_generator(MaskPredictSettings(), Fixed())
