"""Work is accepted if it can be finished in time; who is refused is told when to come back."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fastapi.testclient import TestClient

from headwise.decoding.choices import BeamSettings, GreedySettings, SamplingSettings
from headwise.serving.app import create_app
from headwise.serving.faults import Refusal
from headwise.serving.limits import ServerSettings
from headwise.serving.load import Load
from headwise.serving.loaded import LoadedModel
from headwise.serving.sentences import num_hypotheses, prepare
from tests.serving.loops import run_alone
from tests.serving.slow import slow_models
from tests.serving.test_patience import wait_until_warm


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def measured(clock: Clock) -> Load:
    """A model that does 100 units a second."""
    load = Load(clock=clock)
    first = load.take(50)
    clock.now += 0.5
    first.finish(50)
    return load


def test_the_rate_is_of_the_last_seconds_with_work() -> None:
    clock = Clock()
    load = Load(clock=clock)
    assert load.rate is None
    load = measured(clock)
    assert load.rate == pytest.approx(100)
    clock.now += 1_000  # idle: nothing is learnt from that
    assert load.rate == pytest.approx(100)
    slow = load.take(300)
    for _ in range(30):
        clock.now += 1
        slow.finish(10)
    assert load.rate == pytest.approx(10, rel=0.1)
    assert load.seconds == 0


def test_time_in_which_the_worker_stands_still_tells_nothing_of_its_speed() -> None:
    """After a stall of 30 s a word was refused for a minute."""
    clock, is_moving = Clock(), [True]
    load = Load(clock=clock, is_moving=lambda: is_moving[0])
    work = load.take(200)
    clock.now += 1
    work.finish(100)
    assert load.rate == pytest.approx(100)
    is_moving[0] = False
    for _ in range(30):
        clock.now += 1
        assert load.rate == pytest.approx(100)
    is_moving[0] = True
    run_alone(ask(load, 10, deadline=clock.now + 10))
    clock.now += 1
    work.finish(100)
    assert load.rate == pytest.approx(100, rel=0.1)


async def ask(load: Load, work: float, *, deadline: float) -> None:
    async with load.accept(work, deadline=deadline, patience=0):
        pass


def test_what_cannot_be_finished_is_refused_with_a_time() -> None:
    clock = Clock()
    load = measured(clock)
    run_alone(
        ask(load, 10**6, deadline=clock.now + 10)
    )  # alone: whether it can be done is seen by doing it
    busy = load.take(300)
    run_alone(ask(load, 200, deadline=clock.now + 10))  # 5 s of work, half of 10
    with pytest.raises(Refusal, match="come back in 7 s") as caught:
        run_alone(ask(load, 900, deadline=clock.now + 10))
    assert (caught.value.status, caught.value.code, caught.value.retry_after) == (503, "busy", 7)
    assert load.seconds == pytest.approx(3)
    busy.end()
    run_alone(ask(load, 900, deadline=clock.now + 10))
    assert load.seconds == 0


def test_work_is_tokens_times_hypotheses(models: dict[str, LoadedModel]) -> None:
    assert num_hypotheses(GreedySettings()) == 1
    assert num_hypotheses(BeamSettings(size=8)) == 8
    assert num_hypotheses(SamplingSettings(num_samples=3)) == 3
    translator = models["tiny"].value
    (part,) = prepare(
        translator, ["The dog is old"], translator.settings(["kind=beam", "size=4"])
    ).parts
    assert part.work == 4 * part.weight


@pytest.mark.parametrize("streamed", [False, True])
def test_overload_is_refused_and_what_is_accepted_is_finished(streamed: bool) -> None:
    """Requests of 32 sentences and a beam of 4, more at once than fit into their deadline."""
    # Sleeping is most of a step, so that the time of a step does not depend on what else the machine does.
    models, _ = slow_models(0.03)
    app = create_app(models, ServerSettings(deadline_seconds=8, queue_seconds=0.2))
    num_texts = 1 if streamed else 32
    body = {
        "text": ["The dog is old"] * num_texts,
        "decoding": {"kind": "beam", "size": 4},
        "stream": streamed,
    }

    def ask(client: TestClient) -> Any:
        return client.post("/v1/translate", json=body)

    with TestClient(app, base_url="http://localhost") as client, ThreadPoolExecutor(24) as pool:
        wait_until_warm(app)
        start = time.monotonic()
        replies = list(pool.map(lambda _: ask(client), range(24)))
        assert time.monotonic() - start < 60
    assert {reply.status_code for reply in replies} == {200, 503}
    assert all(
        reply.headers["retry-after"].isdigit() for reply in replies if reply.status_code == 503
    )
    for reply in replies:
        assert "too_slow" not in reply.text
    server = app.state.server
    assert server.loads["tiny"].seconds == server.stream_loads["tiny"].seconds == 0
