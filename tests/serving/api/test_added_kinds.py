"""A server where installed packages add words: those that work are served, the others refused by a
reply that names the package, and none is offered that cannot be used.
"""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.settings.test_added_kinds import MODULE, install

SCRIPT = """
import json, sys
from fastapi.testclient import TestClient
from headwise.serving.app import create_app
from headwise.serving.http.server_settings import ServerSettings

with TestClient(create_app({}, ServerSettings()), base_url="http://127.0.0.1") as client:
    for path, body in json.load(sys.stdin):
        reply = client.get(path) if body is None else client.post(path, json=body)
        print(json.dumps([reply.status_code, reply.json()]))
"""
ENTRIES = """[headwise.scores]
half = someone:Half
absent = nowhere:Score
other = someone:Half
[headwise.attention]
absentkernel = nowhere:Kernel
[headwise.norms]
double = someone:Double
"""
ATTEND = {"example": "waist"}
ASKED: dict[str, tuple[str, dict[str, Any] | None]] = {
    "half": ("/v1/attend", {**ATTEND, "score": "half"}),
    "absent": ("/v1/attend", {**ATTEND, "score": "absent"}),
    "other": ("/v1/attend", {**ATTEND, "score": "other"}),
    "unknown": ("/v1/attend", {**ATTEND, "score": "unknown"}),
    "kernel": ("/v1/patterns", {"kind": "absentkernel", "length": 8}),
    "typo": ("/v1/patterns", {"kind": "ful", "length": 8}),
    "kinds": ("/v1/kinds", None),
    "schema": ("/openapi.json", None),
}


@pytest.fixture(name="replies", scope="module")
def _replies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, Any]]:
    place = tmp_path_factory.mktemp("packages")
    (place / "someone.py").write_text(MODULE)
    install(place, "someones-words", ENTRIES)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        input=json.dumps(list(ASKED.values())),
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
        env={
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join([str(place), *filter(None, sys.path)]),
        },
    )
    found = map(json.loads, done.stdout.splitlines())
    return {name: (status, reply) for name, (status, reply) in zip(ASKED, found, strict=True)}


def test_a_word_that_works_is_answered(replies: dict[str, tuple[int, Any]]) -> None:
    status, reply = replies["half"]
    assert (status, reply["attention"]["score"]) == (200, {"kind": "half"})


@pytest.mark.parametrize("name", ["absent", "other", "kernel"])
def test_a_word_that_cannot_be_used_names_its_package(
    replies: dict[str, tuple[int, Any]], name: str
) -> None:
    status, reply = replies[name]
    error = reply["error"]
    assert (status, error["code"]) == (422, "not_possible")
    assert (
        "package someones-words, which cannot be used; choose 'full'" in error["message"]
        or "package someones-words, which cannot be used; choose 'dot'" in error["message"]
    )
    assert "someones-words" in error["message_zh"]
    assert " or " not in error["message_zh"]
    assert "nowhere" not in error["message"], "a reason may hold paths of the server"


@pytest.mark.parametrize(("name", "word"), [("unknown", "dot"), ("typo", "full")])
def test_no_word_is_offered_that_cannot_be_used(
    replies: dict[str, tuple[int, Any]], name: str, word: str
) -> None:
    status, reply = replies[name]
    error = reply["error"]
    assert (status, error["code"]) == (422, "bad_request")
    for message, joined in ((error["message"], " or "), (error["message_zh"], " 或 ")):
        assert repr(word) in message
        assert joined in message
        assert "absent" not in message
        assert "'other'" not in message
    assert " or " not in error["message_zh"]


def test_schema_and_list_have_what_can_be_used(replies: dict[str, tuple[int, Any]]) -> None:
    status, reply = replies["kinds"]
    assert status == 200
    assert "half" in {one["kind"] for one in reply["scores"]}
    assert "double" not in {one["kind"] for one in reply["norms"]}, "it declares no title"
    status, schema = replies["schema"]
    bodies = schema["components"]["schemas"]
    (listed,) = (
        one["enum"] for one in bodies["AttendBody"]["properties"]["score"]["anyOf"] if "enum" in one
    )
    assert "half" in listed
    assert not {"absent", "other"} & set(listed)
    assert "absentkernel" not in bodies["PatternsBody"]["properties"]["kind"]["enum"]
