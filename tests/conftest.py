"""What every test runs under: checked tensor shapes, English messages, few threads, seeds that
follow the test's name, and no way out of this machine (S11): whatever would connect to another one
fails.

jaxtyping and beartype check the shapes and types in every signature of the packages below, under
pytest only: the hook must be set before those packages are first imported, so it stands at the top
of this file.
"""

import gc
import ipaddress
import os
import sys
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.shape_checks import check_shapes_of

check_shapes_of(["headwise.attention", "headwise.positions", "headwise.blocks", "headwise.models"])

import pytest  # noqa: E402
import torch  # noqa: E402

from headwise.language import use_language  # noqa: E402
from headwise.randomness import seed_from, torch_generator  # noqa: E402

if TYPE_CHECKING:
    from headwise.tasks.translation.translator import Translator

# Tests are small: a second thread costs more in waiting than it gives, most of all on a busy
# machine.
torch.set_num_threads(1)


def _stay_here(event: str, arguments: tuple[Any, ...]) -> None:
    """Python asks before every connection it makes, whoever wants it."""
    if event == "socket.connect" and isinstance(arguments[1], tuple):
        host = str(arguments[1][0])
        if host != "localhost" and not ipaddress.ip_address(host.split("%")[0]).is_loopback:
            raise AssertionError(f"a test tried to reach {host}")


sys.addaudithook(_stay_here)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What collecting makes stays to the end: the garbage collector need not look at it, neither
    meanwhile nor later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A browser is driven by greenlets, after which `ast.parse` can fail in the same process
    (CPython issue 106905): it comes last."""
    tests_of = Counter(item.path for item in items)
    # Of these the files with most tests come first, so that no worker is left alone with one.
    items.sort(
        key=lambda item: tests_of[item.path] if "browser" in item.path.parts else 1 << 30,
        reverse=True,
    )


@pytest.fixture
def generator(request: pytest.FixtureRequest) -> torch.Generator:
    """Random numbers that depend on the test's name alone."""
    return torch_generator(request.node.nodeid)


@pytest.fixture(autouse=True, scope="session")
def _no_waiting_for_the_disk() -> Iterator[None]:
    """Flushing protects from a power cut, which no test makes: a killed process leaves what it
    wrote. A tiny training flushes 150 files, which takes longer than all else that it does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(autouse=True)
def _settled_surroundings(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Layers of torch draw their first weights from the global seed; messages follow the locale.
    Both are fixed."""
    # Not by `torch.manual_seed`, which notes the call stack for each kind of device (0.5 ms).
    torch.default_generator.manual_seed(seed_from(request.node.nodeid))
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed_from(request.node.nodeid))
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    yield
    use_language(None)
    if torch.get_num_threads() != 1:  # a benchmark has set its own
        torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of a tiny translator; not to be changed."""
    from tests.tasks.tiny import train_tiny

    directory = tmp_path_factory.mktemp("runs") / "tiny"
    train_tiny(directory)
    return directory


@pytest.fixture(scope="session")
def translator(tiny_run: Path) -> "Translator":
    from headwise.tasks.translation.translator import Translator

    return Translator.load(tiny_run)
