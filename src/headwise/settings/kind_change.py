"""Decides which keys survive a change of `kind`: those that the new kind also has and accepts.

    model: {kind: encoder, dim: 64, layers: 2, dropout: 0.2}
    model.kind=word     →  {kind: word, dim: 64, dropout: 0.2}

A choice is a union of settings types that differ in `kind`; the type at the position of the change
is found by following the keys through the type of the recipe. Tested against: unions by hand, and
every kind of the shipped recipes.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, get_args

import pydantic

from headwise.errors import SettingsError

SettingsClass = type[pydantic.BaseModel]
MAX_AT_ODDS = 3
"""At most this many keys are removed because the new kind has them but rejects their values; the
check reports what is still wrong."""


def find_kind(
    settings: SettingsClass, data: Any, keys: Sequence[str], kind: Any
) -> SettingsClass | None:
    """The settings type of this kind at the end of the keys, or None."""
    types = [settings]
    for key in keys:
        if isinstance(data, Mapping):
            here = [
                one for one in types if data.get("kind") is None or data["kind"] in _kinds(one)
            ] or types
            fields = [one.model_fields[key] for one in here if key in one.model_fields]
            types = [member for field in fields for member in _members(field.annotation)]
            data = data.get(key)
        elif isinstance(data, list) and key.isdigit() and int(key) < len(data):
            data = data[int(key)]  # a list's type was looked through with that of its field
    return next((one for one in types if kind in _kinds(one)), None)


def keep_known(
    data: Mapping[str, Any], new: SettingsClass, kind: Any
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The keys of the old kind that the new one accepts; and the names of the others."""
    known = {key: value for key, value in data.items() if key != "kind" and _takes(new, key, value)}
    at_odds = (
        out
        for count in range(MAX_AT_ODDS + 1)
        for out in combinations(known, count)
        if _is_valid(
            new, {"kind": kind} | {key: value for key, value in known.items() if key not in out}
        )
    )
    out = next(at_odds, ())
    kept = {key: value for key, value in known.items() if key not in out}
    return kept, tuple(key for key in data if key != "kind" and key not in kept)


def _is_valid(settings: SettingsClass, data: Mapping[str, Any]) -> bool:
    try:
        settings.model_validate(dict(data))
    except (pydantic.ValidationError, SettingsError):
        return False
    return True


def _takes(settings: SettingsClass, key: str, value: Any) -> bool:
    field = settings.model_fields.get(key)
    if field is None:
        return False
    try:
        pydantic.TypeAdapter(field.rebuild_annotation()).validate_python(value)
    except (pydantic.ValidationError, SettingsError):
        return False
    return True


def _kinds(settings: SettingsClass) -> tuple[Any, ...]:
    field = settings.model_fields.get("kind")
    return () if field is None else get_args(field.annotation)


def _members(annotation: Any) -> list[SettingsClass]:
    """The settings types in an annotation: of a union, a list, an optional."""
    if isinstance(annotation, type) and issubclass(annotation, pydantic.BaseModel):
        return [annotation]
    return [member for part in get_args(annotation) for member in _members(part)]
