"""What every test runs under: checked tensor shapes, English messages, few threads, seeds that follow the test's name.

jaxtyping and beartype check the shapes and types in every signature of the packages below, under pytest only: the
hook must be set before those packages are first imported, so it stands at the top of this file.
"""

from collections.abc import Iterator

from jaxtyping import install_import_hook

install_import_hook(
    ["headwise.attention", "headwise.positions", "headwise.blocks", "headwise.models"], "beartype.beartype"
)

import pytest  # noqa: E402
import torch  # noqa: E402

from headwise.language import use_language  # noqa: E402
from headwise.randomness import seed_from, torch_generator  # noqa: E402

# Tests are small: a second thread costs more in waiting than it gives, most of all on a busy machine.
torch.set_num_threads(1)


@pytest.fixture
def generator(request: pytest.FixtureRequest) -> torch.Generator:
    """Random numbers that depend on the test's name alone."""
    return torch_generator(request.node.nodeid)


@pytest.fixture(autouse=True)
def _settled_surroundings(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Layers of torch draw their first weights from the global seed; messages follow the locale. Both are fixed."""
    torch.manual_seed(seed_from(request.node.nodeid))
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    yield
    use_language(None)
