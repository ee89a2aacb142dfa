"""Clean lines: what may enter a corpus or a tokenizer, decided in one pass over the characters.

A line is clean when it can be stored as UTF-8 (no lone surrogates) and holds no control characters
except the tab. `clean_line` drops what never carries meaning (a byte order mark, carriage returns,
control characters); it works by a translation table, so its time is linear in the length whatever
the text is.

Tested against: idempotence, linear time on attack strings, the Unicode category of every character.
"""

import unicodedata

# C0 and C1 controls except tab; U+FEFF (byte order mark); noncharacters are left alone, UTF-8 can
# hold them.
_DROPPED = {code: None for code in [*range(0x20), *range(0x7F, 0xA0), 0xFEFF] if code != 0x09}
_CONTROL = frozenset(chr(code) for code in _DROPPED if code != 0xFEFF)


def has_control_characters(line: str) -> bool:
    """True for a line with control characters (NUL, escape, form feed …) other than tab."""
    return not (line.isprintable() or _CONTROL.isdisjoint(line))


def clean_line(line: str) -> str:
    """The line without control characters, byte order marks and lone surrogates; spaces at both
    ends go too.
    """
    if not line.isprintable():
        line = line.translate(_DROPPED)
        if not line.isascii():
            line = line.encode("utf-8", "ignore").decode("utf-8")
    return line.strip()


def is_clean(line: str) -> bool:
    """Whether `clean_line` would leave the line as it is, spaces at the ends aside."""
    return line.isprintable() or line.strip() == clean_line(line)


def letters_and_digits(line: str) -> str:
    """Lower case, letters and digits only: what two spellings of one sentence have in common.

    Normalised by NFKC first, so that full-width letters and composed accents do not make sentences
    different.
    """
    folded = (line if line.isascii() else unicodedata.normalize("NFKC", line)).casefold()
    return "".join(filter(str.isalnum, folded))
