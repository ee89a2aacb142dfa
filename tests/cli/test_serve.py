"""`headwise serve`: what its help says of itself."""

import pytest

from headwise.serving.app import create_app
from tests.cli.conftest import Headwise

ONLY_EXPLORE = {"/v1/demo"}


@pytest.mark.parametrize("language", ["en_GB.UTF-8", "zh_CN.UTF-8"])
def test_help_names_every_address(
    headwise: Headwise, language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", language)
    told = headwise("serve", "--help").out
    assert ("地址" in told) == language.startswith("zh")
    assert {path for path in create_app({}).openapi()["paths"] if path not in told} == ONLY_EXPLORE
