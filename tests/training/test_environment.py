"""What a resume on other data, another build or machine is told: what differs, what still holds."""

import logging

import pytest
import torch

from headwise.errors import DataError, UsageError
from headwise.training.environment import Environment, compare_environments

DATA = "train:aa valid:none vocabulary:cc rows:64x64"


@pytest.fixture(name="here")
def _here() -> Environment:
    return Environment.here(fingerprint=DATA, seed=7, num_processes=1, device=torch.device("cpu"))


def test_the_same_is_silent(here: Environment, caplog: pytest.LogCaptureFixture) -> None:
    compare_environments(here, here)
    compare_environments(here.model_copy(update={"headwise_version": ""}), here)
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("now", "differs", "same"),
    [
        (
            DATA.replace("aa", "bb"),
            "training pairs: fingerprint aa → bb",
            "validation pairs, vocabulary, row lengths",
        ),
        (
            DATA.replace("none", "dd"),
            "validation pairs: fingerprint none → dd",
            "training pairs, vocabulary, row lengths",
        ),
        (
            DATA.replace("cc", "dd"),
            "vocabulary: fingerprint cc → dd",
            "training pairs, validation pairs, row lengths",
        ),
        (
            DATA.replace("64x64", "58x64"),
            "row lengths: fingerprint 64x64 → 58x64",
            "training pairs",
        ),
    ],
)
def test_other_data_is_refused_by_name(
    here: Environment, now: str, differs: str, same: str
) -> None:
    with pytest.raises(DataError, match="the data is not what this run began with") as caught:
        compare_environments(here, here.model_copy(update={"fingerprint": now}))
    assert differs in str(caught.value)
    assert f"the same: {same}" in str(caught.value)
    assert str(caught.value).count("→") == 1
    assert caught.value.exit_status == 3


def test_fingerprints_without_names_are_compared_whole(here: Environment) -> None:
    with pytest.raises(DataError, match=r"training pairs: fingerprint abc-def → train:aa"):
        compare_environments(here.model_copy(update={"fingerprint": "abc-def"}), here)


def test_another_seed_is_another_training(here: Environment) -> None:
    with pytest.raises(UsageError, match=r"training.seed is 7, this run began with 8"):
        compare_environments(here.model_copy(update={"seed": 8}), here)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("torch_version", "2.10.0"),
        ("device", "cuda"),
        ("num_threads", 97),
        ("machine", "riscv64"),
        ("headwise_version", "0.0.1"),
    ],
)
def test_another_build_is_said_and_allowed(
    here: Environment, name: str, value: object, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        compare_environments(here.model_copy(update={name: value}), here)
    assert f"{name}: {value} → {getattr(here, name)}" in caplog.text
    assert (
        "the order of the data, the schedule and the seeds of dropout are the same" in caplog.text
    )
    assert "not be those of an uninterrupted run to the last bit" in caplog.text
