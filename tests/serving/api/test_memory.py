"""A server with a memory: translations and traces are those of `translate --memory`, requests
choose within bounds, and what cannot be is refused, another model's store before the server
listens."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from headwise.errors import CheckpointError, SettingsError, UsageError
from headwise.pocket import sentences
from headwise.serving.app import create_app
from headwise.serving.http.server_settings import ServerSettings
from headwise.serving.schemas.limits import MAX_EXAMPLES
from headwise.serving.work.loaded_models import LoadedModel, load_models
from headwise.serving.work.memories import attach_memories
from headwise.tasks.memory_building import build
from headwise.tasks.translation.translator import Translator

CORPUS = "{kind: pocket, split: train, count: 40}"
TEXTS = [one.text("en") for one in sentences("train", 8)]


@pytest.fixture(name="store", scope="module")
def _store(tiny_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("stores") / "pocket"
    build(tiny_run, store, [CORPUS], key_type="float32")
    return store


@pytest.fixture(name="served", scope="module")
def _served(tiny_run: Path, store: Path, models: dict[str, LoadedModel]) -> dict[str, LoadedModel]:
    """A model without a memory, and one with."""
    loaded = load_models([f"mine={tiny_run}"], device="cpu", precision="fp32")
    return attach_memories({**models, **loaded}, [str(store)])


@pytest.fixture(name="remembering", scope="module")
def _remembering(served: dict[str, LoadedModel]) -> Iterator[TestClient]:
    with TestClient(create_app(served, ServerSettings()), base_url="http://127.0.0.1") as client:
        yield client


def ask(client: TestClient, **body: Any) -> Any:
    reply = client.post("/v1/memory", json=body)
    assert reply.status_code == 200, reply.text
    return reply.json()


def translate(client: TestClient, **body: Any) -> list[str]:
    reply = client.post("/v1/translate", json={"model": "mine", "split": False, **body})
    assert reply.status_code == 200, reply.text
    return [one["text"] for one in reply.json()["translations"]]


def own_texts(translator: Translator, *changes: str) -> list[str]:
    settings = translator.settings(["max_length={factor: 0.5, extra: 3}", *changes])
    return [one.text for one in translator(TEXTS, settings)]


def test_translations_ask_the_memory(remembering: TestClient, tiny_run: Path, store: Path) -> None:
    translator = Translator.load(tiny_run, device="cpu", precision="fp32")
    given = f"memory.store={store}"
    alone, mixed = own_texts(translator), own_texts(translator, given)
    strong = own_texts(translator, given, "memory.weight=0.9")
    assert alone != strong
    assert translate(remembering, texts=TEXTS) == mixed
    assert translate(remembering, texts=TEXTS, memory={"weight": 0.9}) == strong
    assert translate(remembering, texts=TEXTS, memory={"off": True}) == alone
    assert translate(remembering, texts=TEXTS, memory={"weight": 0}) == alone
    libre = {"q": TEXTS[0], "source": "en", "target": "de", "format": "text"}
    assert remembering.post("/translate", json=libre).status_code == 200


def test_the_trace_has_the_numbers_of_the_command(
    remembering: TestClient, tiny_run: Path, store: Path
) -> None:
    translator = Translator.load(tiny_run, device="cpu", precision="fp32")
    settings = translator.settings([f"memory.store={store}", "memory.weight=0.7"])
    given = [translator._prepare(text, 1) for text in TEXTS]
    for text, own in zip(
        TEXTS, translator.stream_sentences(given, settings, votes=True), strict=True
    ):
        reply = ask(remembering, text=text, weight=0.7, examples=8)
        assert own.votes is not None
        assert (reply["model"], reply["target_text"]) == ("mine", own.text)
        assert reply["text_alone"] == translator([text])[0].text
        assert len(reply["places"]) == len(own.votes) == len(reply["target"]["pieces"])
        for place, votes in zip(reply["places"], own.votes, strict=True):
            told = votes.as_dict()
            for name in ("weight", "model_probability", "memory_probability", "probability"):
                assert place[name] == pytest.approx(told[name], abs=1e-5), name
            mean = 0.7 * place["memory_probability"] + 0.3 * place["model_probability"]
            assert place["probability"] == pytest.approx(mean, abs=1e-4)
            for example, vote in zip(place["examples"], told["votes"], strict=True):
                assert example["share"] == pytest.approx(vote["share"], abs=1e-5)
                assert example["distance"] == pytest.approx(vote["distance"], abs=1e-3)
                assert (example["source"], example["line"]) == (vote["source"], vote["line"])
                whole = example["before"] + example["word"] + example["after"]
                assert whole == vote["target"]
                assert example["agrees"] == (vote["token"] == told["token"])
            shares = sum(one["share"] for one in place["examples"]) + place["left_out_share"]
            assert shares == pytest.approx(1, abs=1e-4)


def test_what_the_memory_changed_is_marked(remembering: TestClient) -> None:
    changed = 0
    for text in TEXTS:
        reply = ask(remembering, text=text, weight=0.9)
        for place in reply["places"]:
            best = place["model_best"]
            if place["changed"]:
                changed += 1
                assert best["token"] != place["token"]
                assert place["probability"] > place["model_probability"]
    assert changed
    silent = ask(remembering, text=TEXTS[0], weight=0)
    assert not any(place["changed"] for place in silent["places"])
    assert silent["target_text"] == silent["text_alone"]


def test_models_tell_their_memory(remembering: TestClient, store: Path) -> None:
    listed = {one["name"]: one for one in remembering.get("/v1/models").json()["models"]}
    assert listed["tiny"]["memory"] is None
    memory = listed["mine"]["memory"]
    assert (memory["lines"], memory["neighbours"], memory["tuned"]) == (40, 8, False)
    assert str(store) not in str(listed)


@pytest.mark.parametrize(
    ("address", "body", "code", "words"),
    [
        ("memory", {"model": "tiny", "text": "a"}, "no_memory", "without a memory; start"),
        ("memory", {"text": " "}, "empty", "the sentence is empty"),
        ("memory", {"text": "a", "weight": 1.5}, "bad_request", "weight"),
        ("memory", {"text": "a", "examples": MAX_EXAMPLES + 1}, "bad_request", "examples"),
        ("memory", {"text": "a", "decoding": {"kind": "drafted"}}, "not_possible", "no memory"),
        ("memory", {"text": "x " * 2000}, "bad_request", "text"),
        ("translate", {"model": "tiny", "text": "a", "memory": {}}, "no_memory", "--memory STORE"),
        (
            "translate",
            {"model": "mine", "text": "a", "decoding": {"kind": "drafted"}},
            "not_possible",
            '{"off": true}',
        ),
        (
            "translate",
            {"model": "mine", "text": "a", "memory": {"off": True, "weight": 0.5}},
            "not_possible",
            "contradict",
        ),
        (
            "translate",
            {"model": "mine", "text": "a", "memory": {"store": "elsewhere"}},
            "bad_request",
            "the fields are off, weight",
        ),
    ],
)
def test_what_cannot_be_is_refused(
    remembering: TestClient, address: str, body: dict[str, Any], code: str, words: str
) -> None:
    reply = remembering.post(f"/v1/{address}", json=body)
    error = reply.json()["error"]
    assert (reply.status_code, error["code"]) == (422, code), error
    assert words in error["message"]
    assert error["message_zh"]


def test_other_searches_work_with_the_memory_left_out(remembering: TestClient) -> None:
    drafted = {"decoding": {"kind": "drafted"}, "memory": {"off": True}}
    assert translate(remembering, text=TEXTS[0], **drafted)
    assert translate(remembering, text=TEXTS[0], n_best=3)
    assert translate(remembering, text=TEXTS[0], decoding={"kind": "beam"})


def test_stores_that_do_not_fit_are_refused_before_the_server_listens(
    tiny_run: Path, store: Path, models: dict[str, LoadedModel], tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="is the memory of another model"):
        attach_memories(models, [str(store)])
    with pytest.raises(UsageError, match="none of the models given"):
        attach_memories({}, [str(store)])
    mine = load_models([f"mine={tiny_run}"], device="cpu", precision="fp32")
    with pytest.raises(UsageError, match=r"has the memory .* already"):
        attach_memories(mine, [str(store), str(store)])
    with pytest.raises(CheckpointError, match="is not a store"):
        attach_memories(mine, [str(tmp_path)])
    translator = Translator.load(tiny_run, device="cpu", precision="fp32")
    translator.recipe = translator.recipe.model_copy(
        update={"decoding": translator.settings(["kind=drafted"])}
    )
    drafting = {"drafting": LoadedModel("drafting", "translator", translator)}
    with pytest.raises(SettingsError, match="kind=drafted takes no memory"):
        attach_memories(drafting, [str(store)])
