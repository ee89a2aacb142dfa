"""How long a training takes, from a few rows: a step of known time, and a model that is left as it was."""

import pytest
import torch

from headwise.language import use_language
from headwise.models.choices import build_model
from headwise.randomness import torch_generator
from headwise.tasks.duration import describe_duration, expect_seconds, time_rows
from headwise.tasks.translation.objective import RowShape
from tests.tasks.tiny import tiny_recipe


@pytest.mark.parametrize(
    ("fixed", "each", "tried"), [(0.01, 0.001, 31), (0.5, 0.25, 2), (0.01, 0.1, 4)]
)
def test_time_is_drawn_out_along_a_line(fixed: float, each: float, tried: int) -> None:
    now, asked = [0.0], list[int]()

    def step(rows: int) -> None:
        asked.append(rows)
        now[0] += fixed + each * rows

    assert time_rows(step, 31, now=lambda: now[0]) == pytest.approx(fixed + 31 * each)
    assert max(asked) == tried, "no more rows than it takes to see them"


def test_a_row_that_takes_long_is_enough() -> None:
    now, asked = [0.0], list[int]()

    def step(rows: int) -> None:
        asked.append(rows)
        now[0] += 6.0

    assert time_rows(step, 7, now=lambda: now[0]) == 42.0
    assert asked == [1]


def test_a_model_is_left_as_it_was() -> None:
    recipe = tiny_recipe("training.steps=10", "training.accumulation=3", "training.device=cpu")
    model = build_model(
        recipe.model, source_size=11, target_size=11, generator=torch_generator("weights")
    ).eval()
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    state = torch.random.get_rng_state()
    seconds = expect_seconds(recipe, model, RowShape(3, 7, 5))
    assert seconds is not None
    assert seconds > 0
    assert torch.equal(torch.random.get_rng_state(), state)
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())
    assert all(weight.grad is None for weight in model.parameters())
    assert not model.training


def test_long_trainings_are_told_where_to_look() -> None:
    assert describe_duration(90, "base") == "about 90.0 s of training on this machine"
    assert describe_duration(70 * 86400, "base") == (
        "about 70.0 days of training on this machine; `headwise plan base` says why and what helps"
    )
    use_language("zh")
    assert describe_duration(70 * 86400, "base").startswith(
        "在本机训练约需 70.0 天；`headwise plan base`"
    )
    use_language(None)
