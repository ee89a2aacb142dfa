"""The union of settings and the one call: defaults, refusals, empty batches."""

import pydantic
import pytest
import torch

from headwise.decoding.choices import DecodingSettings, decode, decoding_kinds
from headwise.decoding.generator import Watcher
from headwise.decoding.results import EMPTY_RESULT
from headwise.decoding.rules.constraints import SentenceRules
from headwise.decoding.search.beam import BeamSettings
from headwise.decoding.search.greedy import GreedySettings
from headwise.decoding.search.sampling import SamplingSettings
from headwise.errors import SettingsError, UsageError
from headwise.settings import check_settings
from tests.decoding.conftest import phrases_of_tokens


@pytest.mark.parametrize("kind", ["greedy", "beam", "sampling"])
def test_every_kind_is_chosen_by_its_name_and_spells(fake, spell, sources, kind):
    settings = pydantic.TypeAdapter(DecodingSettings).validate_python({"kind": kind})
    assert settings.kind == kind
    certain = {"temperature": 1e-4} if kind == "sampling" else {}
    settings = settings.model_copy(update=certain)
    assert [result.best.tokens for result in decode(fake(spell), sources, settings)] == sources


@pytest.mark.parametrize("kind", ["greedy", "beam", "sampling"])
def test_empty_sources_stay_empty_and_ask_no_model(fake, spell, kind):
    settings = pydantic.TypeAdapter(DecodingSettings).validate_python({"kind": kind})
    stepper = fake(spell)
    assert decode(stepper, [(), ()], settings) == [EMPTY_RESULT, EMPTY_RESULT]
    assert decode(stepper, [], settings) == []
    assert stepper.num_steps == 0
    assert decode(stepper, [(), (5,), ()], GreedySettings())[1].best.tokens == (5,)


def test_phrases_left_as_text_are_refused(fake, spell):
    with pytest.raises(UsageError, match="they were not made ready; pass phrases=encode_phrases"):
        decode(fake(spell), [(5,)], BeamSettings(forbidden=("word",)))


def test_one_entry_of_phrases_per_sentence(fake, spell):
    with pytest.raises(UsageError, match="given for 3 sentences, but there are 2"):
        decode(fake(spell), [(5,), (6,)], BeamSettings(), phrases=[SentenceRules()] * 3)


@pytest.mark.parametrize(
    ("settings", "phrases"),
    [
        (
            GreedySettings(no_repeat_ngrams=2, at_limit="end"),
            phrases_of_tokens(forbidden=((5,), (6, 7)), prefix=(8,)),
        ),
        (SamplingSettings(top_p=0.9, num_samples=2), SentenceRules()),
        (
            BeamSettings(no_repeat_ngrams=2, min_length=2, stop="proven"),
            phrases_of_tokens(forbidden=((5,),), required=((6, 7),)),
        ),
        (BeamSettings(at_limit="end"), SentenceRules(prefix=(6, 7))),
    ],
)
def test_every_tensor_is_made_on_the_steppers_device(fake, improvise, sources, settings, phrases):
    """The default device is one that holds no numbers: a tensor made there by neglect would break
    the search."""
    settings = settings.model_copy(update={"max_length": 9})
    expected = decode(fake(improvise), sources, settings, phrases=phrases)

    class Placed(fake):
        def step(self, state, tokens):
            with torch.device("cpu"):
                return super().step(state, tokens)

    with torch.device("meta"):
        assert decode(Placed(improvise), sources, settings, phrases=phrases) == expected


@pytest.mark.parametrize("kind", ["greedy", "beam", "sampling"])
def test_whoever_asks_is_told_of_short_sentences_before_the_long_ones_end(fake, spell, kind):
    """Told early = returned in the end, under the numbers of the batch that was given, empty
    sources counted."""
    settings = pydantic.TypeAdapter(DecodingSettings).validate_python({"kind": kind})
    settings = settings.model_copy(update={"temperature": 1e-4} if kind == "sampling" else {})
    sources = [(5,), (), (6, 7, 8, 9, 5, 6, 7, 8, 9, 6, 7), (8, 9), (9,)]
    stepper = fake(spell)
    told: dict[int, tuple[object, int]] = {}
    results = decode(
        stepper,
        sources,
        settings,
        watcher=Watcher(
            on_result=lambda number, found: told.update({number: (found, stepper.num_steps)})
        ),
    )
    assert sorted(told) == [0, 3, 4]
    assert {number: found for number, (found, _) in told.items()} == {
        number: results[number] for number in told
    }
    assert all(steps < stepper.num_steps for _, steps in told.values())


def test_a_search_takes_a_memory_or_names_those_that_do() -> None:
    memory = {"store": "made"}
    able = [kind for kind in decoding_kinds() if "memory" in kind.model_fields]
    for kind in decoding_kinds():
        if kind in able:
            assert check_settings(kind, {"memory": memory}).asked_memory is not None
            continue
        with pytest.raises(SettingsError) as caught:
            check_settings(kind, {"memory": memory})
        assert f"kind={kind.model_fields['kind'].default} takes no memory" in caught.value.en
        for one in able:
            assert f"kind={one.model_fields['kind'].default}" in caught.value.en
