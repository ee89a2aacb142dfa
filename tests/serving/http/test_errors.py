"""Refusals name the field in both languages, and repeat no text of the sender's."""

import pytest
from fastapi.testclient import TestClient

from headwise.serving.schemas.translation import TranslateBody


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


@pytest.mark.parametrize("name", ["my secret letter", "langauge", "你好", "x" * 41, "", "mod3l"])
def test_a_name_that_may_be_a_text_is_not_repeated(client: TestClient, name: str) -> None:
    reply = client.post("/v1/translate", json={"text": "a", name: 1})
    known = ", ".join(TranslateBody.model_fields)
    hint = "did you mean 'model'? " if name == "mod3l" else ""
    assert (
        reply.json()["error"]["message"]
        == f"a field that is not known here was given; {hint}the fields are {known}"
    )
    assert not name or name not in reply.text


@pytest.mark.parametrize(
    ("body", "en", "zh"),
    [
        (
            {"decoding": {"forbidden": ["x"]}},
            "decoding needs a kind, one of greedy, beam, sampling",
            "decoding 需要 kind，可选：greedy、beam、sampling",
        ),
        ({"decoding": {"kind": "bean"}}, "decoding needs a kind, one of greedy, beam", "可选"),
        ({"required": ["x"]}, "given; did you mean 'require'? the fields", "是否想写 'require'？"),
        (
            {"decoding": {"kind": "beam", "sice": 3}},
            "in decoding, a field that is not known here was given; did you mean 'size'? the "
            "fields are kind, ",
            "decoding 中给出了未知的字段；是否想写 'size'？可用的字段：kind、",
        ),
    ],
)
def test_what_is_known_is_named(
    client: TestClient, body: dict[str, object], en: str, zh: str
) -> None:
    reply = client.post("/v1/translate", json={"text": "a", **body})
    assert reply.status_code == 422
    error = reply.json()["error"]
    assert en in error["message"]
    assert zh in error["message_zh"]


def test_the_content_types_are_all_named(client: TestClient) -> None:
    for route, said in (
        (
            "/v1/translate",
            "the body must be JSON; send the header `Content-Type: application/json`",
        ),
        (
            "/translate",
            "the body must be JSON or a form; send the header `Content-Type: application/json` or "
            "`Content-Type: application/x-www-form-urlencoded`",
        ),
    ):
        reply = client.post(route, files={"q": b"a"})
        assert reply.status_code == 415
        error = reply.json()["error"]
        assert (error if isinstance(error, str) else error["message"]) == said
