import pytest

from headwise.data.pairs.segmentation.choices import (
    BpeDropout,
    UnigramSampling,
    check_segmentation,
)
from headwise.errors import SettingsError
from headwise.text.choices import (
    CharacterSettings,
    ImportedPieceSettings,
    SentencePieceSettings,
    TextSettings,
    WordSettings,
)


def test_each_kind_has_its_algorithm() -> None:
    check_segmentation(BpeDropout(), SentencePieceSettings())
    check_segmentation(UnigramSampling(), SentencePieceSettings(algorithm="unigram"))
    with pytest.raises(SettingsError, match=r"kind=unigram_sampling$"):
        check_segmentation(BpeDropout(), SentencePieceSettings(algorithm="unigram"))
    with pytest.raises(SettingsError, match=r"kind=bpe_dropout$"):
        check_segmentation(UnigramSampling(), SentencePieceSettings())


@pytest.mark.parametrize("text", [WordSettings(), CharacterSettings(), ImportedPieceSettings()])
def test_other_tokenizers_are_refused(text: TextSettings) -> None:
    with pytest.raises(SettingsError, match=r"set text.kind=sentencepiece and text.algorithm=bpe"):
        check_segmentation(BpeDropout(), text)


def test_in_words() -> None:
    assert BpeDropout(probability=0.2).in_words == "bpe_dropout (probability=0.2, sides=both)"
    assert UnigramSampling(sides="source").in_words == "unigram_sampling (alpha=0.2, sides=source)"
