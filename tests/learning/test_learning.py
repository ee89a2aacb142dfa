"""Small Transformers learn copy, reverse and sort to near perfection; each task on another build,
so that all parts learn."""

import secrets

import pytest

from tests.learning.tasks import TASKS, accuracy, make_model, train

AFTER = {"norm": {"kind": "layer", "place": "after"}}
MODERN = {"norm": {"kind": "rms"}, "feed_forward": {"kind": "gated", "hidden": 64}}
LEARNED = {
    "position": {"kind": "learned", "max_length": 32},
    "embedding": {"tied": "none"},
    "output_bias": True,
}


@pytest.mark.parametrize(
    ("task", "changes", "packed"),
    [
        ("copy", {}, False),
        pytest.param("reverse", AFTER, False, marks=pytest.mark.prove),
        ("sort", MODERN, True),
    ],
    ids=["copy", "reverse_norm_after", "sort_modern_packed"],
)
def test_a_small_model_learns(task: str, changes: dict, packed: bool) -> None:
    key = ("learning", task)
    model = make_model(key, **changes)
    loss = train(model, TASKS[task], key=key, steps=250, max_length=5, packed=packed)
    assert loss < 0.1
    assert accuracy(model, TASKS[task], key=key, max_length=5) >= 0.97


@pytest.mark.prove
@pytest.mark.parametrize(
    "changes", [{}, AFTER, MODERN, LEARNED], ids=["before", "after", "modern", "learned"]
)
@pytest.mark.parametrize("task", TASKS)
def test_longer_sentences_are_learned_from_a_new_seed_each_run(task: str, changes: dict) -> None:
    key = (secrets.randbits(32), task)
    stack = {"layers": 2, "heads": 4}
    model = make_model(key, encoder=stack, decoder=stack, **changes)
    train(model, TASKS[task], key=key, steps=900, max_length=9)
    found = accuracy(model, TASKS[task], key=key, max_length=9)
    assert found >= 0.95, f"{found:.1%} right; key {key}"
