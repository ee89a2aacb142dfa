"""Attention, positions and patterns over HTTP give the library's numbers; what is too large is
refused with a message.
"""

import json
import math
import time

import pytest
from fastapi.testclient import TestClient

from headwise.attention.choices import BUILT_IN
from headwise.cli.main import main
from headwise.explorer.data.attention_patterns import show_pattern, shown_kinds
from headwise.explorer.data.attention_row import calculate_row
from headwise.serving.api.attend import answer_row
from headwise.serving.schemas.attention import RowBody
from headwise.serving.work.jobs import JobAbandoned
from headwise.serving.work.loaded_models import LoadedModel

TEXT = "The dog is old."


def ask(client: TestClient, path: str, body: dict[str, object]) -> dict[str, object]:
    reply = client.post(path, json=body)
    assert reply.status_code == 200, reply.text
    return reply.json()


@pytest.mark.parametrize("score", ["gaussian", "dot", "additive", "cosine", "concat"])
def test_attend_is_what_the_command_gives(
    client: TestClient, capsys: pytest.CaptureFixture[str], score: str
) -> None:
    assert main(["attend", "--example", "two-column", "--score", score, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    found = ask(client, "/v1/attend", {"example": "two-column", "score": score})
    assert {name: found[name] for name in printed} == printed


def test_the_waist_example_with_its_curve(client: TestClient) -> None:
    found = ask(client, "/v1/attend", {"example": "waist", "queries": [[57.0]], "curve": 11})
    small = math.exp(-17.5)
    assert found["outputs"][0][0] == pytest.approx((40 * small + 43 + 48) / (2 + small))
    curve = found["curve"]
    assert len(curve["queries"]) == len(curve["outputs"]) == 11
    again = ask(client, "/v1/attend", {"example": "waist", "queries": [[curve["queries"][7]]]})
    assert again["outputs"][0][0] == pytest.approx(curve["outputs"][7])
    wider = ask(client, "/v1/attend", {"example": "waist", "width": 100.0})
    assert wider["outputs"][0][0] == pytest.approx((40 + 43 + 48) / 3, abs=0.01)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "keys are missing"),
        ({"keys": [[1.0]], "values": [[1.0]]}, "queries are missing"),
        ({"example": "waist", "keys": [[1.0, 2.0], [3.0]]}, "the rows of keys have 1 to 2 numbers"),
        ({"example": "waist", "queries": [[1e300]]}, "queries.0.0"),
        ({"example": "waist", "queries": [[1.0]] * 65}, "not 65"),
        ({"example": "waist", "curve": 402}, "curve"),
        ({"example": "waist", "parameters": {"W": [[1.0]]}}, "has no parameter"),
        ({"example": "waist", "unknown": 1}, "not known here"),
    ],
)
def test_numbers_that_cannot_be_worked_out(
    client: TestClient, body: dict[str, object], message: str
) -> None:
    reply = client.post("/v1/attend", json=body)
    assert reply.status_code == 422
    assert message in reply.json()["error"]["message"]
    assert reply.json()["error"]["message_zh"] != reply.json()["error"]["message"]


@pytest.mark.parametrize("rows", [[[1.0]], [["password"]], "password", None, {"password": 1}])
def test_names_that_were_sent_do_not_come_back(client: TestClient, rows: object) -> None:
    reply = client.post(
        "/v1/attend", json={"example": "waist", "parameters": {"password": rows}, "password": rows}
    )
    assert reply.status_code == 422
    assert "password" not in reply.text


def test_parameters_of_a_learned_score_are_taken(client: TestClient) -> None:
    table = [[0.5, 0.0], [0.0, 2.0]]
    found = ask(
        client,
        "/v1/attend",
        {"example": "two-column", "score": "general", "parameters": {"W": table}},
    )
    assert found["parameters"]["W"] == table


def test_a_row_is_the_models_own(client: TestClient, models: dict[str, LoadedModel]) -> None:
    found = ask(
        client, "/v1/row", {"text": TEXT, "kind": "decoder_self", "layer": 0, "head": 1, "query": 1}
    )
    own = calculate_row(
        models["tiny"].value, TEXT, kind="decoder_self", layer=0, head=1, query=1
    ).as_dict()
    assert {name: found[name] for name in own} == own
    assert (found["model"], found["num_heads"] > 1, found["visible"][2]) == ("tiny", True, False)
    assert client.post("/v1/row", json={"text": TEXT, "head": 99}).status_code == 422
    assert client.post("/v1/row", json={"text": TEXT, "model": "nobody"}).status_code == 404


def test_a_row_of_too_long_a_sentence_is_refused_at_once(client: TestClient) -> None:
    start = time.perf_counter()
    reply = client.post("/v1/row", json={"text": "a" * 2000})
    assert time.perf_counter() - start < 0.5, "the model was asked first: that took seconds"
    assert reply.status_code == 422
    assert "choose 1 to" in reply.json()["error"]["message"]


def test_a_row_that_nobody_waits_for_is_not_searched(models: dict[str, LoadedModel]) -> None:
    asked: list[None] = []

    def is_over() -> bool:
        asked.append(None)
        return len(asked) > 3

    with pytest.raises(JobAbandoned):
        answer_row("tiny", models["tiny"].value, RowBody(text=TEXT), is_over=is_over)
    assert len(asked) == 4


@pytest.mark.parametrize(("num_pieces", "status"), [(480, 200), (512, 200), (513, 422)])
def test_what_may_be_translated_may_be_opened_up(
    client: TestClient, models: dict[str, LoadedModel], num_pieces: int, status: int
) -> None:
    """The model's own translation is cut where the row ends, and its mark of the beginning is not
    counted."""
    encode = models["tiny"].value.tokenizers.source.encode
    text = "a" * next(size for size in range(1, 2_000) if len(encode("a" * size)) == num_pieces)
    for body in ({"kind": "encoder_self", "query": num_pieces}, {"kind": "cross"}):
        reply = client.post("/v1/row", json={"text": text, **body})
        assert reply.status_code == status, reply.text[:300]
        if status == 200:
            assert len(reply.json()["key_pieces"]) == num_pieces + 1


KINDS = ("sinusoidal", "rotary", "alibi", "t5", "relative", "transformer_xl", "continuous")


@pytest.mark.parametrize("kind", KINDS)
def test_every_encoding_is_shown(client: TestClient, kind: str) -> None:
    found = ask(
        client, "/v1/positions", {"position": {"kind": kind}, "length": 11, "dim": 12, "heads": 3}
    )
    assert found["kind"] == kind
    assert len(found["curves"][0]["values"]) == 21


def test_a_models_positions_are_shown(client: TestClient) -> None:
    found = ask(client, "/v1/positions", {"model": "tiny", "length": 7})
    assert (found["kind"], found["origin"], len(found["table"])) == ("sinusoidal", "formula", 7)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"position": {"kind": "learned"}}, "name a model that has them"),
        ({"dim": 10, "heads": 3}, "heads=3 does not divide dim=10"),
        ({"dim": 6, "heads": 2, "position": {"kind": "rotary"}}, "pairs of dimensions"),
        ({"position": {"kind": "relative", "values": 0}}, "position.relative.values"),
        ({"length": 257}, "length"),
        ({"dim": 258}, "dim"),
    ],
)
def test_positions_that_cannot_be_shown(
    client: TestClient, body: dict[str, object], message: str
) -> None:
    reply = client.post("/v1/positions", json=body)
    assert reply.status_code == 422
    assert message in reply.json()["error"]["message"]


@pytest.mark.parametrize("kind", sorted(shown_kinds()))
def test_patterns_are_the_kernels_own(client: TestClient, kind: str) -> None:
    found = ask(client, "/v1/patterns", {"kind": kind, "length": 16})
    assert found["weights"] == show_pattern(shown_kinds()[kind].example(), length=16).weights


def test_one_number_changes_a_pattern(client: TestClient) -> None:
    for kind, rank in (
        ("linformer", 3),
        ("window", 3),
        ("longformer", 3),
        ("bigbird", 3),
        ("reformer", 3),
        ("performer", 3),
    ):
        small = ask(client, "/v1/patterns", {"kind": kind, "length": 24, "size": rank})
        if kind in ("linformer", "performer"):
            assert small["rank"] <= rank
        else:
            assert (
                small["num_pairs"]
                <= ask(client, "/v1/patterns", {"kind": kind, "length": 24, "size": 7})["num_pairs"]
            )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"kind": "full", "size": 3}, "has no size to choose"),
        ({"kind": "bigbird", "causal": True}, "bigbird"),
        ({"kind": "window", "length": 129}, "length"),
        ({"kind": "fused"}, "kind"),
    ],
)
def test_patterns_that_cannot_be_shown(
    client: TestClient, body: dict[str, object], message: str
) -> None:
    reply = client.post("/v1/patterns", json=body)
    assert reply.status_code == 422
    assert message in reply.json()["error"]["message"]


def test_costs_are_ours_without_runs(client: TestClient) -> None:
    (ours,) = client.get("/v1/costs").json()["costs"]
    assert (ours["name"], ours["shipped"], ours["machine"]["gpu"]) == ("h200", True, "NVIDIA H200")


def test_the_server_says_which_kinds_there_are(client: TestClient) -> None:
    found = client.get("/v1/kinds").json()
    kernels = {one["kind"]: one for one in found["attention"]}
    assert list(kernels) == [kind.word() for kind in BUILT_IN]
    assert kernels["bigbird"]["roles"] == ["encoder"]
    assert kernels["window"]["size"] == {
        "label": {"en": "tokens to either side", "zh": "两侧的词元数"},
        "value": 4,
    }
    assert not kernels["fused"]["has_own_weights"]
    assert [one["kind"] for one in found["positions"] if one["needs_model"]] == ["learned"]
    assert {one["kind"]: one["number"] for one in found["scores"]}["gaussian"] == "width"
    assert found["examples"] == {"waist": "gaussian", "two-column": "dot"}
    assert {one["kind"] for one in found["norms"]} >= {"layer", "rms"}
