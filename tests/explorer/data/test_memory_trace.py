"""Marking the word of a stored token: by hand, for words that occur twice, for the end, and for
texts that were not cut like this. The numbers of a trace are tested through the server."""

import pytest

from headwise.errors import UsageError
from headwise.explorer.data.memory_trace import MarkedSentence, mark_word, trace_memory
from headwise.tasks.translation.translator import Translator

TEXT = "Der Hund und der Hund sind alt."


def mark(translator: Translator, text: str, position: int) -> MarkedSentence:
    tokenizer = translator.tokenizers.target
    tokens = tokenizer.encode(text)
    return mark_word(tokenizer, text, position=position, token=tokens[position])


def test_every_word_is_marked_in_its_place(translator: Translator) -> None:
    tokens = translator.tokenizers.target.encode(TEXT)
    found = [mark(translator, TEXT, place) for place in range(len(tokens))]
    assert all(one.before + one.word + one.after == TEXT for one in found)
    words = list(dict.fromkeys((len(one.before), one.word) for one in found))
    assert [word for _, word in words] == ["Der", "Hund", "und", "der", "Hund", "sind", "alt", "."]


def test_what_cannot_be_marked_is_shown_as_it_is(translator: Translator) -> None:
    tokenizer = translator.tokenizers.target
    tokens = tokenizer.encode(TEXT)
    whole = MarkedSentence(TEXT, "", "")
    assert mark_word(tokenizer, TEXT, position=len(tokens), token=2) == whole
    assert mark_word(tokenizer, TEXT, position=0, token=tokens[1]) == whole
    unknown = "☃ Hund"
    last = len(tokenizer.encode(unknown)) - 1
    assert mark(translator, unknown, last) == MarkedSentence("☃ ", "Hund", "")


def test_a_trace_needs_a_memory(translator: Translator) -> None:
    with pytest.raises(UsageError, match="no memory"):
        trace_memory(translator, TEXT, translator.settings(), num_examples=2)
