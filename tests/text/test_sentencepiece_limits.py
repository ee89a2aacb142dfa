import pytest

from headwise.text import sentencepiece_limits as piece_bounds
from headwise.text.sentencepiece_limits import is_bounded
from tests.text.test_sentencepiece_tokenizer import learn


def test_a_model_is_counted_before_it_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hostile files are in tests/attacks; here one of our own, with room for all its pieces, and
    for one less.
    """
    tokenizer = learn()
    monkeypatch.setattr(piece_bounds, "MAX_PIECES", tokenizer.size)
    assert is_bounded(tokenizer.model)
    monkeypatch.setattr(piece_bounds, "MAX_PIECES", tokenizer.size - 1)
    assert not is_bounded(tokenizer.model)


def test_every_kind_of_field() -> None:
    number, eight, four, end = b"\x30\x96\x01", b"\x31" + bytes(8), b"\x35" + bytes(4), b"\x0b"
    assert is_bounded(number + eight + four)
    assert is_bounded(b"")
    for cut in (number[:-1], eight[:-1], four[:-1], b"\x0a\x05a", end):
        assert not is_bounded(cut)
