"""A line that is too long: its sentences as on lines of their own, or nothing, or a refusal; and
every line told with its place."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest

from headwise.errors import DataError
from headwise.language import use_language
from headwise.models.limits import Limit
from headwise.tasks.translation import line_translation
from headwise.tasks.translation.line_translation import (
    Line,
    TooLong,
    translate_lines,
)
from headwise.tasks.translation.translator import Translation, Translator

SENTENCES = ["The dog is old.", "Laura has two dogs.", "The cat sleeps."]
LIMIT = 13
"""Tokens with their end: each of the sentences fits, no two of them do."""


@pytest.fixture(name="narrow")
def _narrow(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> Translator:
    monkeypatch.setattr(translator, "longest_source", Limit("", LIMIT))
    assert all(translator.fits(one) for one in SENTENCES)
    assert not any(translator.fits(f"{a} {b}") for a, b in pairwise(SENTENCES))
    return translator


def ask(
    translator: Translator,
    *texts: str | None,
    too_long: TooLong = "split",
    wishes: tuple[str, ...] = (),
) -> list[Translation]:
    lines = [Line(text, "in.txt", number) for number, text in enumerate(texts, start=1)]
    decoding = translator.settings(wishes)
    return list(translate_lines(translator, lines, decoding, too_long=too_long, alignment=True))


def assert_same(found: Sequence[Translation], wanted: Sequence[Translation]) -> None:
    """Equal but for the last bits of the scores, which depend on what stands in the same batch."""
    for one, other in zip(found, wanted, strict=True):
        assert replace(one, n_best=(), parts=()) == replace(other, n_best=(), parts=())
        for candidate, expected in zip(one.n_best, other.n_best, strict=True):
            assert candidate.text == expected.text
            assert candidate.score == pytest.approx(expected.score, abs=1e-4)
            assert candidate.log_probability == pytest.approx(expected.log_probability, abs=1e-3)


def test_lines_that_fit_are_those_of_the_translator(
    translator: Translator, caplog: pytest.LogCaptureFixture
) -> None:
    texts = [SENTENCES[0], "", "  ", "a\0b\r", SENTENCES[1]]
    found = ask(translator, *texts)
    assert_same(found, translator(texts, alignment=True))
    assert [line.too_long for line in found] == [None] * 5
    assert not caplog.records


def test_a_split_line_is_its_sentences(
    narrow: Translator, caplog: pytest.LogCaptureFixture
) -> None:
    text = f" {SENTENCES[0]}  {SENTENCES[1]}\u2028{SENTENCES[2]} "
    first, second, third = ask(narrow, SENTENCES[0], text, SENTENCES[2])
    parts = narrow(SENTENCES, alignment=True)
    assert_same([first, third], [parts[0], parts[2]])
    assert second.too_long == "split"
    assert_same(second.parts, parts)
    joined = second
    assert joined.source == text
    assert joined.text == " ".join(part.text for part in parts)
    assert joined.n_best[0].log_probability == pytest.approx(
        sum(part.n_best[0].log_probability for part in parts)
    )
    assert joined.alignment is not None
    pieces = [
        (joined.source_pieces[source], joined.target_pieces[target])
        for source, target in joined.alignment
    ]
    assert pieces == [
        (one.source_pieces[s], one.target_pieces[t])
        for one in parts
        for s, t in one.alignment or ()
    ]
    count = len(narrow.encode(text)) + 1
    assert caplog.messages == [
        f"in.txt:2: has {count} tokens, at most 13 are read at once; translated in 3 pieces"
    ]


def test_only_the_beginning_of_a_line_begins_with_the_prefix(narrow: Translator) -> None:
    found = ask(
        narrow, " ".join(SENTENCES), SENTENCES[0], wishes=("prefix=Die Katze", "max_length=9")
    )
    assert [part.text.startswith("Die Katze") for part in found[0].parts] == [True, False, False]
    assert found[1].text.startswith("Die Katze")


def test_the_second_best_of_a_line_is_made_of_the_second_best(narrow: Translator) -> None:
    (line,) = ask(narrow, " ".join(SENTENCES), wishes=("kind=beam", "size=2", "num_best=2"))
    assert [one.text for one in line.n_best] == [
        " ".join(part.n_best[rank].text for part in line.parts).strip() for rank in range(2)
    ]


@pytest.mark.parametrize("text", ["dog " * 99, "x" * 99, "the cat, the dog and the bird, " * 9])
def test_a_sentence_too_long_is_cut_until_it_fits(
    text: str, narrow: Translator, caplog: pytest.LogCaptureFixture
) -> None:
    (line,) = ask(narrow, text)
    sources = [part.source for part in line.parts]
    assert "".join("".join(sources).split()) == "".join(text.split())
    assert all(narrow.fits(source) for source in sources)
    assert (
        f"translated in {len(sources)} pieces, {len(sources) - 1} of them cut inside a sentence"
        in caplog.text
    )


def test_pieces_are_no_longer_than_what_was_learnt_from(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(translator, "longest_source", Limit("", 97))
    (line,) = ask(translator, "dog " * 120, wishes=("max_length=1",))
    lengths = [len(translator.encode(part.source)) for part in line.parts]
    assert max(lengths) < translator.recipe.data.row_tokens <= 4 * min(lengths)


def test_left_empty_or_refused(narrow: Translator, caplog: pytest.LogCaptureFixture) -> None:
    text = " ".join(SENTENCES)
    found = ask(narrow, text, SENTENCES[0], None, too_long="empty")
    assert [line.too_long for line in found] == ["empty", None, "empty"]
    assert [(line.source, line.text == "") for line in found] == [
        (text, True),
        (SENTENCES[0], False),
        ("", True),
    ]
    count = len(narrow.encode(text)) + 1
    assert caplog.messages == [
        f"in.txt:1: has {count} tokens, at most 13 are read at once; its translation is left empty",
        (
            "in.txt:3: is longer than 65,536 bytes and is not read; its translation is left "
            "empty: put one sentence on a line"
        ),
    ]
    with pytest.raises(
        DataError, match=rf"^in.txt:2: has {count} tokens, at most 13 are translated; split it into"
    ):
        ask(narrow, SENTENCES[0], text, too_long="refuse")
    with pytest.raises(
        DataError, match=r"^in.txt:2: is longer than 65,536 bytes; put one sentence on a line"
    ):
        ask(narrow, "a", None, too_long="refuse")


def test_many_lines_are_told_by_their_number(
    narrow: Translator, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(line_translation, "MAX_TOLD", 2)
    ask(narrow, *[" ".join(SENTENCES)] * 5, None, wishes=("max_length=1",))
    assert len(caplog.messages) == 4
    assert caplog.messages[2:] == [
        "3 more lines were too long: translated in pieces",
        "1 more line was too long: left empty",
    ]


def test_the_same_in_chinese(
    narrow: Translator, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(line_translation, "MAX_TOLD", 1)
    use_language("zh")
    try:
        ask(narrow, " ".join(SENTENCES), None, wishes=("max_length=1",))
    finally:
        use_language(None)
    assert caplog.messages[0].endswith("个词元，一次最多读 13 个；已分 3 段翻译")
    assert caplog.messages[1] == "另有 1 行过长：译文留空"
