"""Rebuilds the types of a recipe without the code that they configure, to check it before torch is
loaded.

Settings are declared beside the code that they build, so importing them imports torch, which takes
seconds. `outline.json` has what their types say: names, kinds, keys, forms and bounds of values. It
is written from the types themselves (tasks/outline_writing.py). Here it becomes pydantic classes
again, which `check_settings` takes like the real ones. Types in modules that do not load torch are
not copied but imported. What an outline does not have are validators of the other types: it notes
where one would have run (`note_unseen`).

Tested against: the messages of the real types, for many mistakes in recipes of every task.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, reduce
from importlib import import_module
from operator import or_
from pathlib import Path
from types import NoneType, SimpleNamespace
from typing import Annotated, Any, ClassVar, Literal, Self

import pydantic

from headwise.settings.checking import Settings
from headwise.settings.kind import KindOr
from headwise.settings.problems import kinds_at

FILE = Path(__file__).with_suffix(".json")
MODULE = "outline"
"""Where an outlined class says it is from: no module of Headwise, whose classes are the real
ones."""
PLAIN: Mapping[str, Any] = {
    "int": int,
    "float": float,
    "str": str,
    "bool": bool,
    "none": NoneType,
    "path": Path,
    "any": Any,
}
_unseen: ContextVar[list[tuple[str, Any]] | None] = ContextVar("unseen", default=None)


@contextmanager
def note_unseen() -> Iterator[list[tuple[str, Any]]]:
    """Collect the values that the real types would have checked further, with the names of their
    types."""
    noted: list[tuple[str, Any]] = []
    token = _unseen.set(noted)
    try:
        yield noted
    finally:
        _unseen.reset(token)


def _note(name: str, value: Any) -> None:
    noted = _unseen.get()
    if noted is not None:
        noted.append((name, value))


class _Outlined(Settings):
    """Base of the classes that are rebuilt; a default is that of the real type or its kind alone,
    and not checked."""

    model_config = pydantic.ConfigDict(
        validate_default=False, defer_build=True, use_attribute_docstrings=False
    )


class _CheckedAfter(_Outlined):
    """A type with validators that an outline does not have."""

    @pydantic.model_validator(mode="after")
    def _note_after(self) -> Self:
        _note(type(self).__name__, self)
        return self


class _CheckedBefore(_Outlined):
    """A type that changes what it is given."""

    @pydantic.model_validator(mode="before")
    @classmethod
    def _note_before(cls, data: Any) -> Any:
        _note(cls.__name__, data)
        return data


class _ChoosesKind(_Outlined):
    """A recipe in which the kind of one section, if it has none, follows from those of others."""

    follows: ClassVar[str]
    """The name of that section."""

    @pydantic.model_validator(mode="before")
    @classmethod
    def _note_kinds(cls, data: Any) -> Any:
        following = data.get(cls.follows) if isinstance(data, Mapping) else None
        if isinstance(following, Mapping) and "kind" not in following:
            kinds = {
                name: part["kind"]
                for name, part in data.items()
                if isinstance(part, Mapping) and part.get("kind") in kinds_at(cls, [name])
            }
            if kinds:
                _note(cls.__name__, kinds)
        return data


_BASES: Mapping[str, type[_Outlined]] = {
    "": _Outlined,
    "after": _CheckedAfter,
    "before": _CheckedBefore,
    "kinds": _ChoosesKind,
}


def outline_of(task: object) -> type[pydantic.BaseModel] | None:
    """The outlined recipe type of a built-in task; None: there is none."""
    name = read_outline()["tasks"].get(task) if isinstance(task, str) else None
    return None if name is None else _class_maker().find(name)


@cache
def read_outline() -> Any:
    """The content of the file: the recipe type of each task, and every type."""
    return json.loads(FILE.read_text(encoding="utf-8"))


@cache
def _class_maker() -> "_ClassMaker":
    return _ClassMaker(read_outline()["types"])


class _ClassMaker:
    """Makes classes of the entries of the file, each once."""

    def __init__(self, entries: Mapping[str, Any]) -> None:
        self._entries = entries
        self._made: dict[str, type[pydantic.BaseModel]] = {}

    def find(self, name: str) -> type[pydantic.BaseModel]:
        if name not in self._made:
            self._made[name] = self._make(name, self._entries[name])
        return self._made[name]

    def _make(self, name: str, entry: Any) -> type[pydantic.BaseModel]:
        if isinstance(entry, str):
            return imported(entry)
        own = [_BASES[check] for check in entry.get("checks", ("",))]
        given = [imported(entry["base"])] if "base" in entry else []
        create: Any = pydantic.create_model
        made: type[pydantic.BaseModel] = create(
            name,
            __base__=(*given, *own),
            __module__=MODULE,
            __doc__=entry.get("doc", ""),
            **{key: self._field(value) for key, value in entry["fields"].items()},
        )
        if "follows" in entry:
            made.follows = entry["follows"]  # type: ignore[attr-defined]
        return made

    def _field(self, field: Any) -> tuple[Any, Any]:
        form, *default = field
        if not default:
            return self._form(form), ...
        kind = default[0].get("kind") if isinstance(default[0], Mapping) else None
        return self._form(form), default[0] if kind is None else SimpleNamespace(kind=kind)

    def _form(self, form: Any) -> Any:
        if isinstance(form, str):
            return PLAIN[form] if form in PLAIN else self.find(form)
        match form:
            case {"words": words}:
                return Literal[tuple(words)]
            case {"any_of": members}:
                return reduce(or_, [self._form(one) for one in members])
            case {"list": member}:
                return tuple[self._form(member), ...]  # type: ignore[misc]
            case {"row": members}:
                return tuple[tuple(self._form(one) for one in members)]  # type: ignore[misc]
            case {"parts": [key, value]}:
                return dict[self._form(key), self._form(value)]  # type: ignore[misc]
            case {"tagged": tagged, "usual": usual}:
                parts = [
                    Annotated[self._form(one), pydantic.Tag(tag)] for tag, one in tagged.items()
                ]
                return Annotated[reduce(or_, parts), pydantic.Discriminator(KindOr(usual))]
            case {"unseen": place}:
                return Annotated[Any, pydantic.AfterValidator(lambda value: _noted(place, value))]
            case {"of": inner}:
                bounds: Any = {name: bound for name, bound in form.items() if name != "of"}
                return Annotated[self._form(inner), pydantic.Field(**bounds)]
        raise AssertionError(f"the outline has no form {form}")


def _noted(place: str, value: Any) -> Any:
    _note(place, value)
    return value


def imported(place: str) -> Any:
    """The object at `module:name`."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
