"""Files: order kept, empty lines empty, bounded reading, batches of similar length, outputs as one
by one."""

import pytest

from headwise.decoding.batches import generate_stream, plan_batches
from headwise.decoding.choices import decode
from headwise.decoding.generation_settings import Batching
from headwise.decoding.results import EMPTY_RESULT
from headwise.decoding.rules.constraints import SentenceRules
from headwise.decoding.search.beam import BeamSettings
from headwise.decoding.search.greedy import GreedySettings
from headwise.decoding.search.sampling import SamplingSettings
from headwise.decoding.stepper_search import StepperSearch
from headwise.errors import UsageError
from tests.decoding.conftest import phrases_of_tokens


def test_batches_by_hand():
    lengths = [3, 0, 7, 5, 5, 2, 11, 0, 1]
    plan = plan_batches(lengths, Batching(sentences=3, tokens=10))
    assert plan == [[6], [2], [3, 4], [0, 5, 8]]
    assert plan_batches([], Batching()) == []


@pytest.mark.parametrize("kind", [GreedySettings, BeamSettings, SamplingSettings])
def test_outputs_are_those_of_one_by_one_in_order(fake, improvise, sources, kind):
    lines = [(), *sources[:5], (), (), *sources[5:], ()]
    settings = kind(max_length=7, batching={"sentences": 3, "tokens": 13, "window": 4})
    found = list(generate_stream(StepperSearch(fake(improvise)), iter(lines), settings))
    alone = [
        decode(fake(improvise), [line], settings, sentence_numbers=[i])[0]
        for i, line in enumerate(lines)
    ]
    assert found == alone
    assert [result == EMPTY_RESULT for result in found] == [line == () for line in lines]


def test_reading_stays_within_a_window(fake, spell):
    num_read = 0

    def read():
        nonlocal num_read
        for i in range(101):
            num_read = i + 1
            yield (5 + i % 7, 6)

    stepper = fake(spell)
    settings = GreedySettings(batching={"window": 7, "sentences": 3})
    for number, result in enumerate(generate_stream(StepperSearch(stepper), read(), settings)):
        assert result.best.tokens == (5 + number % 7, 6)
        assert num_read <= (number // 7 + 1) * 7
    assert num_read == 101
    assert max(stepper.row_counts) == 3


def test_phrases_for_all_and_for_each(fake, improvise, sources):
    settings = BeamSettings(max_length=9, batching={"window": 5, "sentences": 2})
    shared = list(
        generate_stream(
            StepperSearch(fake(improvise)),
            sources,
            settings,
            rules=phrases_of_tokens(required=((4, 4),)),
        )
    )
    assert all("4, 4" in str(result.best.tokens) for result in shared)
    each = [SentenceRules(prefix=(3 + i % 8,)) for i in range(len(sources))]
    found = list(
        generate_stream(StepperSearch(fake(improvise)), sources, settings, rules=iter(each))
    )
    assert [result.best.tokens[:1] for result in found] == [wish.prefix for wish in each]


def test_too_few_phrases_are_refused_not_lines_lost(fake, spell, sources):
    search = StepperSearch(fake(spell))
    with pytest.raises(UsageError, match="given for 3 sentences but there are more"):
        list(generate_stream(search, sources, BeamSettings(), rules=[SentenceRules()] * 3))
