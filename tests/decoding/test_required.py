"""Required phrases: every output holds them, whatever the model thinks of them."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from headwise.decoding.beam import BeamSettings
from headwise.decoding.choices import decode
from headwise.decoding.constraints import Phrases
from headwise.decoding.greedy import GreedySettings
from headwise.decoding.required import build_automaton
from headwise.decoding.sampling import SamplingSettings
from headwise.errors import UsageError
from tests.decoding.conftest import FakeStepper, improvise

tokens = st.integers(3, 10)
phrases_of_one = st.lists(st.lists(st.integers(3, 6), min_size=1, max_size=3).map(tuple), max_size=3).map(tuple)


def holds(sequence: tuple[int, ...], part: tuple[int, ...]) -> bool:
    return any(sequence[i : i + len(part)] == part for i in range(len(sequence) - len(part) + 1))


@hypothesis_settings(max_examples=60, deadline=None)
@given(
    wanted=st.lists(phrases_of_one, min_size=1, max_size=4),
    size=st.integers(1, 6),
    extra=st.integers(0, 7),
    repeat=st.sampled_from([0, 2]),
)
@example(wanted=[((3, 3, 4), (3, 4, 3)), ()], size=1, extra=0, repeat=0)
def test_every_output_holds_every_phrase(wanted, size, extra, repeat):
    sources = [(4 + i, 5) for i in range(len(wanted))]
    longest = max(sum(map(len, set(phrases))) for phrases in wanted) + 1 + extra
    settings = BeamSettings(size=size, num_best=size, max_length=longest, no_repeat_ngrams=repeat)
    stepper = FakeStepper(lambda source, prefix: improvise(source, prefix, end=3.0))
    results = decode(stepper, sources, settings, phrases=[Phrases(required=phrases) for phrases in wanted])
    for phrases, result in zip(wanted, results, strict=True):
        assert result.hypotheses
        assert all(holds(h.tokens, part) for h in result.hypotheses for part in phrases)
        assert len({h.tokens for h in result.hypotheses}) == len(result.hypotheses)


def test_a_hated_phrase_stands_whole_in_an_otherwise_faithful_copy(fake, spell):
    """The model copies its source; the phrase must be put in, and the best place is where it costs least."""
    source, phrase = (5, 6, 7), (20, 21)
    result = decode(fake(spell), [source], BeamSettings(size=6, max_length=9), phrases=Phrases(required=(phrase,)))[0]
    assert holds(result.best.tokens, phrase)
    assert result.best.finished
    hit = np.isclose(result.best.token_log_probabilities, np.log(0.9)).sum()
    assert hit >= 2


def test_what_the_model_says_anyway_changes_nothing(fake, spell, sources):
    free = decode(fake(spell), sources, BeamSettings(size=4))
    wishes = [Phrases(required=(source[:2],)) for source in sources]
    assert [r.best for r in decode(fake(spell), sources, BeamSettings(size=4), phrases=wishes)] == [
        r.best for r in free
    ]


def test_batch_changes_nothing(fake, improvise, sources):
    wishes = [Phrases(required=((4 + i % 5, 3), (7,))[: i % 3]) for i in range(len(sources))]
    settings = BeamSettings(size=4, num_best=4, max_length=12)
    together = decode(fake(improvise), sources, settings, phrases=wishes)
    for source, wish, result in zip(sources, wishes, together, strict=True):
        assert decode(fake(improvise), [source], settings, phrases=wish)[0] == result


@pytest.mark.parametrize("settings", [GreedySettings(), SamplingSettings()])
def test_other_searches_refuse(fake, spell, settings):
    with pytest.raises(UsageError, match=f"given to {settings.kind} decoding.*use decoding.kind=beam"):
        decode(fake(spell), [(5,)], settings, phrases=Phrases(required=((7,),)))


def test_wishes_that_exclude_each_other_are_reported(fake, spell):
    """Both phrases are needed at once in three tokens, but the only two orders hold a forbidden pair."""
    wishes = Phrases(required=((5,), (6,)), forbidden=((5, 6), (6, 5)))
    with pytest.raises(UsageError, match="no output of sentence 1 of the batch can meet all constraints together"):
        decode(fake(spell), [(9,)], BeamSettings(max_length=3), phrases=wishes)


@pytest.mark.parametrize(
    ("phrase", "text", "expected"),
    [("abab", "abaabab", [1, 2, 3, 1, 2, 3, 4]), ("aab", "aaab", [1, 2, 2, 3]), ("a", "xab", [0, 1, 1])],
)
def test_automaton_by_hand(phrase, text, expected):
    rows = build_automaton([ord(letter) for letter in phrase])
    position, seen = 0, []
    for letter in text:
        complete = position == len(phrase)
        position = rows[position][phrase.index(letter)] if letter in phrase else position if complete else 0
        seen.append(position)
    assert seen == expected
