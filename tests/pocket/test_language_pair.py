import pytest

from headwise.errors import UsageError
from headwise.pocket.language_pair import split_pair


@pytest.mark.parametrize("pair", ["en-en", "en", "en-fr", "de-", "", "en-de-zh"])
def test_a_pair_is_two_languages_of_the_pocket_corpus(pair: str) -> None:
    with pytest.raises(
        UsageError,
        match="is not a pair of the pocket corpus; give two different ones of en, zh, de",
    ):
        split_pair(pair)
    assert split_pair("zh-en") == ("zh", "en")
