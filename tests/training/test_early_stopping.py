import math

import pytest

from headwise.errors import UsageError
from headwise.training.early_stopping import Selection


@pytest.mark.parametrize(
    ("metric", "values", "best_step", "without"),
    [
        ("loss", [3.0, 2.0, 2.5, 2.0, 2.1], 2, 3),
        ("bleu", [3.0, 2.0, 5.0, 5.0], 3, 1),
        ("perplexity", [9.0, math.nan, 8.0], 3, 0),
        ("chrf", [math.nan, math.inf], None, 2),
    ],
)
def test_best_and_patience(metric, values, best_step, without):
    selection = Selection(metric=metric)
    for step, value in enumerate(values, start=1):
        selection = selection.after(step, {metric: value, "other": 0.0})
    assert (selection.best.step if selection.best else None) == best_step
    assert selection.num_without_improvement == without
    assert selection.step == len(values)


def test_an_unmeasured_metric_is_refused():
    with pytest.raises(
        UsageError, match=r"keep\.best is 'bleu', but validation measures loss, chrf"
    ):
        Selection(metric="bleu").after(1, {"loss": 1.0, "chrf": 2.0})
