"""Who makes room, and who is told that there is none."""

import pytest

from headwise.serving.http import connection_limit as module
from headwise.serving.http.connection_limit import MAX_SURPLUS, Slots


class Fake:
    def __init__(self, address: str | None = None) -> None:
        self.address, self.is_cut = address, False

    def cut(self) -> None:
        self.is_cut = True


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def full_of(count: int, clock: Clock) -> tuple[Slots, list[Fake]]:
    """A second between two connections."""
    slots, found = Slots(count, clock=clock), [Fake() for _ in range(count)]
    for one in found:
        assert slots.enter(one)
        clock.now += 1
    return slots, found


def test_whoever_was_never_answered_goes_first_the_longest_waiting_before_the_others() -> None:
    clock = Clock()
    slots, (first, second, third) = full_of(3, clock)
    slots.work(first)
    slots.wait(first)
    clock.now += 5
    for expected in (second, third, first):
        newcomer = Fake()
        assert slots.enter(newcomer)
        slots.work(newcomer)
        assert expected.is_cut
        assert len(slots) == 3


def test_who_is_answered_or_has_just_come_stays_and_the_newcomer_is_told() -> None:
    clock = Clock()
    slots, (first, second) = full_of(2, clock)
    slots.work(first)
    slots.work(second)
    slots.wait(second)
    clock.now += 0.5
    surplus = [Fake(address) for address in [None, "192.0.2.1"] * (MAX_SURPLUS // 2)]
    for one in surplus:
        assert slots.has_place()
        assert not slots.enter(one)
    assert not any(one.is_cut for one in surplus)
    assert not slots.has_place()  # the next one waits in line
    clock.now += 1
    assert slots.has_place()  # one that has sent nothing for so long makes room
    assert [one.is_cut for one in surplus] == [True] + [False] * (MAX_SURPLUS - 1)
    assert not first.is_cut
    assert not second.is_cut
    for one in (first, second, *surplus):
        slots.leave(one)
    assert len(slots) == 0


def test_another_machine_has_a_bound_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_OF_ONE", 2)
    clock = Clock()
    slots = Slots(100, clock=clock)
    here, far = Fake(), [Fake("192.0.2.1") for _ in range(4)]
    slots.enter(here)
    clock.now += 5
    assert slots.enter(far[0])
    assert slots.enter(far[1])
    assert not slots.enter(far[2])  # nobody of its own waits long enough
    assert far[2].is_cut
    clock.now += 5
    assert slots.enter(far[3])
    assert (far[0].is_cut, far[1].is_cut, here.is_cut) == (True, False, False)
    assert slots.enter(Fake("192.0.2.2"))
