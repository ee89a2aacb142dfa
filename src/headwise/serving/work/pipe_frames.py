"""Messages between the server and its worker processes: JSON frames in a pipe.

    4 bytes, big-endian: length  |  JSON

    to the process      {"job": 7, "seconds": 30.0, "rank": 1.5, "settings": "…",
                         "sentences": [[ids, prefix, number], …]}
                        {"cancel": 7}
                        {"ping": true}             answered between two steps
    from the process    {"started": true}          once, when the model is loaded
                        {"job": 7, "index": 0, "seconds": 0.02,
                         "found": [[tokens, log_probability, score, is_finished], …]}
                        {"job": 7, "error": ["…", "…"]}   {"job": 7, "bug": "ZeroDivisionError"}
                        {"pong": true}
                        {"batches": 12, "parts": 300, "waiting": 0}

Texts stay in the server: frames hold token ids, so both sides need the same model
(`bundle_files.py`). Tested: frames cut anywhere, frames too large.
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
    """Takes bytes as they arrive and yields complete frames."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> Iterator[Any]:
        self._bytes += data
        start = 0
        while len(self._bytes) >= start + HEAD:
            end = start + HEAD + int.from_bytes(self._bytes[start : start + HEAD], "big")
            if end - start > MAX_FRAME_BYTES:
                raise ValueError(f"a frame of {end - start:,} bytes")
            if len(self._bytes) < end:
                break
            yield json.loads(self._bytes[start + HEAD : end])
            start = end
        del self._bytes[:start]
