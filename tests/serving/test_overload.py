"""More requests than can be computed (S12): accepted ones are finished, refused ones are told when
to come back.
"""

import http.client
import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serving.server_process import ServerProcess
from tests.serving.test_server_process import GREEDY, HEAD, SENTENCES, is_healthy

pytestmark = pytest.mark.prove
HEAVY = {"text": [" ".join(SENTENCES[:4])] * 32, "decoding": {"kind": "beam", "size": 8}}
"""128 sentences with a beam of eight: as much as a request may ask for, nearly."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(
        "--deadline", "20", log=tmp_path_factory.mktemp("server") / "log.txt"
    ) as found:
        yield found


def press(
    server: ServerProcess, body: object, *, clients: int, seconds: float
) -> tuple[Counter[int], float]:
    """Counts of statuses, and replies per second; every refusal must have Retry-After."""
    statuses: Counter[int] = Counter()
    until = time.monotonic() + seconds

    def one() -> None:
        while time.monotonic() < until:
            connection = server.connect()
            connection.request(
                "POST", "/v1/translate", json.dumps(body), {"Content-Type": "application/json"}
            )
            reply = connection.getresponse()
            reply.read()
            statuses[reply.status] += 1
            if reply.status == 503:
                assert int(reply.getheader("retry-after") or 0) >= 1
                time.sleep(0.5)
            connection.close()

    start = time.monotonic()
    threads = [threading.Thread(target=one) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return statuses, statuses[200] / (time.monotonic() - start)


def test_overload_is_refused_and_goodput_stays(server: ServerProcess) -> None:
    alone, rate = press(server, HEAVY, clients=4, seconds=20)
    assert set(alone) <= {200, 503}
    crowd, rate_in_a_crowd = press(server, HEAVY, clients=64, seconds=40)
    print(
        f"4 clients: {dict(alone)}, {rate:.2f}/s; 64 clients: {dict(crowd)}, "
        f"{rate_in_a_crowd:.2f}/s"
    )
    assert set(crowd) <= {200, 503}
    assert crowd[200]
    assert rate_in_a_crowd > 0.6 * rate
    assert is_healthy(server)


def test_honest_clients_are_answered_beside_slow_ones(server: ServerProcess) -> None:
    """2,500 connections that drip heads or hold half a body, renewed as they are cut off: more than
    there is room for."""
    stopped = threading.Event()
    slow = HEAD + b"Content-Length: 100\r\n\r\n{", b"GET /healthz HTTP/1.1\r\nHost: local"

    def hold(number: int) -> None:
        held: list[socket.socket] = []
        while not stopped.is_set():
            while len(held) < 625:
                try:
                    connection = socket.create_connection(("127.0.0.1", server.port), timeout=5)
                    connection.sendall(slow[len(held) % 2])
                    connection.setblocking(False)
                    held.append(connection)
                except OSError:
                    break
            stopped.wait(0.2)
            for connection in list(held):
                try:
                    if not connection.recv(4096):
                        raise OSError
                except BlockingIOError:
                    continue
                except OSError:
                    held.remove(connection)
                    connection.close()
        for connection in held:
            connection.close()

    threads = [threading.Thread(target=hold, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(5)
    statuses: Counter[object] = Counter()
    until = time.monotonic() + 25
    while time.monotonic() < until:
        try:
            statuses[
                server.ask("POST", "/v1/translate", {"text": SENTENCES[0], "decoding": GREEDY})[0]
            ] += 1
        except (OSError, http.client.HTTPException) as error:
            statuses[type(error).__name__] += 1
        time.sleep(0.1)
    stopped.set()
    for thread in threads:
        thread.join()
    print(dict(statuses))
    assert statuses[200] >= 0.95 * sum(statuses.values())
    assert statuses[200] >= 10
    time.sleep(1)
    assert is_healthy(server)


def test_seven_hundred_honest_clients_at_once(server: ServerProcess) -> None:
    statuses: Counter[object] = Counter()

    def one() -> None:
        try:
            statuses[
                server.ask("POST", "/v1/translate", {"text": SENTENCES[0], "decoding": GREEDY})[0]
            ] += 1
        except (OSError, http.client.HTTPException) as error:
            statuses[type(error).__name__] += 1

    threads = [threading.Thread(target=one) for _ in range(700)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(dict(statuses))
    assert set(statuses) <= {200, 503}
    assert statuses[200] >= 64


def test_the_log_stays_short(server: ServerProcess) -> None:
    """After all of the above, and of five hundred requests that cannot be read."""
    for _ in range(500):
        with socket.create_connection(("127.0.0.1", server.port), timeout=5) as connection:
            connection.sendall(b"\x16\x03\x01\x02\r\n\r\n")
            connection.recv(4096)
    assert Path(server.log).stat().st_size < 20_000
    assert is_healthy(server)
