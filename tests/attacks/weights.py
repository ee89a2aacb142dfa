"""Files that pretend to be safetensors."""

import io
import json
import os
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

MIB = 1 << 20


class Bomb:
    """Unpickling it makes the directory `exploded`."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.mkdir, ("exploded",))


def with_header(header: bytes, data: bytes = b"") -> bytes:
    return struct.pack("<Q", len(header)) + header + data


def entry(shape: list[int], end: int, start: int = 0, dtype: str = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


def renamed_pickle(path: Path) -> None:
    path.write_bytes(pickle.dumps(Bomb()))


def renamed_torch_archive(path: Path) -> None:
    """What torch.save writes: a zip with a pickle inside."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(Bomb()))


def zip_bomb(path: Path) -> None:
    """64 MB of zeros in 64 kB."""
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("zeros", "w") as member,
    ):
        for _ in range(64):
            member.write(bytes(MIB))
    path.write_bytes(buffer.getvalue())


def huge_header(path: Path) -> None:
    """100 MB of real JSON: valid by the format, and a gigabyte of objects for whoever parses it."""
    piece = b'"%08d":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},'
    pieces = b"".join(piece % number for number in range(20_000))
    with path.open("wb") as file:
        size = 100 * MIB
        file.write(struct.pack("<Q", size) + b"{")
        written = 1
        while written + len(pieces) < size:
            file.write(pieces)
            written += len(pieces)
        file.write(b" " * (size - written - 1) + b"}")


def claimed_header(path: Path) -> None:
    """A header that says it is 2⁶² bytes long."""
    path.write_bytes(struct.pack("<Q", 1 << 62) + b"{}")


def claimed_tensor(path: Path) -> None:
    """A terabyte of weights in 60 bytes."""
    path.write_bytes(with_header(json.dumps({"output.weight": entry([1 << 38], 1 << 40)}).encode()))


def overflowing_shape(path: Path) -> None:
    """A shape whose product is 2⁶⁴, which is 0 in 64 bits."""
    path.write_bytes(
        with_header(json.dumps({"output.weight": entry([1 << 32, 1 << 32], 0)}).encode())
    )


def overlapping_tensors(path: Path) -> None:
    header = {"a": entry([4], 16), "b": entry([4], 24, start=8)}
    path.write_bytes(with_header(json.dumps(header).encode(), bytes(24)))


def deep_header(path: Path) -> None:
    path.write_bytes(with_header(b'{"a":' + b"[" * 100_000))


def many_tensors(path: Path, num_bytes: int = 15 * MIB) -> None:
    """As many tensors of nothing as the header holds; with the size that may be, hundreds of bytes
    of memory for each."""
    pieces = b",".join(
        b'"%x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}' % n for n in range(num_bytes // 56)
    )
    path.write_bytes(with_header(b"{" + pieces + b"}"))


def allowed_tensors(path: Path) -> None:
    many_tensors(path, 56 * (1 << 18) // 5)


def long_shape(path: Path) -> None:
    """One tensor of seven million dimensions."""
    path.write_bytes(
        with_header(
            b'{"a":{"dtype":"U8","shape":[' + b"1," * 7_000_000 + b'0],"data_offsets":[0,0]}}'
        )
    )


def many_remarks(path: Path) -> None:
    pieces = b",".join(b'"%x":""' % number for number in range(15 * MIB // 11))
    path.write_bytes(with_header(b'{"__metadata__":{' + pieces + b"}}"))


WEIGHTS: dict[str, Callable[[Path], None]] = {
    generator.__name__: generator
    for generator in (
        renamed_pickle,
        renamed_torch_archive,
        zip_bomb,
        huge_header,
        claimed_header,
        claimed_tensor,
        overflowing_shape,
        overlapping_tensors,
        deep_header,
        many_tensors,
        allowed_tensors,
        long_shape,
        many_remarks,
    )
}
