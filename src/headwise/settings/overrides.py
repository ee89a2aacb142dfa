"""`key.path=value`: one value of a recipe changed from the command line, and nothing else can.

    training.steps=100     model.norm.kind=rms     data.train='[corpus/a, {path: corpus/b, weight: 2}]'

The part right of `=` is read as YAML. Changing a `kind` starts that choice afresh: the keys of the old kind would not fit.

Tested against: the same change made by hand in the file.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from headwise.errors import SettingsError
from headwise.settings.reading import read_yaml


def apply_overrides(data: Mapping[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """A changed copy of the data; later overrides win over earlier ones, whatever the order of a kind and its keys."""
    result = _deep_copy(data)
    for override in _kinds_before_their_keys(overrides):
        path, equals, text = override.partition("=")
        keys = path.strip().split(".")
        if not equals or not all(re.fullmatch(r"[A-Za-z_]\w*|\d+", key) for key in keys):
            raise SettingsError(
                f"{override!r} is not an override; write key.path=value, e.g. training.steps=100",
                f"{override!r} 不是覆盖项；请写成 键.路径=值，例如 training.steps=100",
            )
        _set_path(result, keys, _read_value(override, text), override)
    return result


def _kinds_before_their_keys(overrides: Sequence[str]) -> list[str]:
    """A change of kind empties its choice, so it moves before the keys of that choice: they would be lost in silence."""
    ordered: list[str] = []
    for override in overrides:
        path = override.partition("=")[0].strip()
        place = len(ordered)
        if path.endswith(".kind"):
            choice = path.removesuffix("kind")
            place = next((index for index, other in enumerate(ordered) if other.strip().startswith(choice)), place)
        ordered.insert(place, override)
    return ordered


def _read_value(override: str, text: str) -> Any:
    try:
        return read_yaml(text)
    except SettingsError as error:
        raise SettingsError(f"{override!r}: {error.en}", f"{override!r}：{error.zh}") from error


def _deep_copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _deep_copy(child) for key, child in value.items()}
    return [_deep_copy(child) for child in value] if isinstance(value, list) else value


def _set_path(data: Any, keys: Sequence[str], value: Any, override: str) -> None:
    for key in keys[:-1]:
        if isinstance(data, list) and key.isdigit() and int(key) < len(data):
            data = data[int(key)]
        elif isinstance(data, dict):
            if data.get(key) is None:
                data[key] = {}
            data = data[key]
        else:
            raise _no_place(override, key)
    last = keys[-1]
    if isinstance(data, list) and last.isdigit() and int(last) < len(data):
        data[int(last)] = value
    elif isinstance(data, dict):
        if last == "kind" and data.get("kind") != value:
            data.clear()
        data[last] = value
    else:
        raise _no_place(override, last)


def _no_place(override: str, key: str) -> SettingsError:
    return SettingsError(
        f"{override!r}: there is no place for {key!r}, the value above it has no such part; "
        "set the whole value instead, e.g. model.norm='{kind: rms}'",
        f"{override!r}：{key!r} 的上一级没有这一部分；请整体设置，例如 model.norm='{{kind: rms}}'",
    )
