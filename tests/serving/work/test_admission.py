"""Work is admitted if it can be finished in time; a refused request is told when to come back."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fastapi.testclient import TestClient

from headwise.decoding.choices import BeamSettings, GreedySettings, SamplingSettings
from headwise.serving.app import create_app
from headwise.serving.http.errors import Refusal
from headwise.serving.http.server_settings import ServerSettings
from headwise.serving.work.admission import DEFAULT_UNIT_COST, AdmissionControl
from headwise.serving.work.jobs import JobPart
from headwise.serving.work.loaded_models import LoadedModel
from headwise.serving.work.translation_jobs import MIN_STEPS, prepare_texts
from tests.serving.event_loops import run_alone
from tests.serving.slow_models import slow_models
from tests.serving.test_state import wait_until_warm


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


LOOKS = "looking"


def part(work: int, kind: str = LOOKS) -> JobPart:
    return JobPart(run=lambda parts: [], cost=work, kind=kind)


def measured(clock: Clock) -> AdmissionControl:
    """A worker that does 100 units a second."""
    load = AdmissionControl(clock=clock)
    for _ in range(100):
        load.learn(LOOKS, 100, 1.0)
    return load


async def ask(load: AdmissionControl, work: int, *, seconds: float, kind: str = LOOKS) -> None:
    now = load.clock()
    async with load.admit([part(work, kind)], deadline=now + seconds, until=now):
        pass


def test_every_kind_of_work_has_a_price_that_follows_its_answers() -> None:
    load = AdmissionControl()
    assert load.unit_cost(LOOKS) == DEFAULT_UNIT_COST
    for _ in range(30):
        load.learn(LOOKS, 1_000, 10.0)
    assert load.unit_cost(LOOKS) == pytest.approx(0.01, rel=0.01)
    assert load.unit_cost("another") == DEFAULT_UNIT_COST
    for _ in range(30):
        load.learn(LOOKS, 1_000, 1.0)
    assert load.unit_cost(LOOKS) == pytest.approx(0.001, rel=0.5)
    load.learn(LOOKS, 0, 5.0)  # nothing is learnt from nothing
    assert load.unit_cost(LOOKS) < 0.002


def test_a_worker_that_was_stopped_for_a_while_is_not_called_slow() -> None:
    """After a stall of half a minute a word was refused for a minute."""
    load = AdmissionControl()
    for _ in range(1_000):
        load.learn(LOOKS, 10, 0.02)
    load.learn(LOOKS, 10, 30.0)
    assert load.unit_cost(LOOKS) < 2 * 0.002
    for _ in range(5):  # but if it goes on, it is
        load.learn(LOOKS, 1_000, 100.0)
    assert load.unit_cost(LOOKS) == pytest.approx(0.1, rel=0.1)


def test_what_cannot_be_finished_is_refused_with_a_time() -> None:
    clock = Clock()
    load = measured(clock)
    run_alone(ask(load, 10**6, seconds=10))  # alone: whether it can be done is seen by doing it
    busy = load.reserve([part(300)], deadline=clock.now + 100)
    run_alone(ask(load, 90, seconds=10))  # 3.9 s of work
    with pytest.raises(Refusal, match="come back in 3 s") as caught:
        run_alone(ask(load, 390, seconds=10))  # 6.9 s of work, 4 s fit
    assert (caught.value.status, caught.value.code, caught.value.retry_after) == (503, "busy", 3)
    with pytest.raises(Refusal, match="come back in 3 s"):
        run_alone(ask(load, 10**6, seconds=10))
    assert load.seconds == pytest.approx(3, rel=0.01)
    busy.end()
    run_alone(ask(load, 900, seconds=10))
    assert load.seconds == 0


def test_kinds_share_the_time_of_one_worker() -> None:
    """30 occlusions at once gave 504 to those that were accepted: they were not counted at all."""
    clock = Clock()
    load = measured(clock)
    load.learn("occlusion", 10_000, 20.0)
    load.reserve([part(2_000, "occlusion")], deadline=clock.now + 30)
    with pytest.raises(Refusal, match="more work than can be finished"):
        run_alone(ask(load, 1_200, seconds=30))


def test_the_first_of_a_kind_is_measured_before_there_is_a_second() -> None:
    clock = Clock()
    load = measured(clock)
    first = load.reserve([part(10, "new")], deadline=clock.now + 30)
    run_alone(ask(load, 10, seconds=30))
    with pytest.raises(Refusal, match="come back in 1 s"):
        run_alone(ask(load, 10, seconds=30, kind="new"))
    first.finish(part(10, "new"), 0.01)
    run_alone(ask(load, 10, seconds=30, kind="new"))


def test_short_work_goes_first_and_long_work_is_not_made_late_by_it() -> None:
    clock = Clock()
    load = measured(clock)
    long = load.reserve([part(1_000)], deadline=clock.now + 30)  # 10 s
    run_alone(ask(load, 10, seconds=1))  # 0.1 s, before the long one: it need not wait for 10 s
    assert load.reserve([part(10)]).rank < long.rank
    other = load.reserve([part(100)], deadline=clock.now + 30)
    with pytest.raises(Refusal, match="come back in 1 s"):
        run_alone(ask(load, 100, seconds=30))  # the long one's share is full
    other.end()
    clock.now += 200  # aging: whoever comes now comes after it
    assert load.reserve([part(10)]).rank > long.rank


def test_what_seems_impossible_is_tried_and_gets_its_share() -> None:
    clock = Clock()
    load = measured(clock)
    load.reserve([part(10**5)], deadline=clock.now + 30)
    with pytest.raises(Refusal, match="come back in 11 s"):
        run_alone(ask(load, 10**5, seconds=30))  # another one like it
    with pytest.raises(Refusal, match="come back in 1 s"):
        run_alone(ask(load, 90, seconds=30))
    clock.now += 2.1
    with pytest.raises(Refusal, match="come back in 1 s"):
        run_alone(ask(load, 140, seconds=30))
    run_alone(ask(load, 120, seconds=30))  # 1.2 s: others get 0.6 of what has gone by


def test_work_is_tokens_times_hypotheses(models: dict[str, LoadedModel]) -> None:
    assert GreedySettings().num_hypotheses == 1
    assert BeamSettings(size=8).num_hypotheses == 8
    assert SamplingSettings(num_samples=3).num_hypotheses == 3
    translator = models["tiny"].value
    (one,) = prepare_texts(
        translator, ["The dog is old"], translator.settings(["kind=beam", "size=4"])
    ).parts
    assert (one.cost, one.kind) == (4 * (one.num_tokens - 1 + MIN_STEPS), "beam")


OVERLOADS: dict[str, tuple[str, dict[str, Any]]] = {
    "translate": (
        "/v1/translate",
        {"text": ["The dog is old"] * 32, "decoding": {"kind": "beam", "size": 4}},
    ),
    "stream": (
        "/v1/translate",
        {"text": "The dog is old " * 3, "decoding": {"kind": "greedy"}, "stream": True},
    ),
    "trace": ("/v1/trace", {"text": "The dog is old", "top": 3}),
    "occlude": ("/v1/occlude", {"text": "The dog is old"}),
}


@pytest.mark.parametrize("name", OVERLOADS)
def test_overload_is_refused_and_what_is_accepted_is_finished(name: str) -> None:
    """More at once than fit into their deadline, of every kind."""
    # Sleeping is most of a step, so that the time of a step does not depend on what else the
    # machine does.
    models, _ = slow_models(0.03)
    app = create_app(models, ServerSettings(deadline_seconds=8, queue_seconds=0.2))

    def send(client: TestClient) -> Any:
        path, body = OVERLOADS[name]
        return client.post(path, json=body)

    with TestClient(app, base_url="http://localhost") as client, ThreadPoolExecutor(24) as pool:
        wait_until_warm(app)
        start = time.monotonic()
        replies = list(pool.map(lambda _: send(client), range(24)))
        assert time.monotonic() - start < 60
    assert {reply.status_code for reply in replies} == {200, 503}
    assert all(
        reply.headers["retry-after"].isdigit() for reply in replies if reply.status_code == 503
    )
    for reply in replies:
        assert "too_slow" not in reply.text
    assert app.state.server.workers["tiny"].seconds == 0


def test_patience_is_for_tokenizing_too(monkeypatch: pytest.MonkeyPatch) -> None:
    models, _ = slow_models(0.0)
    app = create_app(models, ServerSettings(queue_seconds=0.2))
    with TestClient(app, base_url="http://localhost") as client:
        wait_until_warm(app)
        tokenizing = app.state.server.tokenizing
        held = threading.Event()
        for _ in range(2):
            tokenizing.submit(held.wait, 20)
        start = time.monotonic()
        reply = client.post("/v1/trace", json={"text": "The dog is old"})
        assert time.monotonic() - start < 10
        held.set()
        assert (reply.status_code, reply.json()["error"]["code"]) == (503, "busy")
        assert int(reply.headers["retry-after"]) >= 1
        assert client.post("/v1/trace", json={"text": "The dog is old"}).status_code == 200
