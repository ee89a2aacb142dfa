"""All checks of schemathesis against a running server with every kind of model: no failure.

`unsupported_method` and `allow_header_conformance` only work in the tool's own phases, so the tool
is run as a program. Its check of accepted requests looks at statuses, and 422 also means "valid,
but not possible here"; `described_refusals` looks at the code of the refusal instead.
"""

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn

from headwise.models.vector_space import VectorSpace
from headwise.randomness import numpy_generator
from headwise.serving.app import create_app
from headwise.serving.http.server_settings import ServerSettings
from headwise.serving.uvicorn_server import configure
from headwise.serving.work.loaded_models import LoadedModel, load_models
from headwise.tasks.language.language_model import LanguageModel
from tests.explorer.data.test_run_logs import write_run
from tests.serving.api.test_language import ARPA
from tests.serving.conftest import BUNDLE

ROOT = Path(__file__).resolve().parents[3]
SETTINGS = """
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "400", "401", "403", "404", "409", "413", "422", "429", "5xx"]
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path = tmp_path_factory.mktemp("all-checks")
    (path / "tiny.arpa").write_text(ARPA, encoding="utf-8")
    write_run(path / "runs" / "one", 1, 2)
    space = VectorSpace(
        [f"word{number}" for number in range(11)],
        numpy_generator("all checks").normal(size=(11, 5)),
    )
    models = {
        **load_models([f"tiny={BUNDLE}"], device="cpu"),
        "spoken": LoadedModel("spoken", "language_model", LanguageModel.load(path / "tiny.arpa")),
        "vectors": LoadedModel("vectors", "word_vectors", space),
    }
    app = create_app(
        models, ServerSettings(hosts=("*",), runs=path / "runs", body_bytes=16_777_216)
    )
    config = configure(app)
    config.port = 0
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until = time.monotonic() + 60
    while not server.started:
        assert time.monotonic() < until
        time.sleep(0.05)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/openapi.json"
    server.should_exit = True
    thread.join(30)


def run_all_checks(address: str, directory: Path, *options: str) -> tuple[int, str]:
    """The number of requests, and the output of the tool."""
    (directory / "schemathesis.toml").write_text(SETTINGS, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "schemathesis.cli",
        "--config-file",
        "schemathesis.toml",
        "run",
        address,
    ]
    # The server's own deadline is 30 s.
    patience = (
        "--request-timeout",
        "60",
        "--max-response-time",
        "60",
    )
    done = subprocess.run(
        [
            *command,
            "--checks",
            "all",
            "--continue-on-failure",
            "--no-color",
            "--seed",
            "7",
            *patience,
            *options,
        ],
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "SCHEMATHESIS_HOOKS": "tests.serving.api.described_refusals",
        },
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.search(r"(\d+) generated", done.stdout)
    assert done.returncode == 0, done.stdout[-8_000:] + done.stderr[-2_000:]
    assert found, done.stdout
    return int(found[1]), done.stdout


def test_all_checks_of_every_phase_but_random_ones(address: str, tmp_path: Path) -> None:
    """But those that translate at every request, which the long form has."""
    slow = "/v1/(trace|occlude|row)"
    count, said = run_all_checks(
        address, tmp_path, "--phases", "examples,coverage", "--exclude-path-regex", slow
    )
    assert count > 500
    assert "Coverage" in said


@pytest.mark.prove
def test_all_checks_on_thousands_of_requests(address: str, tmp_path: Path) -> None:
    count, _ = run_all_checks(address, tmp_path, "--max-examples", "50")
    assert count >= 2_000
