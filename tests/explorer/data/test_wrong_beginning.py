"""One sentence after a right and a wrong beginning: the common tail by hand, and the model's own
words as the right ones."""

import pytest

from headwise.errors import UsageError
from headwise.explorer.data.wrong_beginning import ForcedTranslation, continue_both, same_tail
from headwise.tasks.translation.translator import Translator
from headwise.tasks.translation.wrong_prefix import greedy_settings

TEXT = "The dog is old."


def continuation(tokens: str, *, forced: int = 1, finished: bool = True) -> ForcedTranslation:
    return ForcedTranslation(tuple(map(ord, tokens)), tokens, forced, finished, ())


@pytest.mark.parametrize(
    ("right", "wrong", "count"),
    [("abcd", "xbcd", 4), ("abcd", "xyd", 2), ("abcd", "xbce", 0), ("ab", "cb", 2), ("a", "b", 0)],
)
def test_the_common_tail(right: str, wrong: str, count: int) -> None:
    assert same_tail(continuation(right), continuation(wrong)) == count
    assert same_tail(continuation(right), continuation(wrong, finished=False)) == 0
    assert same_tail(continuation(right, forced=len(right)), continuation(wrong)) == 0


def test_the_models_own_beginning_gives_its_own_translation(translator: Translator) -> None:
    found = continue_both(translator, TEXT, greedy_settings(translator))
    assert found.right.text == found.own == translator([TEXT])[0].text
    assert found.right.tokens[0] not in [one.token for one in found.likely]
    assert found.wrong.tokens[0] == found.likely[0].token
    for one in (found.right, found.wrong):
        assert [step.chosen.token for step in one.steps][: len(one.tokens)] == list(one.tokens)
        assert len(one.steps) == len(one.tokens) + one.finished
    assert (found.agreement, found.read) == (None, ())
    with pytest.raises(UsageError, match="give another beginning"):
        continue_both(translator, TEXT, greedy_settings(translator), wrong=found.right.tokens[:1])
