"""Chinese pieces stay within characters or words, whatever the corpus repeats."""

import functools
from pathlib import Path

import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwise.errors import DataError, SettingsError
from headwise.pocket import sentences
from headwise.text import chinese_words as han
from headwise.text.chinese_words import (
    BOUNDARY,
    HanUnits,
    built_in_words,
    cut_run,
    marker_of,
    read_words,
)
from headwise.text.choices import SentencePieceSettings, learn_tokenizers
from headwise.text.tokenizer import WORD_START, Tokenizer

SENTENCE = "那只动物没有过马路，因为它太累了。"
HAN_TEXT = st.text(st.sampled_from("那只动物没有过马路因为它太累了猫𠀀"), max_size=23)


@functools.cache
def learn(algorithm: str, units: HanUnits | None) -> Tokenizer:
    lines = list(sentences("train", 1000))
    settings = SentencePieceSettings.model_validate(
        {"algorithm": algorithm, "size": 1300, "han": units}
    )
    pair = learn_tokenizers(
        settings, [one.text("zh") for one in lines], [one.text("en") for one in lines]
    )
    return pair.source


def spelled(tokenizer: Tokenizer, text: str) -> list[str]:
    pieces = [piece.replace(WORD_START, "") for piece in tokenizer.pieces(tokenizer.encode(text))]
    return [piece for piece in pieces if piece]


@pytest.mark.parametrize(
    ("run", "parts"),
    [
        ("过马路", ["过", "马路"]),  # the longest first: not 马 and 路
        ("它叫阿马", ["它", "叫阿", "马"]),  # what is in no word stays together
        ("叫阿", ["叫阿"]),
        ("", []),
    ],
)
def test_the_longest_known_word_from_the_left(run: str, parts: list[str]) -> None:
    assert cut_run(run, frozenset({"它", "过", "马", "马路", "路"}), longest=2) == parts


@given(run=HAN_TEXT, words=st.frozensets(HAN_TEXT.filter(bool), min_size=1))
@settings(max_examples=100, deadline=None)
def test_cutting_loses_nothing_and_marks_only_chinese(run: str, words: frozenset[str]) -> None:
    assert "".join(cut_run(run, words, longest=max(map(len, words)))) == run
    for units in ("characters", "words"):
        mark = marker_of(units, None)
        assert mark is not None
        line = f"a {run} b"
        assert mark(line).replace(BOUNDARY, "") == line
        assert mark("no Chinese, 3.5 %") == "no Chinese, 3.5 %"


@pytest.mark.parametrize("algorithm", ["bpe", "unigram"])
def test_pieces_stay_within_their_units(algorithm: str) -> None:
    free = spelled(learn(algorithm, None), SENTENCE)
    assert "它" not in free  # what this is for: the pronoun is hidden in a longer piece
    by_character = spelled(learn(algorithm, "characters"), SENTENCE)
    assert by_character == list(SENTENCE)
    by_word = spelled(learn(algorithm, "words"), SENTENCE)
    assert by_word[-6:] == ["因为", "它", "太", "累", "了", "。"]
    assert "".join(free) == "".join(by_word) == SENTENCE


@pytest.mark.parametrize("algorithm", ["bpe", "unigram"])
def test_the_text_comes_back(algorithm: str) -> None:
    for units in ("characters", "words"):
        tokenizer = learn(algorithm, units)
        for text in (
            SENTENCE,
            "",
            f"a{BOUNDARY}b {BOUNDARY}",
            "  龘 ▁ two  spaces",
            "它 it 它们",
            "𠀀の猫",
        ):
            assert tokenizer.decode(tokenizer.encode(text)) == text


def test_other_languages_are_cut_as_before() -> None:
    lines = [one.text("en") for one in sentences("train", 400)]
    for algorithm in ("bpe", "unigram"):
        told = {"algorithm": algorithm, "size": 500}
        free, bounded = (
            learn_tokenizers(
                SentencePieceSettings.model_validate({**told, "han": units}), lines, lines
            ).source
            for units in (None, "words")
        )
        assert free.encode_batch(lines) == bounded.encode_batch(lines)


def test_the_built_in_list_is_the_pocket_corpus() -> None:
    """Longest words from the left against the words of the grammar, on sentences of every kind."""
    right = total = 0
    for one in (*sentences("test", 250), *sentences("unseen", 250)):
        ends, cuts = set(), set()
        place = 0
        for word in one.words("zh"):
            place += len(word)
            ends.add(place)
        mark = marker_of("words", None)
        assert mark is not None
        place = 0
        for part in mark(one.text("zh")).split(BOUNDARY):
            place += len(part)
            cuts.add(place)
        right += len(ends & cuts)
        total += len(ends)
    assert right / total > 0.99
    assert {"它", "他", "她", "它们", "因为", "动物", "马路"} <= built_in_words()


def test_a_list_is_any_text_with_spaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "dictionary.txt"
    path.write_text("\ufeff动物 3 n\n马路/n 因为\t它\n", encoding="utf-8")
    assert read_words(path) == {"动物", "因为", "它"}
    monkeypatch.setattr(han, "MAX_LIST_BYTES", 11)
    with pytest.raises(DataError, match="holds no Chinese words; give a UTF-8 file of at most"):
        read_words(path)


@pytest.mark.parametrize("content", [None, b"", b"only English", b"\xff\xfe"])
def test_a_list_without_words_is_refused(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "list.txt").write_bytes(content)
    with pytest.raises(DataError, match="holds no Chinese words"):
        read_words(tmp_path / "list.txt")
    with pytest.raises(DataError, match="holds no Chinese words"):
        read_words(Path("a\0b"))


def test_a_list_needs_words() -> None:
    with pytest.raises(
        (SettingsError, pydantic.ValidationError), match=r"only text\.han=words uses a list"
    ):
        SentencePieceSettings(words="list.txt")
