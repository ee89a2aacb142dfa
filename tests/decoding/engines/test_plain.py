"""The plain engine tells its watcher of every step, and stops when the watcher does."""

import pytest

from headwise.decoding.choices import BeamSettings, GreedySettings, SamplingSettings, decode
from headwise.decoding.generator import Watcher
from headwise.decoding.stepper import Capabilities, capabilities_of

SETTINGS = [GreedySettings(), BeamSettings(size=3), SamplingSettings(top_k=1, num_samples=2)]


class Stopped(Exception):
    pass


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: settings.kind)
def test_the_first_sentence_is_shown_as_it_grows(fake, spell, sources, settings) -> None:
    shown: list[tuple[int, ...]] = []
    watcher = Watcher(on_tokens=lambda tokens: shown.append(tuple(tokens)))
    sources = sorted(sources, key=len, reverse=True)  # others finish first, and their rows go
    results = decode(fake(spell), sources, settings, watcher=watcher)
    assert results == decode(fake(spell), sources, settings)
    assert shown[: len(sources[0]) + 1] == [
        sources[0][:length] for length in range(len(sources[0]) + 1)
    ]


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: settings.kind)
def test_a_watcher_stops_the_search_before_a_step(fake, spell, sources, settings) -> None:
    stepper = fake(spell)

    def stop() -> None:
        if stepper.num_steps == 2:
            raise Stopped

    with pytest.raises(Stopped):
        decode(stepper, sources, settings, watcher=Watcher(before_step=stop))
    assert stepper.num_steps == 2


def test_a_stepper_that_declares_nothing_has_its_three_methods(fake, spell) -> None:
    assert capabilities_of(fake(spell)) == Capabilities()
    declaring = fake(spell)
    declaring.shows_attention = True
    assert capabilities_of(declaring) == Capabilities(shows_attention=True)
