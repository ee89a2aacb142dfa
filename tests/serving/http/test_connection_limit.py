"""Which connection is dropped, and which is told that there is no room."""

import pytest

from headwise.serving.http import connection_limit as module
from headwise.serving.http.connection_limit import MAX_SURPLUS, ConnectionLimit


class Fake:
    def __init__(self, address: str | None = None) -> None:
        self.address, self.is_cut = address, False

    def drop(self) -> None:
        self.is_cut = True


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def full_of(count: int, clock: Clock) -> tuple[ConnectionLimit, list[Fake]]:
    """A second between two connections."""
    limit, found = ConnectionLimit(count, clock=clock), [Fake() for _ in range(count)]
    for one in found:
        assert limit.add(one)
        clock.now += 1
    return limit, found


def test_whoever_was_never_answered_goes_first_the_longest_waiting_before_the_others() -> None:
    clock = Clock()
    limit, (first, second, third) = full_of(3, clock)
    limit.mark_busy(first)
    limit.mark_idle(first)
    clock.now += 5
    for expected in (second, third, first):
        newcomer = Fake()
        assert limit.add(newcomer)
        limit.mark_busy(newcomer)
        assert expected.is_cut
        assert len(limit) == 3


def test_who_is_answered_or_has_just_come_stays_and_the_newcomer_is_told() -> None:
    clock = Clock()
    limit, (first, second) = full_of(2, clock)
    limit.mark_busy(first)
    limit.mark_busy(second)
    limit.mark_idle(second)
    clock.now += 0.5
    surplus = [Fake(address) for address in [None, "192.0.2.1"] * (MAX_SURPLUS // 2)]
    for one in surplus:
        assert limit.has_room()
        assert not limit.add(one)
    assert not any(one.is_cut for one in surplus)
    assert not limit.has_room()  # the next one waits in the backlog
    clock.now += 1
    assert limit.has_room()  # one that has sent nothing for long is dropped
    assert [one.is_cut for one in surplus] == [True] + [False] * (MAX_SURPLUS - 1)
    assert not first.is_cut
    assert not second.is_cut
    for one in (first, second, *surplus):
        limit.remove(one)
    assert len(limit) == 0


def test_another_machine_has_a_bound_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PER_CLIENT", 2)
    clock = Clock()
    limit = ConnectionLimit(100, clock=clock)
    here, far = Fake(), [Fake("192.0.2.1") for _ in range(4)]
    limit.add(here)
    clock.now += 5
    assert limit.add(far[0])
    assert limit.add(far[1])
    assert not limit.add(far[2])  # nobody of its own waits long enough
    assert far[2].is_cut
    clock.now += 5
    assert limit.add(far[3])
    assert (far[0].is_cut, far[1].is_cut, here.is_cut) == (True, False, False)
    assert limit.add(Fake("192.0.2.2"))
