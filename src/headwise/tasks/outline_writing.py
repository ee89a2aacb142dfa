"""Writes the outline of all recipe types, by which recipes are checked before torch is loaded.

    python -m headwise.tasks.outline_writing

The command is run after a change of any settings type; a test fails until then. The file and its
use are described in settings/outline.py.
"""

import json
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pydantic
from pydantic.fields import FieldInfo

from headwise.settings.added_kinds import OpenChoice
from headwise.settings.checking import Settings
from headwise.settings.kind import KindOr
from headwise.settings.outline import FILE, PLAIN
from headwise.tasks.table import TASKS

LIGHT_MODULES = frozenset(
    f"headwise.{name}"
    for name in (
        "settings.checking",
        "settings.kind",
        "tasks.any_recipe",
        "data.labels.choices",
        "data.pairs.choices",
        "data.pairs.segmentation.choices",
        "data.text.choices",
        "decoding.generation_settings",
        "decoding.rules.length_limit",
        "evaluation.rewards.chrf",
        "evaluation.rewards.constant",
        "evaluation.rewards.exact_match",
        "evaluation.rewards.sentence_bleu",
        "models.ngram.choices",
        "neighbours.settings",
        "tasks.word_vectors.recipe",
        "training.choices",
        "training.sampling_choices",
        "training.sequence.choices",
    )
)
"""Modules with settings that do not load torch (tests/settings/test_light_imports.py): their types
are used as they are."""
BOUNDS = (
    "ge",
    "gt",
    "le",
    "lt",
    "multiple_of",
    "min_length",
    "max_length",
    "allow_inf_nan",
)
SettingsClass = type[pydantic.BaseModel]


def write_outline() -> str:
    """The text of the file."""
    entries: dict[str, Any] = {}
    tasks = {entry.word: _add(entry.recipe_type, entries) for entry in TASKS}
    lines = [f"{json.dumps(name)}: {_line(entries[name])}" for name in sorted(entries)]
    return f'{{"tasks": {_line(tasks)},\n"types": {{\n' + ",\n".join(lines) + "\n}}\n"


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _add(kind: SettingsClass, entries: dict[str, Any]) -> str:
    name = kind.__name__
    if name in entries:
        return name
    if kind.__module__ in LIGHT_MODULES:
        entries[name] = f"{kind.__module__}:{name}"
        return name
    base = next(one for one in kind.__mro__ if one.__module__ in LIGHT_MODULES)
    assert issubclass(base, Settings)
    entry: dict[str, Any] = {}
    entries[name] = entry
    if base.__name__ not in ("Settings", "Kind", "AnyRecipe"):
        entry["base"] = f"{base.__module__}:{base.__name__}"
    checks = _checks(kind)
    if checks:
        entry["checks"] = checks
    if "kind" in kind.model_fields and kind.__doc__:
        entry["doc"] = " ".join(kind.__doc__.split())
    if "kinds" in checks:
        entry["follows"] = kind.follows  # type: ignore[attr-defined]
    inherited = base.model_fields if "base" in entry else {}
    entry["fields"] = {
        key: _field(field, f"{name}.{key}", entries)
        for key, field in kind.model_fields.items()
        if repr(field) != repr(inherited.get(key))
    }
    return name


def _checks(kind: SettingsClass) -> list[str]:
    """Whether validators run before or after the type's fields, other than those of light types."""
    found = set()
    for name, validator in kind.__pydantic_decorators__.model_validators.items():
        owner = next(one for one in kind.__mro__ if name in vars(one))
        if owner.__module__ not in LIGHT_MODULES:
            is_recipe = "task" in kind.model_fields
            mode = validator.info.mode
            found.add("kinds" if mode == "before" and is_recipe else mode)
    assert not kind.__pydantic_decorators__.field_validators
    return sorted(found)


def _field(field: FieldInfo, place: str, entries: dict[str, Any]) -> list[Any]:
    form = _annotated(field.annotation, field, place, entries)
    if field.is_required():
        return [form]
    default = field.default
    if isinstance(default, pydantic.BaseModel):
        return [form, {"kind": getattr(default, "kind", None)}]
    return [form, default if place.endswith((".kind", ".task")) else None]


def _annotated(annotation: Any, field: FieldInfo, place: str, entries: dict[str, Any]) -> Any:
    """A form with the bounds and the discriminator that a field or an `Annotated` gives it."""
    bounds: dict[str, Any] = {}
    if field.discriminator is not None:
        bounds["discriminator"] = field.discriminator
    for one in field.metadata:
        if isinstance(one, OpenChoice):
            bounds["discriminator"] = "kind"
        elif isinstance(one, str):
            continue
        elif isinstance(one, pydantic.Discriminator) and isinstance(one.discriminator, KindOr):
            return _tagged(annotation, one.discriminator, place, entries)
        else:
            held = {name: getattr(one, name) for name in BOUNDS if hasattr(one, name)}
            if not held:
                return {"unseen": place}
            bounds |= {name: value for name, value in held.items() if value is not None}
    form = _form(annotation, place, entries)
    return {"of": form, **bounds} if bounds else form


def _tagged(annotation: Any, kind_or: KindOr, place: str, entries: dict[str, Any]) -> Any:
    """A choice whose kind may be left out."""
    tagged = {}
    for member in get_args(annotation):
        kind, tag = get_args(member)
        tagged[tag.tag] = _form(kind, place, entries)
    return {"tagged": tagged, "usual": kind_or.usual}


def _form(annotation: Any, place: str, entries: dict[str, Any]) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, pydantic.BaseModel):
        return _add(annotation, entries)
    for name, plain in PLAIN.items():
        if annotation is plain:
            return name
    members = get_args(annotation)
    origin = get_origin(annotation)
    if origin is Annotated:
        return _annotated(members[0], FieldInfo.from_annotation(annotation), place, entries)
    if origin is Literal:
        return {"words": list(members)}
    if origin in (Union, types.UnionType):
        return {"any_of": [_form(one, place, entries) for one in members]}
    if origin is tuple and members[-1] is Ellipsis:
        return {"list": _form(members[0], place, entries)}
    if origin is tuple:
        return {"row": [_form(one, place, entries) for one in members]}
    if origin in (dict, Mapping):
        return {"parts": [_form(one, place, entries) for one in members]}
    raise AssertionError(f"{place}: the outline has no form for {annotation}")


if __name__ == "__main__":
    Path(FILE).write_text(write_outline(), encoding="utf-8")
