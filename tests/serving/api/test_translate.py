"""`/v1/translate`: the same sentence gets the same translation in every batch; every search;
streams.
"""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import pytest
from fastapi.testclient import TestClient

from headwise.decoding.results import SearchResult
from headwise.decoding.rules.length_limit import LengthLimit
from headwise.decoding.search.greedy import GreedySettings
from headwise.serving.work.jobs import Job
from headwise.serving.work.loaded_models import LoadedModel
from headwise.serving.work.search import Search
from headwise.serving.work.translation_jobs import prepare_texts
from headwise.tasks.translation.source_sentences import Candidate
from headwise.text.phrase_matching import occurs
from tests.serving.conftest import BUNDLE

KNOWN = (BUNDLE.parent / "translations.tsv").read_text(encoding="utf-8").splitlines()
SENTENCES = sorted((line.split("\t")[0] for line in KNOWN), key=len)[:5]
SEARCHES: list[dict[str, Any]] = [
    {"kind": "greedy"},
    {"kind": "beam", "size": 4},
    {"kind": "sampling", "seed": 7, "top_p": 0.9, "temperature": 0.7},
    {"kind": "drafted", "block": 3},
]


@pytest.mark.parametrize("search", SEARCHES, ids=lambda one: one["kind"])
def test_what_else_is_in_the_batch_changes_nothing(
    client: TestClient, search: dict[str, Any]
) -> None:
    def ask(text: str | list[str]) -> list[str]:
        reply = client.post("/v1/translate", json={"text": text, "decoding": search})
        assert reply.status_code == 200, reply.text
        return [one["text"] for one in reply.json()["translations"]]

    alone = [ask(text)[0] for text in SENTENCES]
    server = client.app.state.server  # type: ignore[attr-defined]
    before = server.workers["tiny"].num_batches
    with ThreadPoolExecutor(5) as pool:
        together = [found[0] for found in pool.map(ask, SENTENCES)]
    assert together == alone
    assert server.workers["tiny"].num_batches - before < len(SENTENCES)
    if search["kind"] != "sampling":  # there the number in the request names the draw
        assert ask(SENTENCES[::-1]) == alone[::-1]


def test_it_is_what_the_library_says(client: TestClient, models: dict[str, LoadedModel]) -> None:
    translator = models["tiny"].value
    decoding = translator.settings(["kind=beam", "size=4", "num_best=3"])
    expected = translator(SENTENCES[:5], decoding)
    body = {
        "text": SENTENCES[:5],
        "decoding": {"kind": "beam", "size": 4},
        "n_best": 3,
        "split": False,
    }
    found = client.post("/v1/translate", json=body).json()["translations"]
    for ours, theirs in zip(found, expected, strict=True):
        assert [one["text"] for one in ours["n_best"]] == [one.text for one in theirs.n_best]
        assert [one["score"] for one in ours["n_best"]] == pytest.approx(
            [one.score for one in theirs.n_best], abs=1e-4
        )


def test_a_prefix_begins_the_first_sentence_of_every_text(client: TestClient) -> None:
    body = {"text": ["I am. You are.", "I am."], "prefix": "Die", "decoding": {"kind": "greedy"}}
    for one in client.post("/v1/translate", json=body).json()["translations"]:
        assert one["text"].startswith("Die")


def test_forbidden_and_required_phrases_hold_in_every_sentence(client: TestClient) -> None:
    free = client.post("/v1/translate", json={"text": SENTENCES[0], "split": False}).json()[
        "translations"
    ][0]["text"]
    word = max(re.findall(r"\w+", free), key=len)
    for search in (
        {"kind": "greedy"},
        {"kind": "beam", "size": 3},
        {"kind": "sampling", "seed": 3},
        None,
    ):
        body = {"text": SENTENCES[:3], "forbid": [word], "decoding": search}
        for one in client.post("/v1/translate", json=body).json()["translations"]:
            assert not occurs(word, one["text"])
    body = {"text": SENTENCES[:3], "require": ["Hund"], "forbid": [word], "n_best": 2}
    for one in client.post("/v1/translate", json=body).json()["translations"]:
        assert all(
            occurs("Hund", found["text"]) and not occurs(word, found["text"])
            for found in one["n_best"]
        )


def test_the_recipe_decides_where_nothing_is_asked(
    client: TestClient, models: dict[str, LoadedModel]
) -> None:
    plain = client.post("/v1/translate", json={"text": SENTENCES[0], "split": False}).json()[
        "translations"
    ][0]
    translator = models["tiny"].value
    assert plain["text"] == translator([SENTENCES[0]])[0].text
    several = client.post("/v1/translate", json={"text": SENTENCES[0], "n_best": 7}).json()[
        "translations"
    ][0]
    assert len(several["n_best"]) == 7
    drawn = {"text": SENTENCES[0], "n_best": 3, "decoding": {"kind": "sampling"}}
    assert len(client.post("/v1/translate", json=drawn).json()["translations"][0]["n_best"]) == 3


def test_paragraphs_stay_where_they_are(client: TestClient) -> None:
    one, two = SENTENCES[:2]
    texts = [f"  {one} {two}\n\n{two}\n", one, two]
    found = [
        x["text"] for x in client.post("/v1/translate", json={"text": texts}).json()["translations"]
    ]
    assert found[0] == f"  {found[1]} {found[2]}\n\n{found[2]}\n"


def read_events(text: str) -> list[tuple[str, Any]]:
    blocks = [block.split("\n") for block in text.strip().split("\n\n")]
    return [
        (event.removeprefix("event: "), json.loads(data.removeprefix("data: ")))
        for event, data in blocks
    ]


@pytest.mark.parametrize("search", SEARCHES, ids=lambda one: one["kind"])
def test_a_stream_ends_in_the_plain_answer(client: TestClient, search: dict[str, Any]) -> None:
    body = {"text": [f"{SENTENCES[0]} {SENTENCES[1]}", " "], "decoding": search}
    plain = client.post("/v1/translate", json=body).json()
    reply = client.post("/v1/translate", json={**body, "stream": True})
    assert reply.headers["content-type"].startswith("text/event-stream")
    events = read_events(reply.text)
    assert events[-1] == ("done", {"model": "tiny"})
    whole = [data["translation"] for name, data in events if name == "translation"]
    assert [one["text"] for one in whole] == [one["text"] for one in plain["translations"]]
    pieces = [data for name, data in events if name == "piece"]
    assert {(one["text"], one["sentence"]) for one in pieces} == {(0, 0), (0, 1)}
    if search["kind"] != "beam":
        grown = [one["so_far"] for one in pieces if one["sentence"] == 0]
        assert all(later.startswith(earlier.rstrip()) for earlier, later in pairwise(grown))


def test_a_stream_of_too_much_is_refused_before_it_begins(client: TestClient) -> None:
    reply = client.post("/v1/translate", json={"text": "xy" * 900, "stream": True})
    assert reply.status_code == 422


def test_a_short_sentence_does_not_wait_for_a_long_one(
    client: TestClient, models: dict[str, LoadedModel]
) -> None:
    translator = models["tiny"].value
    decoding = GreedySettings(max_length=LengthLimit(factor=3, extra=0, limit=200))
    prepared = prepare_texts(translator, [*["a"] * 3, "a b c d e f " * 9], decoding, split=False)
    orders = [Job([part], deadline=1e12) for part in prepared.parts]
    done: list[bool] = []

    class Looking(Search):
        def read(self, result: SearchResult) -> tuple[Candidate, ...]:
            done.append(orders[0].future.done())
            return super().read(result)

    answers = Looking(translator, decoding)(prepared.parts)
    assert done[-1]
    assert not done[0]
    assert orders[0].future.result(0) == [answers[0]]


def test_a_text_that_the_model_cannot_read_is_marked(client: TestClient) -> None:
    body = {"text": [SENTENCES[0], "今天天气很好。"], "decoding": {"kind": "greedy"}}
    plain, strange = client.post("/v1/translate", json=body).json()["translations"]
    assert plain["warning"] is None
    assert strange["warning"]["code"] == "other_language"
    assert "this looks like zh, but the model reads en" in strange["warning"]["message"]
    assert "译文可能毫无意义" in strange["warning"]["message_zh"]
    streamed = client.post("/v1/translate", json={**body, "stream": True}).text
    events = [
        json.loads(line.removeprefix("data: "))
        for line in streamed.splitlines()
        if '"translation"' in line
    ]
    assert [one["translation"]["warning"] for one in events] == [None, strange["warning"]]
    assert (
        client.post("/v1/trace", json={"text": "今天天气很好。"}).json()["warning"]
        == strange["warning"]
    )
    assert client.post("/v1/trace", json={"text": SENTENCES[0]}).json()["warning"] is None
