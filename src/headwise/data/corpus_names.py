"""Reads the name of a corpus in a recipe: a string or a mapping, one or several.

    known:NAME                  a public corpus that `headwise data fetch` downloaded
    pocket:SPLIT[:COUNT]        sentences of the built-in grammar
    any other string            a path; each task decides by the file name how to read it
    {path: …, limit: 10}        the same with options; the kind follows from the keys unless given

A language code is also the suffix of a file name (corpus/train.en), so it may contain only
characters of such a suffix.

Tested through the recipes of every task.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import pydantic

from headwise.errors import SettingsError

KindOfPath = Callable[[str, Mapping[str, Any]], str]
"""A function that finds the kind of a file from its path and the options given with it."""


_CODE = r"^\w[\w.-]*$"


def _check_code(code: str) -> str:
    if not re.match(_CODE, code):
        raise SettingsError(
            f"{code!r} is no language code; a code has letters, digits, '-', '_' and '.', and is "
            "the ending of a file's name: write e.g. en (of corpus/train.en), and the directory "
            "in data.train",
            f"{code!r} 不是语言代码；代码由字母、数字、'-'、'_' 和 '.' 组成，也就是文件名的后缀："
            "例如 en（对应 corpus/train.en），目录请写在 data.train 中",
        )
    return code


LanguageCode = Annotated[
    str,
    pydantic.Field(min_length=1, max_length=32, json_schema_extra={"pattern": _CODE}),
    pydantic.AfterValidator(_check_code),
]
"""Of a source, a target or a text."""


def expand(value: Any, kind_of_path: KindOfPath) -> Any:
    """The mapping for a corpus that is given as a string, or as a mapping without a kind."""
    if isinstance(value, str | Path):
        return _expand_name(str(value), {}, kind_of_path)
    if isinstance(value, Mapping) and "kind" not in value:
        if isinstance(path := value.get("path"), str):
            options = {key: item for key, item in value.items() if key != "path"}
            return _expand_name(path, options, kind_of_path) | options
        if "name" in value:
            return {**value, "kind": "known"}
    return value


def as_list(value: Any) -> Any:
    """A single value becomes a list of one, None an empty list."""
    return value if isinstance(value, list | tuple) else [] if value is None else [value]


def _expand_name(text: str, options: Mapping[str, Any], kind_of_path: KindOfPath) -> dict[str, Any]:
    if text.startswith("known:"):
        return {"kind": "known", "name": text.removeprefix("known:")}
    if text.startswith("pocket:"):
        split, _, count = text.removeprefix("pocket:").partition(":")
        return {"kind": "pocket", "split": split, **({"count": count} if count else {})}
    return {"kind": kind_of_path(text, options), "path": text}
