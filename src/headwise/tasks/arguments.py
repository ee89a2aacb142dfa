"""Type checks for the arguments of Python callers: paths, one text, or a list of texts.

The public functions call them first, so that a wrong type is reported by the name of the argument
and not by an error deep inside the library.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headwise.errors import UsageError


def require_path(value: Any, name: str, example: str) -> Path:
    """A path from a string or a Path."""
    if not isinstance(value, str | Path) or "\0" in str(value):
        given = repr(value) if isinstance(value, str | Path) else f"a {type(value).__name__}"
        raise UsageError(
            f"{name} is {given}; give a path, e.g. {example!r}",
            f"{name} 是 {given}；请给出路径，例如 {example!r}",
        )
    return Path(value)


def require_texts(value: Any, name: str) -> Sequence[str]:
    """A list of strings; one string by itself is a common slip, and a sequence of letters."""
    if (
        isinstance(value, str)
        or not isinstance(value, Sequence)
        or not all(isinstance(one, str) for one in value)
    ):
        raise UsageError(
            f"{name} is {value!r:.60}; give a list of texts, e.g. ['training.steps=100']",
            f"{name} 是 {value!r:.60}；请给出文本列表，例如 ['training.steps=100']",
        )
    for one in value:
        require_text(one, name)
    return value


def require_text(value: Any, name: str) -> str:
    """A string that UTF-8 can hold; bytes of an argument that are no UTF-8 arrive as lone
    surrogates.
    """
    if not isinstance(value, str):
        raise UsageError(
            f"{name} is a {type(value).__name__}; give a text, e.g. 'the dog sleeps'",
            f"{name} 是 {type(value).__name__}；请给出一段文本，例如 'the dog sleeps'",
        )
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            near = value[max(0, error.start - 20) : error.start + 20]
            raise UsageError(
                f"{name} holds something that is not UTF-8 at character {error.start + 1}: "
                f"{near!r}; give text in UTF-8",
                f"{name} 的第 {error.start + 1} 个字符不是 UTF-8：{near!r}；请给出 UTF-8 文本",
            ) from error
    return value
