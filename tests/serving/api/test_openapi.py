"""Requests generated from the server's description (S4): no server error, replies as described."""

from collections.abc import Collection
from typing import Any

import pytest
import schemathesis
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode

from headwise.serving.app import create_app
from headwise.serving.http.server_settings import ServerSettings
from tests.serving.api import described_refusals
from tests.serving.conftest import BUNDLE

ADDRESSES = (
    "/v1/translate",
    "/translate",
    "/detect",
    "/languages",
    "/v1/models",
    "/healthz",
    "/readyz",
)


@pytest.fixture(scope="module")
def description() -> Any:
    from headwise.serving.work.loaded_models import load_models

    app = create_app(load_models([f"tiny={BUNDLE}"], device="cpu"), ServerSettings(hosts=("*",)))
    return schemathesis.openapi.from_asgi("/openapi.json", app)


def examine(
    description: Any, *, max_examples: int, addresses: Collection[str] = ADDRESSES
) -> list[str]:
    """Send so many generated requests to each route; returns the routes that were tried."""
    assert (
        described_refusals.what_fits_is_not_called_unfit.__name__
        in schemathesis.checks.CHECKS.get_all_names()
    )
    tried = []
    for found in description.get_all_operations():
        operation = found.ok()
        if operation.path not in addresses:
            continue

        def check(case: Any) -> None:
            # A valid request may still be impossible: `described_refusals` checks that in the
            # tool's place.
            reply = case.call()
            if reply.status_code != 413:  # a refusal too, but not one the tool counts as such
                case.validate_response(
                    reply, excluded_checks=[schemathesis.checks.positive_data_acceptance]
                )

        run = settings(
            max_examples=max_examples,
            deadline=None,
            database=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.explicit, Phase.generate],
        )
        for mode in GenerationMode:
            if mode is GenerationMode.NEGATIVE and not operation.body:
                continue
            run(given(case=operation.as_strategy(generation_mode=mode))(check))()
        tried.append(operation.path)
    return tried


@pytest.mark.filterwarnings("ignore")  # of the tool about itself
def test_made_up_requests_find_no_server_error(description: Any) -> None:
    assert set(examine(description, max_examples=6)) == set(ADDRESSES)


@pytest.mark.prove
@pytest.mark.filterwarnings("ignore")
def test_two_thousand_made_up_requests_an_address(description: Any) -> None:
    assert set(examine(description, max_examples=2_000)) == set(ADDRESSES)


def test_every_address_is_described_with_examples(client: TestClient) -> None:
    found = client.get("/openapi.json").json()
    assert set(ADDRESSES) <= set(found["paths"])
    assert found["components"]["schemas"]["TranslateBody"]["examples"]
    for path in ("/translate", "/detect"):
        content = found["paths"][path]["post"]["requestBody"]["content"]
        assert set(content) == {"application/json", "application/x-www-form-urlencoded"}
        assert all(one["schema"]["examples"] for one in content.values())
    replies = found["paths"]["/v1/translate"]["post"]["responses"]
    assert {"200", "400", "401", "403", "413", "415", "422", "429", "503", "504"} <= set(replies)
    assert "text/event-stream" in replies["200"]["content"]


def test_every_bound_of_a_body_stands_in_the_description(client: TestClient) -> None:
    """`ge` and `le` are pydantic's own words: where they appear, a bound is checked but not
    described."""
    text = client.get("/openapi.json").text
    assert '"minimum":' in text
    for word in ("ge", "le", "gt", "lt", "multiple_of"):
        assert f'"{word}":' not in text
