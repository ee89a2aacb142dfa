"""`Finding`: what `headwise doctor` found out about one of the things that it examined."""

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Finding:
    """One thing that was examined; `damaged` makes the exit status 3."""

    topic: str
    state: Literal["good", "note", "damaged"]
    text: str

    def as_dict(self) -> dict[str, Any]:
        return {"topic": self.topic, "state": self.state, "text": self.text}
