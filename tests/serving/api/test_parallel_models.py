"""Parallel translators behind the server: every route answers or says in a sentence why not."""

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from headwise.serving.app import create_app
from headwise.serving.http.server_settings import ServerSettings
from headwise.serving.work.loaded_models import load_models
from tests.tasks.tiny import train_tiny

STRUCTURES = {
    "classifier": [],
    "begins": ["model.length={kind: many_begin, positions: 64}", "model.input.kind=copy"],
    "ctc": ["model.length.kind=upsampled", "model.structure.kind=ctc"],
    "graph": [
        "model.length={kind: upsampled, factor: 4}",
        "model.structure={kind: graph, link_heads: 2}",
    ],
}
TEXT = "The dog is old."


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    directory = tmp_path_factory.mktemp("parallel")
    for name, words in STRUCTURES.items():
        train_tiny(
            directory / name,
            [
                "model.kind=parallel",
                "decoding=null",
                "decoding.kind=one_pass",
                "data.test=null",
                "training.steps=2",
                "training.objective={kind: glancing, label_smoothing: 0}",
                *words,
            ],
        )
    models = load_models(
        [f"{name}={directory / name}" for name in STRUCTURES], device="cpu", precision="auto"
    )
    with TestClient(create_app(models, ServerSettings()), base_url="http://127.0.0.1") as found:
        yield found


def ask(client: TestClient, route: str, **body: Any) -> tuple[int, dict[str, Any]]:
    reply = client.post(f"/v1/{route}", json={"text": TEXT, **body})
    found: dict[str, Any] = reply.json()
    return reply.status_code, found


@pytest.mark.parametrize("name", STRUCTURES)
def test_it_translates_and_is_traced_with_its_own_decoding(client: TestClient, name: str) -> None:
    status, found = ask(client, "translate", model=name)
    assert status == 200
    status, trace = ask(client, "trace", model=name, top=2, maps={"kinds": ["cross"]})
    assert status == 200
    assert trace["decoding"] == "one_pass"
    assert trace["target_text"] == found["translations"][0]["text"]
    assert trace["tree"] is None


@pytest.mark.parametrize("name", STRUCTURES)
def test_words_can_be_left_out(client: TestClient, name: str) -> None:
    status, found = ask(client, "occlude", model=name)
    assert status == 200
    assert len(found["totals"]) == len(found["words"])


@pytest.mark.parametrize("name", STRUCTURES)
def test_a_search_over_steps_is_refused(client: TestClient, name: str) -> None:
    status, found = ask(client, "translate", model=name, decoding={"kind": "beam"})
    assert status == 422
    assert "use decoding.kind=one_pass" in found["error"]["message"]


@pytest.mark.parametrize(("name", "kind"), [("ctc", "ctc_beam"), ("graph", "graph_beam")])
def test_several_results_need_a_search_that_finds_them(
    client: TestClient, name: str, kind: str
) -> None:
    status, found = ask(client, "translate", model=name, n_best=3)
    assert status == 422
    assert kind in found["error"]["message"]
    status, found = ask(client, "translate", model=name, n_best=3, decoding={"kind": kind})
    assert status == 200
    texts = [one["text"] for one in found["translations"][0]["n_best"]]
    assert 1 <= len(texts) <= 3


def test_rows_of_a_decoder_with_more_positions_than_pieces_are_refused(client: TestClient) -> None:
    status, found = ask(client, "row", model="ctc", kind="cross")
    assert status == 422
    assert "2 positions for each source token" in found["error"]["message"]
    status, _ = ask(client, "row", model="ctc", kind="encoder_self")
    assert status == 200
    status, row = ask(client, "row", model="classifier", kind="decoder_self")
    assert status == 200
    assert row["key_pieces"] == row["query_pieces"]
