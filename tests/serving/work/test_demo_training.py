"""Training the demo model from the page: started, watched, loaded; and messages of failures."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from headwise.serving.app import create_app
from headwise.serving.http.server_settings import ServerSettings
from headwise.serving.work.demo_training import DemoTraining
from tests.explorer.conftest import BUNDLE

PRETEND = """
import json, shutil, sys, time
from pathlib import Path
run, bundle = Path(sys.argv[1]), sys.argv[2]
run.mkdir(parents=True)
(run / "recipe.yaml").write_text("training: {steps: 40}\\n")
with (run / "log.jsonl").open("w") as log:
    log.write(json.dumps({"kind": "train", "step": 10, "loss": 2.5}) + "\\n")
    scores = {"bleu": 12.34, "chrf": 30.5}
    log.write(json.dumps({"kind": "valid", "step": 10, **scores}) + "\\n" + '{"kind": "tr')
    log.flush()
while not (run / "go").exists():
    time.sleep(0.01)
with (run / "log.jsonl").open("a") as log:
    log.write('ain", "step": 40, "loss": 1.5}\\n')
while not (run / "measured").exists():
    time.sleep(0.01)
shutil.copytree(bundle, run / "coming")
(run / "coming").rename(run / "model")
"""


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    def command(training: DemoTraining) -> list[str]:
        return [sys.executable, "-c", PRETEND, str(training.run), str(BUNDLE)]

    monkeypatch.setattr(DemoTraining, "command", command)
    settings = ServerSettings(demo=tmp_path / "runs" / "demo")
    with TestClient(create_app({}, settings), base_url="http://127.0.0.1") as found:
        yield found


def wait_for(client: TestClient, state: str) -> Any:
    until = time.monotonic() + 60
    while True:
        reply = client.get("/v1/demo").json()
        if reply["state"] == state and (state != "training" or reply["step"]):
            return reply
        assert time.monotonic() < until, reply
        time.sleep(0.02)


def test_it_is_begun_watched_and_loaded(client: TestClient, tmp_path: Path) -> None:
    assert client.get("/v1/demo").json()["state"] == "absent"
    assert client.get("/v1/models").json()["models"] == []
    assert client.post("/v1/demo", json={"pair": "en-zh"}).json()["state"] == "training"
    reply = wait_for(client, "training")
    assert (reply["step"], reply["steps"], reply["loss"], reply["model"]) == (10, 40, 2.5, None)
    assert reply["bleu"] == 12.34
    # One at a time.
    assert client.post("/v1/demo", json={"pair": "de-en"}).json()["pair"] == "en-zh"
    (tmp_path / "runs" / "demo-en-zh" / "go").touch()
    (tmp_path / "runs" / "demo-en-zh" / "measured").touch()
    assert wait_for(client, "ready")["model"] == "demo-en-zh"
    assert [model["name"] for model in client.get("/v1/models").json()["models"]] == ["demo-en-zh"]
    assert client.post("/v1/trace", json={"text": "The dog is old."}).status_code == 200


def test_a_failure_is_told_in_its_own_words(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        DemoTraining,
        "command",
        lambda _: [sys.executable, "-c", "import sys; sys.exit('headwise: error: no room')"],
    )
    client.post("/v1/demo", json={})
    assert wait_for(client, "failed")["message"] == "headwise: error: no room"


def test_the_command_is_the_one_a_person_would_give(tmp_path: Path) -> None:
    training = DemoTraining(tmp_path / "demo")
    training.pair = "zh-en"
    assert training.command()[5:] == [
        "headwise",
        "train",
        "pocket",
        "--run",
        str(tmp_path / "demo-zh-en"),
        "data.source=zh",
        "data.target=en",
    ]
    (tmp_path / "demo-zh-en").mkdir()
    (tmp_path / "demo-zh-en" / "recipe.yaml").touch()
    assert "--resume" in training.command()


def test_only_a_server_for_exploring_trains(client: TestClient) -> None:
    with TestClient(create_app({}, ServerSettings()), base_url="http://127.0.0.1") as other:
        assert other.get("/v1/demo").json()["error"]["code"] == "no_training"
        assert other.post("/v1/demo", json={}).status_code == 404
