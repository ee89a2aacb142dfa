"""A real translator that is small enough to be asked everything."""

from pathlib import Path

import pytest

from headwise.tasks.translation.translator import Translator

BUNDLE = Path(__file__).parents[1] / "fixtures" / "format-1" / "bundle"


@pytest.fixture(scope="session")
def translator() -> Translator:
    return Translator.load(BUNDLE, device="cpu")
