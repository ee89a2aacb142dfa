"""Constraints: the forbidden never appears, the prefix always, n-grams do not repeat, lengths are
kept."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from headwise.decoding.choices import decode
from headwise.decoding.generation_settings import GenerationSettings
from headwise.decoding.rules.constraints import Constraints, SentenceRules
from headwise.decoding.search.beam import BeamSettings
from headwise.decoding.search.greedy import GreedySettings
from headwise.decoding.search.sampling import SamplingSettings
from headwise.errors import SettingsError, UsageError
from headwise.settings import check_settings
from tests.decoding.conftest import FakeStepper, improvise, phrases_of_tokens

KINDS = [GreedySettings, BeamSettings, SamplingSettings]
tokens = st.integers(3, 10)
phrase = st.lists(tokens, min_size=1, max_size=3).map(tuple)
sentences = st.lists(st.lists(tokens, min_size=1, max_size=5).map(tuple), min_size=1, max_size=4)


def holds(sequence: tuple[int, ...], part: tuple[int, ...]) -> bool:
    return any(sequence[i : i + len(part)] == part for i in range(len(sequence) - len(part) + 1))


@pytest.mark.parametrize("kind", KINDS)
@hypothesis_settings(max_examples=15, deadline=None)
@given(sources=sentences, forbidden=st.lists(phrase, min_size=1, max_size=4).map(tuple))
def test_the_forbidden_never_appears(kind, sources, forbidden):
    wishes = phrases_of_tokens(forbidden=forbidden)
    for result in decode(FakeStepper(improvise), sources, kind(max_length=11), phrases=wishes):
        assert not any(holds(h.tokens, part) for h in result.hypotheses for part in forbidden)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1, 2, 3])
def test_no_ngram_repeats(fake, sources, kind, size):
    def stutter(source, prefix):
        logits = np.array(improvise(source, prefix[-1:], end=-4.0))
        return logits - np.log(np.exp(logits).sum())

    results = decode(fake(stutter), sources, kind(max_length=23, no_repeat_ngrams=size))
    free = decode(fake(stutter), sources, kind(max_length=23))
    repeats = 0
    for result, unbound in zip(results, free, strict=True):
        for sequence in (h.tokens for h in result.hypotheses):
            ngrams = [sequence[i : i + size] for i in range(len(sequence) - size + 1)]
            assert len(set(ngrams)) == len(ngrams)
        sequence = unbound.best.tokens
        ngrams = [sequence[i : i + size] for i in range(len(sequence) - size + 1)]
        repeats += len(set(ngrams)) < len(ngrams)
    assert repeats > 0, "the model must want to repeat itself, else nothing was tested"


@pytest.mark.parametrize("kind", KINDS)
@hypothesis_settings(max_examples=15, deadline=None)
@given(sources=sentences, data=st.data())
def test_every_output_keeps_its_prefix(kind, sources, data):
    each = data.draw(
        st.lists(
            st.lists(tokens, max_size=4).map(tuple), min_size=len(sources), max_size=len(sources)
        )
    )
    each = [tuple(token for token in prefix if token != 4) for prefix in each]
    wishes = [phrases_of_tokens(prefix=prefix, forbidden=((4,),)) for prefix in each]
    results = decode(
        FakeStepper(improvise), sources, kind(max_length=11, no_repeat_ngrams=2), phrases=wishes
    )
    for source, prefix, result in zip(sources, each, results, strict=True):
        for found in result.hypotheses:
            assert found.tokens[: len(prefix)] == prefix
            assert 4 not in found.tokens
            expected = [improvise(source, prefix[:i])[token] for i, token in enumerate(prefix)]
            assert found.token_log_probabilities[: len(prefix)] == pytest.approx(expected)


@pytest.mark.parametrize("kind", KINDS)
def test_lengths_are_kept(fake, sources, kind):
    def brief(source, prefix):
        return improvise(source, prefix, end=5.0)

    results = decode(fake(brief), sources, kind(min_length=3, max_length=5))
    lengths = {len(h.tokens) for result in results for h in result.hypotheses}
    assert min(lengths) == 3
    assert max(lengths) <= 5
    ended = decode(fake(improvise), sources, kind(max_length=3, at_limit="end"))
    assert all(h.finished and len(h.tokens) <= 2 for result in ended for h in result.hypotheses)
    forced = [h for result in ended for h in result.hypotheses if len(h.tokens) == 2]
    assert forced
    assert all(h.token_log_probabilities[-1] == 0.0 for h in forced)


@pytest.mark.parametrize("kind", KINDS)
def test_special_tokens_are_never_generated(fake, sources, kind):
    def perverse(source, prefix):
        return np.log([0.4, 0.3, 0.01, 0.2, 0.05, 0.04])

    free = decode(fake(perverse), sources, kind(max_length=7))
    known = decode(fake(perverse), sources, kind(max_length=7, allow_unknown=False))
    assert not {0, 1, 2} & {token for result in free for token in result.best.tokens}
    assert 3 in {token for result in free for token in result.best.tokens}
    assert 3 not in {token for result in known for token in result.best.tokens}


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_that_may_take_nothing_ends(fake, kind):
    """Vocabulary of one word that may not occur twice, and a minimum length of five: stuck after
    one word."""

    def monotone(source, prefix):
        return np.log([1e-9, 1e-9, 0.1, 1e-9, 0.9])

    settings = kind(min_length=5, max_length=11, no_repeat_ngrams=1, allow_unknown=False)
    result = decode(fake(monotone), [(7,)], settings)[0]
    assert result.best.tokens == (4,)
    assert result.best.token_log_probabilities == pytest.approx(np.log([0.9, 0.1]))


def test_masks_by_hand():
    phrases = [phrases_of_tokens(forbidden=((5,), (6, 7), (7, 6, 8)))] * 2
    rules = Constraints(
        GenerationSettings(), phrases, limits=[9, 9], width=1, device=torch.device("cpu")
    )
    seen = []
    for step in ([7, 6], [6, 6], [3, 3]):
        masked = rules.mask(torch.zeros(2, 11))
        seen.append([set(row.isinf().nonzero()[:, 0].tolist()) - {0, 1} for row in masked])
        rules.advance(torch.tensor(step))
    assert seen == [[{5}, {5}], [{5}, {5, 7}], [{5, 7, 8}, {5, 7}]]


def test_sentences_of_a_batch_share_their_rules(fake, spell):
    with pytest.raises(UsageError, match="one batch have different forbidden or required phrases"):
        decode(
            fake(spell),
            [(5,), (6,)],
            BeamSettings(),
            phrases=[phrases_of_tokens(forbidden=((7,),)), SentenceRules()],
        )


@pytest.mark.parametrize(
    ("phrases", "message"),
    [
        (SentenceRules(prefix=(5, 2)), "special token 2; only ordinary tokens"),
        (
            phrases_of_tokens(required=((5, 6, 7),), forbidden=((6, 7),)),
            "no text can hold the required phrases .* without a forbidden one",
        ),
        (
            phrases_of_tokens(prefix=(6, 7), forbidden=((6, 7),)),
            (
                "after this prefix no text can hold the required phrases .none. without a "
                "forbidden one"
            ),
        ),
        (
            phrases_of_tokens(prefix=(5, 6, 7), required=((8, 9),)),
            "take 6 tokens, but max_length is 5 here; raise max_length",
        ),
    ],
)
def test_wishes_that_cannot_be_granted_are_refused(fake, spell, phrases, message):
    with pytest.raises(UsageError, match=message):
        decode(
            fake(lambda source, prefix: spell(source, prefix, vocab=11)),
            [(5,)],
            BeamSettings(max_length=5),
            phrases=phrases,
        )


@pytest.mark.parametrize(("least", "most"), [(7, 7), (0, 0), (0, -3)])
def test_lengths_that_contradict_are_refused(least, most):
    with pytest.raises(SettingsError, match="max_length must be at least 1 and above min_length"):
        check_settings(GreedySettings, {"min_length": least, "max_length": most})


@pytest.mark.parametrize("most", [65_537, 10**9])
def test_a_length_that_no_memory_holds_is_refused(most):
    with pytest.raises(SettingsError, match=r"max_length.*65,?536"):
        check_settings(GreedySettings, {"max_length": most})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"forbidden": [" "]}, "phrase ' ' is empty; give at least one character"),
        ({"required": [""]}, "phrase '' is empty"),
        (
            {"required": ["müde"], "forbidden": ["müde"]},
            "required phrase 'müde' is forbidden too; drop one of the two",
        ),
        ({"required": ["喝茶"], "forbidden": ["茶"]}, "required phrase '喝茶' holds '茶'"),
        (
            {"prefix": "Guten  Tag, ", "forbidden": ["guten", "Guten Tag"]},
            "prefix 'Guten  Tag, ' holds 'Guten Tag'",
        ),
    ],
)
def test_phrases_that_contradict_are_refused_in_words(changes, message):
    with pytest.raises(SettingsError, match=message):
        check_settings(BeamSettings, changes)
    assert check_settings(
        BeamSettings, {"required": ["catalogue"], "forbidden": ["cat"]}
    ).required == ("catalogue",)


@pytest.mark.parametrize("kind", [GreedySettings, SamplingSettings])
def test_searches_of_one_path_refuse_required_phrases(kind):
    with pytest.raises(
        SettingsError, match="cannot guarantee required phrases, because they follow one path; use"
    ):
        check_settings(kind, {"required": ["Tag"]})
