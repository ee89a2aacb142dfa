"""The addresses, one by one."""

import time

from fastapi.testclient import TestClient

from headwise.serving.loaded import LoadedModel


def wait_until_ready(client: TestClient) -> None:
    until = time.monotonic() + 30
    while client.get("/readyz").status_code != 200:
        assert time.monotonic() < until
        time.sleep(0.01)


def test_it_says_that_it_lives_and_when_it_is_ready(client: TestClient) -> None:
    assert client.get("/healthz").json() == {"status": "alive"}
    wait_until_ready(client)
    assert client.get("/readyz").json() == {"status": "ready"}


def test_models_are_listed_with_their_languages(client: TestClient) -> None:
    listed = client.get("/v1/models").json()["models"]
    assert listed == [{"name": "tiny", "kind": "translator", "source": "en", "target": "de"}]


def test_a_translation_is_that_of_the_library(client: TestClient, models: dict[str, LoadedModel]) -> None:
    texts = ["The dog is old.", "I am here."]
    reply = client.post("/v1/translate", json={"text": texts, "decoding": {"kind": "beam", "size": 3}})
    assert reply.status_code == 200, reply.text
    translator = models["tiny"].value
    expected = [one.text for one in translator(texts, translator.settings(["kind=beam", "size=3"]))]
    assert [one["text"] for one in reply.json()["translations"]] == expected


def test_white_space_comes_back_as_it_was(client: TestClient) -> None:
    reply = client.post("/v1/translate", json={"text": ["", "  \n\n "]})
    assert [one["text"] for one in reply.json()["translations"]] == ["", "  \n\n "]
