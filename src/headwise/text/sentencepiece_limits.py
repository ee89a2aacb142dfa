"""Limits the memory that a sentencepiece model can take, before sentencepiece reads it.

A model is a protobuf message in which field 1, repeated, is a piece. An empty piece takes two bytes
of the file and a hundred in memory, so that a small hostile file could take gigabytes. This file
walks over the fields of the outermost message and counts pieces without creating objects. Tested
with the hostile tokenizers of tests/attacks and with models of our own.
"""

MAX_PIECES = 1_000_000
"""The largest text.size of a recipe; sentencepiece takes 240 bytes of memory for each, 240 MB in
all."""
MAX_OTHER_BYTES = 1 << 20
"""Of everything that is not a piece: training options and the normalisation table (about 250 kB).
"""


def is_bounded(model: bytes) -> bool:
    """Whether parsing the model takes bounded memory."""
    place, num_pieces, other_bytes = 0, 0, 0
    try:
        while place < len(model):
            key, start = read_varint(model, place)
            match key & 7:
                case 0:
                    _, place = read_varint(model, start)
                case 1:
                    place = start + 8
                case 2:
                    length, start = read_varint(model, start)
                    place = start + length
                case 5:
                    place = start + 4
                case _:
                    return False
            is_piece = key >> 3 == 1
            num_pieces += is_piece
            other_bytes += 0 if is_piece else place - start
            if num_pieces > MAX_PIECES or other_bytes > MAX_OTHER_BYTES:
                return False
    except IndexError:
        return False
    return place == len(model)


def read_varint(model: bytes, place: int) -> tuple[int, int]:
    """A varint of protobuf (seven bits a byte, lowest first), and the index after it."""
    value, shift = 0, 0
    while model[place] & 0x80 and shift < 63:
        value |= (model[place] & 0x7F) << shift
        shift += 7
        place += 1
    return value | model[place] << shift, place + 1
