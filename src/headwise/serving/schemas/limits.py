"""How much a request may ask for, and how long it may take: the server says no early, and says why.

The numbers in capitals bound the fields of requests, so they stand in the OpenAPI description as
well; those in `ServerSettings` are the operator's to change. Tested: each limit at, below and far
above its value.
"""

import ipaddress
from pathlib import Path

from pydantic import Field

from headwise.settings import Settings

MAX_TEXTS = 32
"""Texts in a request."""
MAX_CHARACTERS = 2_000
"""Characters in a text."""
MAX_TOKENS = 512
"""Pieces in a sentence, after the tokenizer."""
MAX_SENTENCES = 512
"""Sentences in a request, after splitting."""
MAX_PHRASES = 8
"""Forbidden phrases in a request, and required ones."""
MAX_PHRASE_CHARACTERS = 50
MAX_PHRASE_BYTES = 256
"""UTF-8 of all phrases of a request: their rules take up to 0.2 s to make (decision 31), and others
wait meanwhile."""
MAX_BEAM = 8
MAX_BEST = 8
MAX_TOP = 10
MAX_TRACE_VALUES = 4_000_000
"""Numbers of attention maps in one reply: layers × heads × source × target."""


class ServerSettings(Settings):
    """What whoever runs the server decides."""

    host: str = "127.0.0.1"
    port: int = Field(default=8000, ge=0, le=65_535)
    """0 takes a free one."""
    body_bytes: int = Field(default=65_536, ge=1_024, le=16_777_216)
    """Most bytes of a request's body."""
    queue: int = Field(default=64, ge=1, le=65_536)
    """Requests a model holds at once, waiting and at work."""
    queue_seconds: float = Field(default=2.0, ge=0, le=600)
    """How long a request waits for a place in a full queue."""
    deadline_seconds: float = Field(default=30.0, gt=0, le=3_600)
    """From the arrival of a request to its answer."""
    rate: int | None = Field(default=None, ge=0, le=1_000_000)
    """Requests a minute for each key or address; 0 for any number, None: 60, or any number on a
    loopback address."""
    keys: Path | None = None
    """File of hashed API keys; None: no key is asked for."""
    runs: Path | None = None
    """Directory of trainings that may be watched; nothing outside it is ever read. None: none."""
    hosts: tuple[str, ...] = ()
    """Names the server answers to besides its own address; `*` for any."""

    demo: Path | None = None
    """Where the page may have the demo's model trained; None: nowhere."""

    @property
    def is_public(self) -> bool:
        """Whether others than this machine can reach the address."""
        return not is_loopback(self.host)

    @property
    def requests_a_minute(self) -> int:
        """0 for any number."""
        return (60 if self.is_public else 0) if self.rate is None else self.rate


def is_loopback(host: str) -> bool:
    """Whether an address is this machine's own and nobody else's."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
