"""Every route with every method: declared methods are accepted, others are refused."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from headwise.serving.app import OPEN_ROUTERS, ROUTERS
from headwise.serving.http.route_table import RouteTable

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND")
TABLE = RouteTable([*ROUTERS, *OPEN_ROUTERS])


@pytest.mark.parametrize("path", sorted(TABLE.exact))
def test_methods_that_are_not_declared_get_405_and_the_right_ones(
    client: TestClient, path: str
) -> None:
    # The page is not described.
    described = client.get("/openapi.json").json()["paths"].get(path, {"get": {}, "head": {}})
    allowed = {method.upper() for method in described}
    for method in METHODS:
        if method in allowed:
            continue
        for content in ({}, {"content": b"{}", "headers": {"Content-Type": "application/json"}}):
            reply = client.request(method, path, **content)
            assert reply.status_code == 405, (method, path)
            assert set(reply.headers["allow"].split(", ")) == allowed
            assert reply.headers["x-content-type-options"] == "nosniff"


def test_a_refused_method_is_told_in_two_languages(client: TestClient) -> None:
    error = client.put("/v1/demo").json()["error"]
    assert (error["code"], error["message"]) == (
        "no_method",
        "this address does not take this method; it takes GET, POST",
    )
    assert "它接受 GET, POST" in error["message_zh"]
    assert client.get("/translate").json() == {
        "error": "this address does not take this method; it takes POST"
    }


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE"])
def test_no_address_is_no_address_whatever_the_method(client: TestClient, method: str) -> None:
    reply = client.request(method, "/nothing/here")
    assert (reply.status_code, reply.json()["error"]["code"]) == (404, "no_address")


def test_files_of_the_page_take_two_methods(client: TestClient) -> None:
    reply = client.post("/static/anything.js", json={})
    assert (reply.status_code, reply.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (
            "/v1/translate",
            {"text": "I am.", "n_best": 2.0, "decoding": {"kind": "beam", "size": 4.0}},
        ),
        (
            "/v1/trace",
            {
                "text": "I am.",
                "top": 2.0,
                "beam": {"size": 2.0},
                "maps": {"bits": 8.0, "layers": [0.0]},
            },
        ),
        ("/v1/positions", {"position": {"kind": "t5", "num_buckets": 16.0}, "length": 8.0}),
    ],
)
def test_a_whole_number_may_be_written_with_a_point(
    client: TestClient, path: str, body: dict[str, Any]
) -> None:
    """JSON Schema calls 4.0 an integer, and so do we; "4" and true are none."""
    assert client.post(path, json=body).status_code == 200


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/v1/translate", {"text": "I am.", "n_best": "2"}, 422),
        ("/v1/translate", {"text": "I am.", "n_best": True}, 422),
        ("/v1/translate", {"text": "I am.", "n_best": 1.5}, 422),
        ("/v1/positions", {"position": {"stride": 16}}, 422),
        ("/translate", {"q": "I am.", "source": "en", "target": "de", "alternatives": False}, 400),
        ("/translate", {"q": "I am.", "source": "en", "target": "de", "alternatives": "2"}, 400),
    ],
)
def test_what_the_description_forbids_is_refused(
    client: TestClient, path: str, body: dict[str, Any], status: int
) -> None:
    assert client.post(path, json=body).status_code == status
