"""Tokenizers made to take much memory: a few bytes of a file become an object of a hundred."""

from collections.abc import Callable
from pathlib import Path

MIB = 1 << 20
PIECE, SELF_TEST = b"\x0a", b"\x22"
"""Fields 1 and 4 of sentencepiece's outermost message; a message follows with its length."""
UNKNOWN = b"\x0a\x09\x0a\x05<unk>\x18\x02"


def varint(number: int) -> bytes:
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


def message(field: bytes, content: bytes) -> bytes:
    return field + varint(len(content)) + content


def empty_pieces(place: Path) -> None:
    """Ten million pieces of two bytes."""
    (place / "pieces.model").write_bytes(UNKNOWN + message(PIECE, b"") * 10_000_000)


def as_many_pieces_as_fit(place: Path) -> None:
    (place / "pieces.model").write_bytes(
        UNKNOWN + message(PIECE, message(PIECE, b"a")) * (31 * MIB // 5)
    )


def self_tests(place: Path) -> None:
    """Samples that nobody asks for, parsed all the same."""
    samples = message(PIECE, message(PIECE, b"") + b"\x12\x00") * (31 * MIB // 6)
    (place / "pieces.model").write_bytes(UNKNOWN + message(SELF_TEST, samples))


def small_self_tests(place: Path) -> None:
    """As many as may be."""
    samples = message(PIECE, message(PIECE, b"") + b"\x12\x00") * (MIB // 6 - 10)
    (place / "pieces.model").write_bytes(UNKNOWN + message(SELF_TEST, samples))


def too_large(place: Path) -> None:
    with (place / "pieces.model").open("wb") as file:
        file.truncate(100 * MIB)


def endless_number(place: Path) -> None:
    """A length that never ends, and one of 2⁶² bytes."""
    (place / "pieces.model").write_bytes(UNKNOWN + PIECE + b"\xff" * MIB)


def cut_off(place: Path) -> None:
    (place / "pieces.model").write_bytes(UNKNOWN + PIECE + varint(1 << 62) + b"a")


def group(place: Path) -> None:
    """A kind of field that sentencepiece never writes."""
    (place / "pieces.model").write_bytes(UNKNOWN + b"\x0b" * MIB)


def lists_for_words(place: Path) -> None:
    """Twenty million empty lists as the words of a vocabulary."""
    (place / "pieces.json").unlink()
    (place / "vocabulary.json").write_bytes(
        b'{"kind": "words", "entries": [' + b"[]," * 20_000_000 + b"[]]}"
    )


def probes_of_nothing(place: Path) -> None:
    (place.parent / "probes.json").write_bytes(b"[" + b"{}," * (7 * MIB // 3) + b"{}]")


TOKENIZERS: dict[str, Callable[[Path], None]] = {
    work.__name__.replace("_", " "): work
    for work in (
        empty_pieces,
        as_many_pieces_as_fit,
        self_tests,
        small_self_tests,
        too_large,
        endless_number,
        cut_off,
        group,
        lists_for_words,
        probes_of_nothing,
    )
}
