"""Changes one value of a recipe from the command line: `key.path=value`.

    training.steps=100     model.norm.kind=rms
    data.train='[corpus/a, {path: corpus/b, weight: 2}]'

The part after `=` is read as YAML. Changing a `kind` keeps the keys that the new kind also has
(kind_change.py) and reports the others; if the settings type is unknown, the choice starts empty.

Tested against: the same change made by hand in the file.
"""

import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any

from headwise.errors import SettingsError
from headwise.language import say
from headwise.settings.kind_change import SettingsClass, find_kind, keep_known
from headwise.settings.reading import read_yaml

logger = logging.getLogger(__name__)
Note = tuple[str, str]
"""What a user is told, in English and Chinese."""


def apply_overrides(
    data: Mapping[str, Any], overrides: Sequence[str], *, settings: SettingsClass | None = None
) -> dict[str, Any]:
    """A changed copy of the data; later overrides win over earlier ones.

    `settings` is the type that the data will be checked against; it tells which keys a new kind can
    keep.
    """
    result, notes = change_values(data, overrides, settings=settings)
    tell_notes(notes)
    return result


def tell_notes(notes: Sequence[Note]) -> None:
    """Warn of keys that were left out."""
    for en, zh in notes:
        logger.warning("%s", say(en, zh))


def change_values(
    data: Mapping[str, Any], overrides: Sequence[str], *, settings: SettingsClass | None = None
) -> tuple[dict[str, Any], list[Note]]:
    """The changed copy, and what there is to say of keys that were left out."""
    result = _deep_copy(data)
    notes: list[Note] = []
    for override in _kinds_before_their_keys(overrides):
        path, equals, text = override.partition("=")
        keys = path.strip().split(".")
        if not equals or not all(re.fullmatch(r"[A-Za-z_]\w*|\d+", key) for key in keys):
            raise SettingsError(
                f"{override!r} is not an override; write key.path=value, e.g. training.steps=100",
                f"{override!r} 不是覆盖项；请写成 键.路径=值，例如 training.steps=100",
            )
        value = _read_value(override, text)
        if keys[-1] == "kind":
            notes.extend(_change_kind(result, keys[:-1], value, settings))
        _set_path(result, keys, value, override)
    return result, notes


def _change_kind(
    data: dict[str, Any], keys: Sequence[str], kind: Any, settings: SettingsClass | None
) -> list[Note]:
    """Remove the keys of a choice that its new kind does not have, and say so."""
    choice: Any = data
    for key in keys:
        is_there = isinstance(choice, dict) or (
            isinstance(choice, list) and key.isdigit() and int(key) < len(choice)
        )
        choice = (
            None
            if not is_there
            else choice.get(key)
            if isinstance(choice, dict)
            else choice[int(key)]
        )
    if not isinstance(choice, dict) or choice.get("kind") == kind:
        return []
    new = None if settings is None else find_kind(settings, data, keys, kind)
    kept, dropped = ({}, ()) if new is None else keep_known(choice, new, kind)
    choice.clear()
    choice.update(kept)
    if not dropped:
        return []
    place = ".".join((*keys, "kind"))
    return [
        (
            f"{place}={kind} does not have {', '.join(dropped)} as the recipe sets it; left out",
            f"{place}={kind} 没有配方中所设的 {'、'.join(dropped)}；已略去",
        )
    ]


def _kinds_before_their_keys(overrides: Sequence[str]) -> list[str]:
    """Move a change of kind before the keys of its choice, which it would otherwise remove, but
    behind an earlier change of the same kind: the later one wins."""
    ordered: list[str] = []
    for override in overrides:
        path = override.partition("=")[0].strip()
        place = len(ordered)
        if path.split(".")[-1] == "kind":
            choice = path.removesuffix("kind")
            earlier = [other.partition("=")[0].strip() for other in ordered]
            same = [index for index, other in enumerate(earlier) if other == path]
            place = next(
                (
                    index
                    for index, other in enumerate(earlier)
                    if other.startswith(choice) and index > max(same, default=-1)
                ),
                place,
            )
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
        data[last] = value
    else:
        raise _no_place(override, last)


def _no_place(override: str, key: str) -> SettingsError:
    return SettingsError(
        f"{override!r}: there is no place for {key!r}, the value above it has no such part; "
        "set the whole value instead, e.g. model.norm='{kind: rms}'",
        f"{override!r}：{key!r} 的上一级没有这一部分；请整体设置，例如 model.norm='{{kind: rms}}'",
    )
