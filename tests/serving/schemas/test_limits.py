"""Each limit at its value, one above, far above, negative, of another type (S3): always a
documented 4xx, soon, in two languages.
"""

import time
from typing import Any

import pytest
from fastapi.testclient import TestClient

from headwise.decoding.rules import phrases
from headwise.serving.schemas.limits import (
    MAX_BEAM,
    MAX_BEST,
    MAX_CHARACTERS,
    MAX_PHRASE_BYTES,
    MAX_SENTENCES,
    MAX_TEXTS,
    MAX_TOKENS,
)

SLOWEST_REFUSAL = 0.5
"""Seconds on a busy machine; alone they take a few milliseconds."""


def ask(client: TestClient, body: dict[str, Any]) -> Any:
    start = time.monotonic()
    reply = client.post("/v1/translate", json={"decoding": {"kind": "greedy"}, **body})
    if reply.status_code != 200:
        assert time.monotonic() - start < SLOWEST_REFUSAL
        error = reply.json()["error"]
        assert set(error) == {"code", "message", "message_zh"}
        assert any("\u4e00" <= letter <= "\u9fff" for letter in error["message_zh"])
        assert error["message"].isascii()
    return reply


WRONG = [-1, 0, 10**9, 1.5, "3", None, [], {}, True, 10**400]


@pytest.mark.parametrize("value", WRONG)
@pytest.mark.parametrize(
    "place", ["n_best", "size", "top_k", "seed", "temperature", "text", "split", "model"]
)
def test_values_that_cannot_be(client: TestClient, place: str, value: Any) -> None:
    body: dict[str, Any] = {"text": "I am."}
    if place in ("n_best", "text", "split", "model"):
        body[place] = value
    elif place == "size":
        body["decoding"] = {"kind": "beam", "size": value}
    else:
        body["decoding"] = {"kind": "sampling", place: value}
    fine = (place, repr(value)) in {
        ("top_k", "0"),
        ("seed", "0"),
        ("seed", "1000000000"),
        ("temperature", "1.5"),
        ("text", "'3'"),
        ("split", "True"),
        ("model", "None"),
    }
    status = 404 if place == "model" and value == "3" else 200 if fine else 422
    assert ask(client, body).status_code == status


@pytest.mark.parametrize(
    ("body", "number"),
    [
        ({"text": ["a"] * (MAX_TEXTS + 1)}, MAX_TEXTS + 1),
        ({"text": []}, 0),
        ({"text": "a" * (MAX_CHARACTERS + 1)}, f"{MAX_CHARACTERS + 1:,}"),
        ({"text": "a", "prefix": "b" * 201}, 201),
        ({"text": "a", "forbid": ["b" * 51]}, 50),
        ({"text": "a", "require": ["b"] * 9}, 8),
        ({"text": "xy" * 900}, f"at most {MAX_TOKENS}"),
        ({"text": ["a.\n" * 300] * 2}, MAX_SENTENCES + 88),
        ({"text": "a", "n_best": MAX_BEST + 1}, MAX_BEST),
        ({"text": "a", "decoding": {"kind": "beam", "size": MAX_BEAM + 1}}, MAX_BEAM),
    ],
)
def test_one_too_many_is_told_with_the_number(
    client: TestClient, body: dict[str, Any], number: object
) -> None:
    reply = ask(client, body)
    assert reply.status_code == 422
    assert str(number) in reply.json()["error"]["message"]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"text": "a" * (MAX_CHARACTERS + 1)}, "text must have at most 2000 characters, not 2,001"),
        ({"text": ["a"] * (MAX_TEXTS + 1)}, "text must have at most 32 entries, not 33"),
        (
            {"text": ["a", "b" * (MAX_CHARACTERS + 1)]},
            "text.1 must have at most 2000 characters, not 2,001",
        ),
        (
            {"text": "a", "decoding": {"kind": "beam", "size": MAX_BEAM + 1}},
            "decoding.size must be at most 8",
        ),
    ],
)
def test_a_fault_is_told_once_and_by_its_field(
    client: TestClient, body: dict[str, Any], sentence: str
) -> None:
    assert ask(client, body).json()["error"]["message"] == sentence


def test_the_limits_themselves_are_allowed(client: TestClient) -> None:
    assert ask(client, {"text": ["I"] * MAX_TEXTS}).status_code == 200
    assert ask(client, {"text": "I am." + " " * (MAX_CHARACTERS - 5)}).status_code == 200
    best = {"text": "I am.", "n_best": MAX_BEST, "decoding": {"kind": "beam", "size": MAX_BEAM}}
    assert len(ask(client, best).json()["translations"][0]["n_best"]) == MAX_BEST


@pytest.mark.parametrize(
    ("num_phrases", "phrase", "told"),
    [
        (
            8,
            "\U00020000" * 50,
            "the 16 phrases of forbid and require have 3,200 bytes of UTF-8 together, at most 256",
        ),
        (8, "a b " * 12, "the 16 phrases of forbid and require have 768 bytes"),
        (3, "x" * 43, "the 6 phrases of forbid and require have 258 bytes"),
        (1_000, "a" * 30, "forbid must have at most 8 entries, not 1,000"),
    ],
)
def test_many_long_phrases_are_refused_before_rules_are_made(
    client: TestClient, num_phrases: int, phrase: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server is shared: rules of a second for each request would keep everybody waiting."""
    monkeypatch.setattr(phrases, "make_rules", lambda *_: pytest.fail("the rules were made"))
    body = {
        "text": "a",
        "forbid": [phrase] * num_phrases,
        "require": [phrase] * min(8, num_phrases),
    }
    reply = ask(client, {**body, "decoding": {"kind": "beam"}})
    assert reply.status_code == 422
    assert told in reply.json()["error"]["message"]


def test_as_many_phrases_as_are_allowed(client: TestClient) -> None:
    forbid = [f"{letter * 31}." for letter in "abcdefgh"]
    assert sum(map(len, forbid)) == MAX_PHRASE_BYTES
    reply = client.post("/v1/translate", json={"text": "I am.", "forbid": forbid})
    assert reply.status_code == 200


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"text": "a", "n_best": 2}, "too_few_candidates"),
        ({"text": "a", "n_best": 3, "decoding": {"kind": "beam", "size": 2}}, "too_few_candidates"),
        ({"text": "a", "prefix": "z" * 200}, "not_possible"),
        ({"text": "a", "require": ["z"], "forbid": ["z"]}, "not_possible"),
        ({"text": "a", "require": ["z"], "decoding": {"kind": "greedy"}}, "not_possible"),
        ({"text": "a", "prefix": "z y", "forbid": ["y"]}, "not_possible"),
        ({"text": "a", "forbid": [" "]}, "not_possible"),
        ({"text": "a", "forbid": [""]}, "bad_request"),
        ({"text": "a", "unknown": 1}, "bad_request"),
        ({"text": "a", "decoding": {"kind": "psychic"}}, "bad_request"),
        ({"text": "a", "decoding": {}}, "bad_request"),
        ({}, "bad_request"),
    ],
)
def test_wishes_that_cannot_be_granted(client: TestClient, body: dict[str, Any], code: str) -> None:
    reply = ask(client, body)
    assert (reply.status_code, reply.json()["error"]["code"]) == (422, code)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"{", 400),
        (b"[" * 30_000, 400),
        (b'{"text": ' + b"9" * 20_000 + b"}", 400),
        (b"\xff\xfe", 400),
        (b'{"text": "\\ud800"}', 422),
        (b'{"text": "a\\u0000b"}', 200),
        (b"null", 422),
        (b'{"text": NaN}', 422),
        (b"x" * 70_000, 413),
    ],
)
def test_bodies_that_are_no_requests(client: TestClient, body: bytes, status: int) -> None:
    reply = client.post("/v1/translate", content=body, headers={"Content-Type": "application/json"})
    assert reply.status_code == status
    if status != 200:
        assert set(reply.json()["error"]) == {"code", "message", "message_zh"}


MARKUP = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "javascript:alert(1)",
    "';--",
    "{{7*7}}",
    "\u202eabc",
]


@pytest.mark.parametrize("word", MARKUP)
def test_nothing_that_was_sent_comes_back_in_a_refusal(client: TestClient, word: str) -> None:
    """S9, the server's half: replies are JSON, typed so, and errors do not repeat their cause."""
    bodies: list[dict[str, Any]] = [
        {word: 1, "text": "a"},
        {"text": 1, "model": word},
        {"text": "a", "model": word},
    ]
    bodies += [
        {"text": "a", "decoding": {"kind": word}},
        {"text": "a", "decoding": {"kind": "beam", word: 1}},
    ]
    replies = [client.post("/v1/translate", json=body) for body in bodies]
    replies += [
        client.get(f"/{word}"),
        client.post("/translate", json={"q": "a", "source": word, "target": word}),
    ]
    for reply in replies:
        assert 400 <= reply.status_code < 500
        assert word not in reply.text
        assert word not in str(reply.json())
        assert reply.headers["content-type"] == "application/json"
        assert reply.headers["x-content-type-options"] == "nosniff"
