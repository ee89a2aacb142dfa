"""Settings of the server: address, limits of queue, time and size, keys. The operator sets them.

`schemas/limits.py` has the limits of the fields of a request. Tested: each limit at, below and far
above its value.
"""

import ipaddress
from pathlib import Path

from pydantic import Field

from headwise.settings import Settings


class ServerSettings(Settings):
    """Everything the operator can set."""

    host: str = "127.0.0.1"
    port: int = Field(default=8000, ge=0, le=65_535)
    """0: any free port."""
    body_bytes: int = Field(default=65_536, ge=1_024, le=16_777_216)
    """The largest body of a request, in bytes."""
    queue: int = Field(default=64, ge=1, le=65_536)
    """Requests that one model holds at once, waiting or running."""
    queue_seconds: float = Field(default=2.0, ge=0, le=600)
    """How long a request waits for a place in a full queue."""
    deadline_seconds: float = Field(default=30.0, gt=0, le=3_600)
    """From the arrival of a request to its reply."""
    rate: int | None = Field(default=None, ge=0, le=1_000_000)
    """Requests per minute for each key or client address. 0: no limit. None: 60, or no limit on a
    loopback address."""
    keys: Path | None = None
    """File of hashed API keys. None: no key is required."""
    runs: Path | None = None
    """Directory of runs that may be watched; nothing outside it is read. None: no runs."""
    hosts: tuple[str, ...] = ()
    """Host names the server answers to besides its own address; `*`: any."""

    demo: Path | None = None
    """Where the page may train the demo model. None: training is not offered."""

    @property
    def is_public(self) -> bool:
        """Whether other machines can reach the address."""
        return not is_loopback(self.host)

    @property
    def requests_a_minute(self) -> int:
        """The rate limit; 0: none."""
        return (60 if self.is_public else 0) if self.rate is None else self.rate


def is_loopback(host: str) -> bool:
    """Whether an address can only be reached from this machine."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
