"""Checks the tag of a corpus: a word in angle brackets that stands before every source.

Tested with the recipes that name tags.
"""

import re
from typing import Annotated

import pydantic

from headwise.errors import SettingsError

_TAG = r"^<[\w.-]+>$"


def _check_tag(tag: str) -> str:
    if not re.fullmatch(_TAG, tag):
        raise SettingsError(
            f"{tag!r} is no tag; a tag is a word in angle brackets, such as <bt>",
            f"{tag!r} 不是标签；标签是尖括号中的一个词，例如 <bt>",
        )
    return tag


Tag = Annotated[
    str,
    pydantic.Field(max_length=32, json_schema_extra={"pattern": _TAG}),
    pydantic.AfterValidator(_check_tag),
]
