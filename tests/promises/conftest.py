"""The task of another package (examples/plugin) keeps the promises of a run as our own tasks do."""

from collections.abc import Iterator

import pytest

from tests.plugins.regression import installed
from tests.promises.recipes import FinishedRuns


@pytest.fixture(scope="module", autouse=True)
def other_package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with installed(tmp_path_factory.mktemp("packages")):
        yield


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> FinishedRuns:
    """Runs of the plain recipes; not to be changed."""
    return FinishedRuns(tmp_path_factory.mktemp("finished"))
