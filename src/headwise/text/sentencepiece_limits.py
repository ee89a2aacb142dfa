"""Whether a sentencepiece model takes bounded memory to parse: its pieces are counted before
sentencepiece makes objects of them.

A model is a protobuf message; field 1, repeated, is a piece. Two bytes of the file, an empty piece,
become a hundred in memory, so a small hostile file would take gigabytes. The fields of the
outermost message are walked over here and nothing is made of them. Tested with the hostile
tokenizers of tests/attacks, and by models of our own.
"""

MAX_PIECES = 1_000_000
"""As many as a recipe may ask for (text.size): sentencepiece takes 240 bytes of memory for each,
240 MB in all."""
MAX_OTHER_BYTES = 1 << 20
"""Of what is no piece: how it was trained and the table of normalisation (a quarter of a megabyte)."""


def is_bounded(model: bytes) -> bool:
    """Whether a model takes bounded memory to parse: two bytes of an empty message become a
    hundred.

    The fields of the outermost message are counted without making objects of them: field 1 is a
    piece.
    """
    place, num_pieces, other_bytes = 0, 0, 0
    try:
        while place < len(model):
            key, start = _read_varint(model, place)
            match key & 7:
                case 0:
                    _, place = _read_varint(model, start)
                case 1:
                    place = start + 8
                case 2:
                    length, start = _read_varint(model, start)
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


def _read_varint(model: bytes, place: int) -> tuple[int, int]:
    """A number of the format (seven bits a byte, the lowest first), and where the next thing
    begins.
    """
    value, shift = 0, 0
    while model[place] & 0x80 and shift < 63:
        value |= (model[place] & 0x7F) << shift
        shift += 7
        place += 1
    return value | model[place] << shift, place + 1
