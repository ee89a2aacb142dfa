import pytest

from headwise.errors import SettingsError
from headwise.settings import check_settings
from headwise.training.choices import TrainingSettings


def test_every_setting_is_documented():
    for name, field in TrainingSettings.model_fields.items():
        nested = getattr(field.annotation, "model_fields", None)
        documented = (
            field.description or (nested and field.annotation.__doc__) or name == "schedule"
        )
        assert documented, name


def test_round_trip_through_plain_data():
    settings = TrainingSettings(steps=7, ema=0.9)
    assert check_settings(TrainingSettings, settings.model_dump(mode="json")) == settings


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"average": {"last": 3}, "ema": 0.9}, "both say which weights"),
        ({"schedule": {"kind": "step"}}, "no kind 'step'"),
        ({"keep": {"last": 1}}, "must be at least 2"),
        ({"precision": "fp16"}, "'auto', 'fp32' or 'bf16'"),
        ({"stepps": 3}, "did you mean 'steps'"),
        ({"steps": 0}, "must be at least 1"),
    ],
)
def test_refuses(data, message):
    with pytest.raises(SettingsError, match=message):
        check_settings(TrainingSettings, data)


def test_the_best_metric_is_one_that_is_measured():
    keep = TrainingSettings().keep
    keep.check_metric(("loss", "bleu"))
    with pytest.raises(SettingsError, match="'loss'; validation measures bleu, chrf"):
        keep.check_metric(("bleu", "chrf"))
