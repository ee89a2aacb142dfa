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
    "fertility": ["model.length.kind=fertility"],
}
RECORDS = {
    "classifier": "lengths",
    "begins": None,
    "ctc": "alignment",
    "graph": "graph",
    "fertility": "fertilities",
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
def test_what_was_considered_is_told_if_asked_for(client: TestClient, name: str) -> None:
    _, found = ask(client, "trace", model=name)
    assert found["record"] is None
    _, found = ask(client, "trace", model=name, passes=True)
    tokens = found["n_best"][0]["tokens"]
    assert [one["token"] for one in found["passes"][-1]["after"]] == tokens
    record = found["record"]
    assert (record and record["kind"]) == RECORDS[name]
    if name == "ctc":
        assert len(record["positions"]) == record["num_positions"]
        written: dict[int, int] = {}
        for one in record["positions"]:
            if one["written"] is not None:
                written[one["written"]] = one["chosen"]["token"]
            else:
                assert one["chosen"]["piece"] == ""
        assert [written[number] for number in range(len(written))][: len(tokens)] == tokens
    elif name == "graph":
        offered = [record["vertices"][vertex]["best"][0]["token"] for vertex in record["path"]]
        assert offered[1:-1][: len(tokens)] == tokens
    elif name == "fertility":
        assert len(record["fertilities"]) == len(found["source"]["pieces"])
        assert sum(one["count"] for one in record["fertilities"]) == len(tokens) + 1
    elif name == "classifier":
        assert record["lengths"][record["chosen"]]["length"] == len(tokens) + 1


@pytest.mark.parametrize(
    ("name", "kind"), [("ctc", "ctc_beam"), ("graph", "lookahead"), ("classifier", "mask_predict")]
)
def test_another_decoding_can_be_traced(client: TestClient, name: str, kind: str) -> None:
    _, expected = ask(client, "translate", model=name, decoding={"kind": kind})
    status, found = ask(client, "trace", model=name, passes=True, decoding={"kind": kind})
    assert status == 200
    assert found["decoding"] == kind
    assert found["target_text"] == expected["translations"][0]["text"]
    assert found["record"]["kind"] == RECORDS[name]
    status, found = ask(client, "trace", model=name, decoding={"kind": "beam"})
    assert status == 422
    assert "use decoding.kind=one_pass" in found["error"]["message"]


def test_a_long_sentence_is_told_within_bounds(client: TestClient) -> None:
    text = " ".join(["The dog is old."] * 50)
    for name, places in (("ctc", "positions"), ("graph", "vertices")):
        status, found = ask(client, "trace", model=name, text=text, passes=True)
        assert status == 200
        record = found["record"]
        assert len(record[places]) == min(1024, record[f"num_{places}"])
        assert all(len(one["best"]) <= 5 for one in record[places])


def test_models_say_how_they_can_generate(client: TestClient) -> None:
    found = {one["name"]: one for one in client.get("/v1/models").json()["models"]}
    forms = {name: one["output_form"] for name, one in found.items()}
    assert forms == {
        "classifier": "positions",
        "begins": "cut_positions",
        "ctc": "alignment",
        "graph": "graph",
        "fertility": "copies",
    }
    for name, one in found.items():
        assert one["decodings"][0]["kind"] == "one_pass", "its own first"
        for decoding in one["decodings"]:
            assert decoding["records"]
            status, _ = ask(client, "trace", model=name, decoding={"kind": decoding["kind"]})
            assert status == 200
    passes = {option["name"]: option for option in found["classifier"]["decodings"][1]["options"]}
    assert passes["passes"] == {
        "name": "passes",
        "value": 10,
        "low": 1,
        "high": 50,
        "is_whole": True,
    }


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
