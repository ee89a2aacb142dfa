"""Required phrases: every output holds them, whatever the model thinks of them."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from headwise.decoding.choices import decode
from headwise.decoding.search.beam import BeamSettings
from headwise.decoding.search.greedy import GreedySettings
from headwise.decoding.search.sampling import SamplingSettings
from headwise.errors import UsageError
from tests.decoding.conftest import FakeStepper, improvise, phrases_of_tokens

tokens = st.integers(3, 10)
phrases_of_one = st.lists(
    st.lists(st.integers(3, 6), min_size=1, max_size=3).map(tuple), max_size=3
).map(tuple)


def holds(sequence: tuple[int, ...], part: tuple[int, ...]) -> bool:
    return any(sequence[i : i + len(part)] == part for i in range(len(sequence) - len(part) + 1))


@hypothesis_settings(max_examples=60, deadline=None)
@given(
    wanted=phrases_of_one,
    size=st.integers(1, 6),
    extra=st.integers(0, 7),
    repeat=st.sampled_from([0, 2]),
)
@example(wanted=((3, 3, 4), (3, 4, 3)), size=1, extra=0, repeat=0)
def test_every_output_holds_every_phrase(wanted, size, extra, repeat):
    longest = shortest_common(wanted) + 1 + extra
    settings = BeamSettings(size=size, num_best=size, max_length=longest, no_repeat_ngrams=repeat)
    stepper = FakeStepper(lambda source, prefix: improvise(source, prefix, end=3.0))
    for result in decode(
        stepper, [(4, 5), (5, 5), (6, 5)], settings, phrases=phrases_of_tokens(required=wanted)
    ):
        assert result.hypotheses
        assert all(holds(h.tokens, part) for h in result.hypotheses for part in wanted)
        assert len({h.tokens for h in result.hypotheses}) == len(result.hypotheses)


def shortest_common(phrases: tuple[tuple[int, ...], ...]) -> int:
    """Tokens of the shortest sequence that holds all phrases, by trying every order with the
    greatest overlaps."""
    lengths = [0]
    for order in permutations(phrases):
        joined: tuple[int, ...] = ()
        for phrase in order:
            if not holds(joined, phrase):
                overlap = next(
                    n for n in range(len(phrase), -1, -1) if joined[len(joined) - n :] == phrase[:n]
                )
                joined += phrase[overlap:]
        lengths.append(len(joined))
    return min(lengths[1:], default=0)


@hypothesis_settings(max_examples=100, deadline=None)
@given(wanted=phrases_of_one)
def test_overlaps_are_counted_once(wanted):
    rules = phrases_of_tokens(required=wanted).rules
    assert (0 if rules is None else rules.read(())) == shortest_common(wanted)


def test_a_hated_phrase_stands_whole_in_an_otherwise_faithful_copy(fake, spell):
    """The model copies its source; the phrase must be put in, and the best place is where it costs
    least."""
    source, phrase = (5, 6, 7), (20, 21)
    wishes = phrases_of_tokens(required=(phrase,), vocab=29)
    result = decode(fake(spell), [source], BeamSettings(size=6, max_length=9), phrases=wishes)[0]
    assert holds(result.best.tokens, phrase)
    assert result.best.finished
    hit = np.isclose(result.best.token_log_probabilities, np.log(0.9)).sum()
    assert hit >= 2


def test_what_the_model_says_anyway_changes_nothing(fake, spell, sources):
    for source in sources:
        free = decode(fake(spell), [source], BeamSettings(size=4))
        wishes = phrases_of_tokens(required=(source[:2],), vocab=29)
        assert (
            decode(fake(spell), [source], BeamSettings(size=4), phrases=wishes)[0].best
            == free[0].best
        )


def test_batch_changes_nothing(fake, improvise, sources):
    wishes = phrases_of_tokens(required=((5, 3), (7,)), forbidden=((4, 4),))
    settings = BeamSettings(size=4, num_best=4, max_length=12)
    together = decode(fake(improvise), sources, settings, phrases=wishes)
    for source, result in zip(sources, together, strict=True):
        assert decode(fake(improvise), [source], settings, phrases=wishes)[0] == result


@pytest.mark.parametrize("settings", [GreedySettings(), SamplingSettings()])
def test_other_searches_refuse(fake, spell, settings):
    with pytest.raises(
        UsageError, match="cannot guarantee required phrases, because they follow one path; use"
    ):
        decode(fake(spell), [(5,)], settings, phrases=phrases_of_tokens(required=((7,),), vocab=29))


def test_wishes_that_exclude_each_other_are_reported(fake, spell):
    """Both phrases are needed at once in three tokens, but the only two orders hold a forbidden
    pair."""
    wishes = phrases_of_tokens(required=((5,), (6,)), forbidden=((5, 6), (6, 5)), vocab=29)
    with pytest.raises(
        UsageError, match="end of the sentence take 4 tokens, but max_length is 3 here"
    ):
        decode(fake(spell), [(9,)], BeamSettings(max_length=3), phrases=wishes)
    assert (
        len(decode(fake(spell), [(9,)], BeamSettings(max_length=4), phrases=wishes)[0].best.tokens)
        == 3
    )


def test_an_output_that_no_hypothesis_reaches_is_reported(fake, spell):
    """The rules leave a way, but the prefix and the ban on repetitions together close it."""
    wishes = phrases_of_tokens(
        forbidden=[(token,) for token in range(3, 29) if token != 5], vocab=29
    )
    settings = BeamSettings(max_length=9, no_repeat_ngrams=1, min_length=4)
    assert decode(fake(spell), [(5, 5)], settings, phrases=wishes)[0].best.tokens == (5,)
