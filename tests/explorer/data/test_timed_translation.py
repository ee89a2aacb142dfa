"""The time of one sentence: the text is the translator's, every measurement is told, and the passes
of a search are counted."""

import pytest

from headwise.decoding.choices import DraftedSettings, GreedySettings
from headwise.errors import UsageError
from headwise.explorer.data.timed_translation import time_sentence
from headwise.explorer.data.translation_trace import trace_sentence
from headwise.tasks.translation.translator import Translator

TEXT = "The old dog saw the child."
GREEDY = GreedySettings(max_length=11)


def test_greedy_search_asks_once_for_each_token(translator: Translator) -> None:
    found = time_sentence(translator, TEXT, GREEDY, repeats=3)
    (expected,) = translator([TEXT], GREEDY)
    assert found.text == expected.text
    assert len(found.seconds) == 3
    assert all(one > 0 for one in found.seconds)
    assert found.num_tokens <= found.num_passes <= found.num_tokens + 1


def test_drafts_need_fewer_passes_for_the_same_text(translator: Translator) -> None:
    settings = DraftedSettings(max_length=11)
    found = time_sentence(translator, TEXT, settings, repeats=1)
    trace = trace_sentence(translator, TEXT, settings)
    assert trace.record is not None
    assert found.num_passes == len(trace.record.rounds)  # type: ignore[union-attr]
    assert found.text == time_sentence(translator, TEXT, GREEDY, repeats=1).text


def test_it_is_stopped_before_a_step(translator: Translator) -> None:
    def stop() -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        time_sentence(translator, TEXT, GREEDY, repeats=1, before_step=stop)


def test_an_empty_sentence_is_refused(translator: Translator) -> None:
    with pytest.raises(UsageError, match="the sentence is empty"):
        time_sentence(translator, "  ", GREEDY, repeats=1)
