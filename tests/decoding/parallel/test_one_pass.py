"""One pass with a model that must spell: lengths, ends, rules; a sentence alone = in a batch."""

import math
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from headwise.decoding.choices import make_generator
from headwise.decoding.generator import Watcher
from headwise.decoding.parallel.one_pass import OnePass, OnePassSettings
from headwise.decoding.parallel.protocol import PartialTargets
from headwise.decoding.search.greedy import GreedySettings
from headwise.errors import SettingsError, UsageError
from headwise.text.tokenizer import EOS, PAD, UNKNOWN

VOCAB = 19


class Speller:
    """Writes the source backwards. Its length is right with probability 0.6, one too long with
    0.3, and other lengths share the rest; positions after the word are spelled badly."""

    output_form = "positions"
    device = torch.device("cpu")

    def __init__(self, num_begins: int | None = None) -> None:
        self.num_begins = num_begins

    def read_sources(self, sources: Sequence[Sequence[int]]) -> list[list[int]]:
        return [list(source) for source in sources]

    def length_scores(self, memory: list[list[int]], *, longest: int) -> Tensor:
        table = torch.full((len(memory), longest), 0.1 / longest)
        for row, source in enumerate(memory):
            for length, share in ((len(source) + 1, 0.6), (len(source) + 2, 0.3)):
                if length <= longest:
                    table[row, length - 1] = share
        return table.log()

    def predict(self, memory: list[list[int]], candidates: PartialTargets) -> Tensor:
        scores = torch.full((*candidates.known.shape, VOCAB), 0.1 / VOCAB)
        for row, number in enumerate(candidates.sentence.tolist()):
            word = memory[number][::-1]
            for place in range(candidates.known.shape[1]):
                token = word[place] if place < len(word) else EOS
                scores[row, place, token] = 0.9 if place <= len(word) else 0.2
        return (scores / scores.sum(-1, keepdim=True)).log()


SOURCES = [[5, 6, 7], [8], [], [9, 10, 11, 12, 13], [14, 4]]


def generate(model: Any, sources: list[list[int]], **changes: Any) -> list[Any]:
    return OnePass(model).generate(sources, OnePassSettings(**changes))


@pytest.mark.parametrize("num_begins", [None, 11])
@pytest.mark.parametrize("lengths", [1, 3])
def test_it_spells(num_begins: int | None, lengths: int) -> None:
    found = generate(Speller(num_begins), SOURCES, lengths=lengths)
    assert [list(one.best.tokens) for one in found] == [source[::-1] for source in SOURCES]
    assert all(one.best.finished for one in found)


def test_the_end_has_the_probability_of_the_length() -> None:
    (found,) = generate(Speller(), [[5, 6]], lengths=1)
    values = found.best.token_log_probabilities
    assert values[-1] == pytest.approx(math.log(0.6))
    assert found.best.log_probability == pytest.approx(sum(values))
    assert found.best.score == pytest.approx(sum(values[:2]) / 2)


def test_a_sentence_alone_equals_the_sentence_in_a_batch() -> None:
    together = generate(Speller(), SOURCES, lengths=4)
    for source, found in zip(SOURCES, together, strict=True):
        assert generate(Speller(), [source], lengths=4)[0] == found


def test_a_fixed_number_of_positions_is_cut_at_the_first_end_or_unfinished() -> None:
    (found,) = generate(Speller(num_begins=3), [[5, 6, 7, 8]])
    assert found.best.tokens == (8, 7, 6)
    assert not found.best.finished


def test_lengths_keep_to_the_limits() -> None:
    (short,) = generate(Speller(), [[5, 6, 7]], max_length=3)
    assert len(short.best.tokens) <= 2
    (long,) = generate(Speller(), [[5, 6, 7]], min_length=5, lengths=1)
    assert len(long.best.tokens) >= 5


def test_a_fixed_number_of_positions_keeps_to_the_shortest_length() -> None:
    (found,) = generate(Speller(num_begins=7), [[5, 6]], min_length=4)
    assert len(found.best.tokens) == 4
    assert found.best.tokens[:2] == (6, 5)


def test_special_tokens_are_not_written() -> None:
    (found,) = generate(Speller(), [[UNKNOWN, 5]], allow_unknown=False)
    assert not {UNKNOWN, PAD} & set(found.best.tokens)


def test_reading_a_target_gives_its_distributions() -> None:
    rows = list(OnePass(Speller()).read([[5, 6]], [6, 5]))
    assert [int(row[0].argmax()) for row in rows] == [6, 5, EOS]
    assert all(float(row.exp().sum()) == pytest.approx(1, abs=1e-4) for row in rows)


def test_a_rule_that_is_not_followed_is_refused() -> None:
    with pytest.raises(UsageError, match="does not follow the rule forbidden"):
        generate(Speller(), SOURCES, forbidden=("no",))


def test_a_search_over_steps_is_refused_with_what_works() -> None:
    with pytest.raises(SettingsError, match=r"all positions at once; use decoding\.kind=one_pass"):
        make_generator(GreedySettings(), Speller())


def test_results_are_reported_one_by_one() -> None:
    seen = {}
    watcher = Watcher(on_result=lambda number, result: seen.update({number: result}))
    found = OnePass(Speller()).generate(SOURCES, OnePassSettings(), watcher=watcher)
    assert seen == {i: found[i] for i, source in enumerate(SOURCES) if source}


def test_no_sentence_is_translated_by_nothing() -> None:
    """An empty candidate has a mean log-probability of 0, better than all others."""
    (found,) = generate(Speller(), [[8]], lengths=16)
    assert found.best.tokens == (8,)
