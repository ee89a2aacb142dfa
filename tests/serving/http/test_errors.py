"""Refusals name the field in both languages, and repeat no text of the sender's."""

import pytest
from fastapi.testclient import TestClient


@pytest.mark.parametrize(
    ("body", "en", "zh"),
    [
        (
            {},
            "the body: give exactly one of text and texts",
            "请求体：text 与 texts 必须给出一个，且只能给出一个",
        ),
        ([], "the body must be", "请求体 必须"),
        ({"text": "a", "n_best": 0}, "n_best must be at least 1", "n_best 必须不小于 1"),
    ],
)
def test_the_field_is_named_in_both_languages(
    client: TestClient, body: object, en: str, zh: str
) -> None:
    reply = client.post("/v1/translate", json=body)
    assert reply.status_code == 422
    error = reply.json()["error"]
    assert en in error["message"]
    assert zh in error["message_zh"]
    assert "the body" not in error["message_zh"]


@pytest.mark.parametrize("name", ["my secret letter", "langauge", "你好", "x" * 41, ""])
def test_a_name_that_may_be_a_text_is_not_repeated(client: TestClient, name: str) -> None:
    reply = client.post("/v1/translate", json={"text": "a", name: 1})
    assert (
        reply.json()["error"]["message"]
        == "a field that is not known here was given; see /openapi.json"
    )
    assert not name or name not in reply.text
