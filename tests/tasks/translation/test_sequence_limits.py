"""Recipes that learn from samples but cannot are refused, and told what to set."""

import pytest

from headwise.errors import SettingsError
from tests.tasks.tiny import tiny_recipe


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["model.kind=parallel", "decoding.kind=one_pass"], r"draws samples from left to right"),
        (["training.cuda_graphs=on"], r"cuda_graphs=on .* lengths differ"),
        (["training.parallel.kind=sharded"], r"parallel\.kind=sharded was given, .*samples, whose"),
        (["training.objective.baseline=linear"], r"set model\.reward_baseline=true"),
        (["training.objective.samples.count=1"], r"set it to 2 or more"),
    ],
)
def test_what_does_not_fit_is_refused(words: list[str], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        tiny_recipe("training.objective={kind: reinforce}", *words)
