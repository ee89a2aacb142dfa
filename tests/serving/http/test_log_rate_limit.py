"""Ten equal lines a minute; more are counted and reported later."""

import logging

import pytest

from headwise.serving.http.log_rate_limit import LINES, RepeatedLineFilter, limit_repeated_lines


def test_the_same_line_is_written_ten_times_a_minute() -> None:
    now = 0.0
    few = RepeatedLineFilter(clock=lambda: now)

    def record(text: str = "worker %s died") -> logging.LogRecord:
        return logging.LogRecord("headwise.x", logging.ERROR, __file__, 1, text, ("a",), None)

    assert [few.filter(record()) for _ in range(LINES + 5)] == [True] * LINES + [False] * 5
    assert few.filter(record("another %s"))
    now = 59.0
    assert not few.filter(record())
    now = 60.0
    first = record()
    assert few.filter(first)
    assert first.getMessage() == "worker a died (6 more such lines were left out)"
    second = record()
    assert few.filter(second)
    assert second.getMessage() == "worker a died"


def test_it_holds_for_the_loggers_of_a_server(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("headwise.test_few_log_lines")
    with limit_repeated_lines():
        for number in range(50):
            logger.error("line %d", number)
    assert len(caplog.records) == LINES
    # What is logged after the server has ended is not its own.
    for number in range(50):
        logger.error("line %d", number)
    assert len(caplog.records) == LINES + 50
