"""What the server and its searching processes say to each other: frames of JSON in a pipe.

    4 bytes, big-endian: how long it is  |  JSON

    to the process      {"order": 7, "seconds": 30.0, "settings": "…", "sentences": [[ids, prefix, number], …]}
                        {"leave": 7}
                        {"ping": true}                        answered as soon as it is read, between two steps
    from the process    {"begun": true}                       once, when the model is read
                        {"order": 7, "place": 0, "found": [[tokens, score, log_probability, is_whole], …]}
                        {"order": 7, "error": ["…", "…"]}     {"order": 7, "bug": "ZeroDivisionError"}
                        {"pong": true}
                        {"batches": 12, "parts": 300, "waiting": 0}

Texts stay in the server: here are numbers of tokens only, so both must have the same model
(`held_files.py`). Tested: frames cut anywhere, frames too large.
"""

import json
from collections.abc import Iterator
from typing import Any

MAX_FRAME_BYTES = 64 * 2**20
HEAD = 4


def write_frame(value: Any) -> bytes:
    content = json.dumps(value, separators=(",", ":")).encode()
    return len(content).to_bytes(HEAD, "big") + content


class FrameReader:
    """Bytes as they come in, frames as they are complete."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> Iterator[Any]:
        self._bytes += data
        place = 0
        while len(self._bytes) >= place + HEAD:
            end = place + HEAD + int.from_bytes(self._bytes[place : place + HEAD], "big")
            if end - place > MAX_FRAME_BYTES:
                raise ValueError(f"a frame of {end - place:,} bytes")
            if len(self._bytes) < end:
                break
            yield json.loads(self._bytes[place + HEAD : end])
            place = end
        del self._bytes[:place]
