"""Language models, word vectors and runs over HTTP."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from headwise.cli.main import main
from headwise.models.vector_space import VectorSpace
from headwise.randomness import numpy_generator
from headwise.serving.app import create_app
from headwise.serving.http.server_settings import ServerSettings
from headwise.serving.work.loaded_models import LoadedModel
from headwise.tasks.language.language_model import LanguageModel
from tests.explorer.data.test_run_logs import write_run

ARPA = """\\data\\
ngram 1=5
ngram 2=3

\\1-grams:
-1.0\t<unk>
-99\t<s>\t-0.3
-0.7\t</s>
-0.5\tdogs\t-0.2
-0.6\tbark\t-0.1

\\2-grams:
-0.2\t<s> dogs
-0.3\tdogs bark
-0.1\tbark </s>

\\end\\
"""


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("served")
    (path / "tiny.arpa").write_text(ARPA, encoding="utf-8")
    write_run(path / "runs" / "first", 1, 2, 3, model=True)
    return path


@pytest.fixture(scope="module")
def speaking(directory: Path) -> Iterator[TestClient]:
    space = VectorSpace(
        [f"word{number}" for number in range(23)],
        numpy_generator("served vectors").normal(size=(23, 7)),
    )
    models = {
        "words": LoadedModel(
            "words", "language_model", LanguageModel.load(directory / "tiny.arpa")
        ),
        "vectors": LoadedModel("vectors", "word_vectors", space),
    }
    with TestClient(
        create_app(models, ServerSettings(runs=directory / "runs")), base_url="http://127.0.0.1"
    ) as found:
        yield found


def test_scores_are_the_models_own(speaking: TestClient, directory: Path) -> None:
    texts = ["dogs bark", "bark dogs", "cats bark"]
    found = speaking.post("/v1/score", json={"texts": texts}).json()
    own = LanguageModel.load(directory / "tiny.arpa").score(texts)
    assert found["sentences"] == [one.as_dict() for one in own]
    assert (found["model"], found["best"], found["no_best_because"]) == ("words", 0, None)


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        (["dogs bark", "dogs bark"], "tied"),
        (["qwer asdf", "yxcv"], "unknown_words"),
        (["dogs bark", "qwer asdf dogs"], "unknown_words"),
    ],
)
def test_no_sentence_is_crowned_where_nothing_was_compared(
    speaking: TestClient, texts: list[str], reason: str
) -> None:
    found = speaking.post("/v1/score", json={"texts": texts}).json()
    assert (found["best"], found["no_best_because"]) == (None, reason)


def test_one_text_or_several_under_either_name(speaking: TestClient, client: TestClient) -> None:
    for address, asking in (("/v1/score", speaking), ("/v1/translate", client)):
        one = asking.post(address, json={"text": "dogs bark"})
        assert one.status_code == 200
        assert asking.post(address, json={"texts": ["dogs bark"]}).json() == one.json()
        two = asking.post(address, json={"texts": ["dogs bark", "bark"]}).json()
        assert asking.post(address, json={"text": ["dogs bark", "bark"]}).json() == two
        for body in ({}, {"text": "dogs", "texts": ["dogs"]}, {"model": "x"}):
            error = asking.post(address, json=body).json()["error"]
            assert (error["code"], error["message"]) == (
                "bad_request",
                "the body: give exactly one of text and texts",
            )
            assert "必须给出一个" in error["message_zh"]
        assert asking.post(address, json={"text": None, "texts": ["dogs"]}).status_code == 422


def test_predictions_are_the_models_own(speaking: TestClient, directory: Path) -> None:
    found = speaking.post("/v1/predict", json={"text": "dogs ____", "count": 3}).json()
    own = LanguageModel.load(directory / "tiny.arpa").predict("dogs", count=3)
    assert [one["text"] for one in found["predictions"]] == [one.text for one in own]
    assert found["predictions"][0]["text"] == "bark"
    refused = speaking.post("/v1/predict", json={"text": "____ my password"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "gap_not_last")
    assert "the gap stands before" in refused.json()["error"]["message"]
    assert "password" not in refused.text


def test_vectors_are_the_spaces_own(speaking: TestClient) -> None:
    found = speaking.post(
        "/v1/vectors", json={"queries": ["word3", "word1 - word2"], "count": 4}
    ).json()
    assert [len(one["nearest"]) for one in found["queries"]] == [4, 4]
    assert (found["vocabulary"], found["dim"], found["text_words"]) == (23, 7, None)
    assert not any(one["too_little_text"] for one in found["queries"]), (
        "nothing is said where nothing is known"
    )
    chosen = speaking.post("/v1/vectors", json={}).json()
    assert len(chosen["queries"]) == 6, "without a question the server chooses words that it knows"
    refused = speaking.post("/v1/vectors", json={"queries": ["wird3"]})
    assert refused.status_code == 422
    assert "did you mean" in refused.json()["error"]["message"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/score", {"texts": []}),
        ("/v1/score", {"texts": ["x"] * 9}),
        ("/v1/score", {"texts": ["x" * 2001]}),
        ("/v1/score", {"texts": [""]}),
        ("/v1/predict", {"text": "x", "count": 51}),
        ("/v1/predict", {"text": "x", "length": 5}),
        ("/v1/vectors", {"queries": ["x" * 101]}),
        ("/v1/vectors", {"queries": ["word1"], "count": 31}),
        ("/v1/vectors", {"queries": ["word1"], "model": "words"}),
    ],
)
def test_what_is_too_much_is_refused(
    speaking: TestClient, path: str, body: dict[str, object]
) -> None:
    reply = speaking.post(path, json=body)
    assert reply.status_code == 422
    assert reply.json()["error"]["message"]


def test_runs_are_listed_and_read_as_they_grow(speaking: TestClient, directory: Path) -> None:
    assert speaking.get("/v1/models").json()["runs"] is True
    (run,) = speaking.get("/v1/runs").json()["runs"]
    assert (run["name"], run["finished"], run["scores"]["test.bleu"]) == ("first", True, 12.5)
    part = speaking.get("/v1/runs/log", params={"name": "first"}).json()
    assert [line["step"] for line in part["lines"]] == [1, 2, 3]
    with (directory / "runs" / "first" / "log.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({"kind": "valid", "step": 4, "loss": 1.5}) + "\n")
    after = speaking.get("/v1/runs/log", params={"name": "first", "after": part["offset"]}).json()
    assert after["lines"] == [{"kind": "valid", "step": 4, "loss": 1.5}]


@pytest.mark.parametrize("name", ["../served", "/etc", "..", "%2e%2e", "a" * 280, "a/" * 140])
def test_nothing_outside_the_directory_is_read(speaking: TestClient, name: str) -> None:
    reply = speaking.get("/v1/runs/log", params={"name": name})
    assert reply.status_code == 404
    assert reply.json()["error"]["code"] == "no_run"
    assert name not in reply.text
    assert "there is no run" in reply.json()["error"]["message"]


def test_a_server_without_runs_says_so(client: TestClient) -> None:
    for path in ("/v1/runs", "/v1/runs/log?name=x"):
        assert client.get(path).status_code == 404
        assert client.get(path).json()["error"]["code"] == "no_runs"
    assert client.get("/v1/models").json()["runs"] is False


def test_costs_of_a_user_stand_beside_ours(speaking: TestClient, directory: Path) -> None:
    (directory / "runs" / "own").mkdir(exist_ok=True)
    points = [{"kernel": "window", "length": 64, "both_seconds": 0.01}]
    (directory / "runs" / "own" / "attention.json").write_text(
        json.dumps({"points": points}), encoding="utf-8"
    )
    assert [one["name"] for one in speaking.get("/v1/costs").json()["costs"]] == ["h200", "own"]


def test_a_directory_that_is_not_there_is_told_before_models_are_loaded(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["serve", "nothing", "--runs", "nowhere"]) == 2
    assert "--runs 'nowhere' is no directory" in capsys.readouterr().err
