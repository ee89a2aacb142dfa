"""A rule that a generator does not follow is refused, wherever it is asked for."""

import pytest

from headwise.decoding.choices import BeamSettings, GreedySettings
from headwise.decoding.generation_settings import GenerationSettings
from headwise.decoding.rules.constraints import SentenceRules
from headwise.decoding.rules.honoured_rules import ALL_RULES, refuse_unsupported
from headwise.errors import UsageError

ASKED: dict[str, GenerationSettings] = {
    "forbidden": GreedySettings(forbidden=("no",)),
    "required": BeamSettings(required=("yes",)),
    "prefix": GreedySettings(prefix="So"),
    "min_length": GreedySettings(min_length=2),
    "at_limit": GreedySettings(at_limit="end"),
    "no_repeat_ngrams": GreedySettings(no_repeat_ngrams=3),
    "allow_unknown": GreedySettings(allow_unknown=False),
}


def test_every_rule_is_listed() -> None:
    assert set(ASKED) == ALL_RULES
    shared = set(GenerationSettings.model_fields) - {"max_length", "batching"}
    assert shared == ALL_RULES


@pytest.mark.parametrize("rule", ASKED)
def test_a_rule_that_is_not_followed_is_refused(rule: str) -> None:
    others = frozenset(one for one in ALL_RULES if one != rule)
    with pytest.raises(UsageError, match=f"does not follow the rule {rule}; it follows"):
        refuse_unsupported(ASKED[rule], None, honoured=others)
    refuse_unsupported(ASKED[rule], None, honoured=ALL_RULES)


def test_a_prefix_of_one_sentence_counts() -> None:
    rules = [SentenceRules(), SentenceRules(prefix=(5,))]
    with pytest.raises(UsageError, match="rule prefix; it follows no rule but max_length"):
        refuse_unsupported(GreedySettings(), rules, honoured=frozenset())
    refuse_unsupported(GreedySettings(), rules[:1], honoured=frozenset())
