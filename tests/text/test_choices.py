import numpy as np
import pydantic
import pytest

from headwise.text.choices import (
    CharacterSettings,
    SentencePieceSettings,
    TextSettings,
    WordSettings,
    learn_tokenizers,
    sample_evenly,
)

from .corpus import chinese, english

ALL = [
    SentencePieceSettings(size=330),
    SentencePieceSettings(size=320, shared=False, algorithm="unigram"),
    WordSettings(),
    CharacterSettings(shared=False),
]


@pytest.mark.parametrize("settings", ALL, ids=lambda s: f"{s.kind}-{s.shared}")
def test_every_kind_learns_and_keeps_special_ids(settings: TextSettings) -> None:
    pair = learn_tokenizers(settings, english(), chinese(), seed=3)
    assert pair.shared == settings.shared == (pair.source is pair.target)
    assert pair.source.pieces([0, 1, 2, 3]) == ["<pad>", "<s>", "</s>", "<unk>"]
    for line in english()[:7]:
        assert pair.source.decode(pair.source.encode(line)) == line
    for line in chinese()[:7]:
        assert pair.target.decode(pair.target.encode(line)) == line


def test_settings_are_told_apart_by_kind() -> None:
    adapter = pydantic.TypeAdapter(TextSettings)
    assert adapter.validate_python({"kind": "words", "size": 50}) == WordSettings(size=50)
    with pytest.raises(pydantic.ValidationError, match="does not match any"):
        adapter.validate_python({"kind": "letters"})


def test_a_sample_is_even_bounded_and_repeatable() -> None:
    counts = np.zeros(29)
    for seed in range(400):
        drawn = sample_evenly(range(29), 7, seed=seed)
        assert len(set(drawn)) == 7
        counts[drawn] += 1
    expected = 400 * 7 / 29
    assert np.abs(counts - expected).max() < 5 * np.sqrt(expected)
    assert sample_evenly(range(29), 7, seed=1) == sample_evenly(range(29), 7, seed=1)
    assert sample_evenly(range(5), 7, seed=1) == [0, 1, 2, 3, 4]
