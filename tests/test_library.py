"""The library from outside: what `import headwise` offers."""

import socket
import subprocess
import sys

import pytest

import headwise


def test_importing_is_cheap() -> None:
    code = "import headwise, sys; print('torch' in sys.modules, 'pydantic' in sys.modules)"
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert said.split() == ["False", "False"]


def test_every_name_it_offers_is_there() -> None:
    for name in headwise.__all__:
        assert getattr(headwise, name) is not None
    with pytest.raises(
        AttributeError,
        match="has no attribute 'Translater'; it offers Labeller, LanguageModel, Recipe, "
        "Translation, Translator",
    ):
        headwise.Translater  # noqa: B018


def test_every_model_is_offered() -> None:
    from headwise import models

    for name in models.__all__:
        assert getattr(models, name).__name__ == name
    with pytest.raises(
        AttributeError,
        match="has no attribute 'Bert'; it offers BidirectionalLanguageModel, DecoderOnly",
    ):
        models.Bert  # noqa: B018


def test_no_test_can_leave_this_machine() -> None:
    """S11: the suite itself runs without a network (tests/conftest.py)."""
    with (
        socket.socket() as asking,
        pytest.raises(AssertionError, match=r"tried to reach 192\.0\.2\.1"),
    ):
        asking.connect(("192.0.2.1", 80))
