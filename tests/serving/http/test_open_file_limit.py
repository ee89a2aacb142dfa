"""As many connections as the system has files for, and a server that works with few."""

import json
import socket
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from headwise.errors import UsageError
from headwise.serving.http.open_file_limit import MAX_CONNECTIONS, connections_for
from tests.serving.server_process import ServerProcess


@pytest.mark.parametrize(
    ("files", "num_open", "expected"),
    [(64, 20, 12), (256, 30, 194), (1_024, 30, 962), (20_000, 30, MAX_CONNECTIONS)],
)
def test_connections_within_a_bound(files: int, num_open: int, expected: int) -> None:
    assert connections_for(files, num_open) == expected


def test_too_few_files_are_told_before_anything_is_served() -> None:
    with pytest.raises(
        UsageError, match=r"may open 40 files, a server needs 56 at least; raise it: ulimit -n 1024"
    ):
        connections_for(40, 20)


BODY = json.dumps({"text": ["a b c d"] * 20})
FEW_FILES = """
import os, resource
open_now = len(os.listdir("/proc/self/fd"))
resource.setrlimit(resource.RLIMIT_NOFILE, (open_now + 64, open_now + 64))
"""


@pytest.mark.parametrize("num_clients", [60, pytest.param(200, marks=pytest.mark.prove)])
def test_nobody_is_reset_for_want_of_files(tmp_path: Path, num_clients: int) -> None:
    """More clients at once than there are files: each is answered, or told 503 and when to
    return."""
    found: Counter[object] = Counter()

    def ask() -> None:
        connection = server.connect()
        try:
            connection.request("POST", "/v1/translate", BODY, {"Content-Type": "application/json"})
            reply = connection.getresponse()
            reply.read()
            found[(reply.status, reply.getheader("retry-after"))] += 1
        except OSError as error:
            found[type(error).__name__] += 1
        finally:
            connection.close()

    with ServerProcess(log=tmp_path / "log.txt", before=FEW_FILES) as server:
        threads = [threading.Thread(target=ask) for _ in range(num_clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert server.ask("GET", "/readyz")[0] == 200
    assert set(found) <= {(200, None), (503, "1"), (503, "2")}
    assert found[(200, None)]
    assert sum(found.values()) == num_clients


@pytest.mark.prove
def test_two_hundred_idle_connections_and_few_files(tmp_path: Path) -> None:
    """S12: accepting never fails for want of files, the log stays short, and honest clients are
    answered."""
    with ServerProcess(log=tmp_path / "log.txt", before=FEW_FILES) as server:
        idle: list[socket.socket] = []
        until = time.monotonic() + 20
        answered = 0
        while time.monotonic() < until:
            for _ in range(20):
                connection = socket.socket()
                connection.setblocking(False)
                connection.connect_ex(("127.0.0.1", server.port))
                idle.append(connection)
            time.sleep(0.3)
            try:
                answered += server.ask("GET", "/healthz")[0] == 200
            except OSError:
                continue
        for connection in idle:
            connection.close()
        time.sleep(2)
        assert server.ask("GET", "/readyz")[0] == 200
    assert answered >= 3
    assert (tmp_path / "log.txt").stat().st_size < 20_000
    assert "Too many open files" not in (tmp_path / "log.txt").read_text(encoding="utf-8")
