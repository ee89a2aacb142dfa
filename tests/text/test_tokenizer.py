"""The ids of special tokens are written down once."""

import re
from pathlib import Path

import headwise

SOURCE = Path(headwise.__file__).parent


def test_special_ids_are_defined_in_one_module() -> None:
    defined = re.compile(r"^(?:PAD|BOS|EOS|UNKNOWN|NUM_SPECIAL)(?:, \w+)* = ", re.MULTILINE)
    found = [
        path.relative_to(SOURCE)
        for path in SOURCE.rglob("*.py")
        if defined.search(path.read_text("utf-8"))
    ]
    assert found == [Path("text/tokenizer.py")]
