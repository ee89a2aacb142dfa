"""Finds the kinds that other packages add to recipes, through Python's entry points.

A package adds a kind by naming a class in its `pyproject.toml`; the class
is a `Kind` of the choice it joins (for attention: `headwise.attention.capabilities.AttentionKind`):

    [project.entry-points."headwise.attention"]
    laplace = "headwise_laplace:Laplace"

    model: {encoder: {attention: {kind: laplace, width: 2.0}}}

The groups are `headwise.attention`, `headwise.scores`, `headwise.positions`, `headwise.norms`,
`headwise.rewards` and `headwise.tasks`. A recipe names the kind and never an import path. A
built-in kind has precedence. Any other name is looked up among the installed packages, and only the
package that offers it is imported. To open a choice to a group, write

    AnySettings = Annotated[First | Second, OpenChoice("headwise.…", Base)]

Tasks have no union: the table of tasks (`tasks/table.py`) asks for a task by its name with
`load_value`, which returns the object that the entry point names, or None.

A saved recipe that uses such kinds also has a section `packages`, which says which package each
kind comes from (`describe_words`). It has one purpose: if a package is not installed, the error
names it (`check_packages`). Nothing is ever imported because a recipe says so.

Tested against: an example package (examples/plugin) that is installed, used and removed again.
"""

import logging
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, lru_cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import pydantic
from pydantic_core import core_schema

from headwise.errors import SettingsError, StoppedBySignal
from headwise.settings.kind import Kind, join_words

logger = logging.getLogger(__name__)

LONGEST_REASON = 300
TASK_GROUP = "headwise.tasks"
"""The group of entry points for tasks; those of the other groups are kinds."""
PACKAGES = "packages"
"""The part of a saved recipe that says which packages its kinds come from."""
Base = TypeVar("Base")
AnyKind = TypeVar("AnyKind", bound=Kind)


@dataclass(frozen=True)
class AddedWord:
    """A kind or a task that a recipe names, and the package that adds it."""

    group: str
    word: str
    package: str
    version: str


class AddedWordError(SettingsError):
    """A kind or a task that installed packages add, but that cannot be used."""

    def __init__(self, entries: Sequence[EntryPoint], en: str, zh: str) -> None:
        self.packages = tuple(sorted({_package(entry) for entry in entries}))
        super().__init__(en, zh)


@dataclass(frozen=True)
class FoundKinds(Generic[AnyKind]):
    """The kinds of a choice by their names, and those of packages that cannot be used."""

    usable: dict[str, type[AnyKind]]
    refused: dict[str, AddedWordError]


def added_words(group: str) -> list[str]:
    """The names of the kinds that installed packages add to a choice; nothing is imported for the
    answer."""
    return sorted({entry.name for entry in _entries(group)})


def _entries(group: str) -> tuple[EntryPoint, ...]:
    """What installed packages add to a group. Reading their metadata takes as long as checking a
    recipe, so it is read again only when a directory of packages has changed."""
    return _entries_in(group, tuple(map(_state_of, sys.path)))


def _state_of(place: str) -> tuple[str, int]:
    """A directory (or archive) of packages, and when something was last installed into it."""
    path = os.path.abspath(place)
    try:
        return path, os.stat(path).st_mtime_ns
    except OSError:
        return path, 0


@lru_cache(maxsize=64)
def _entries_in(group: str, places: tuple[tuple[str, int], ...]) -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=group))


def load_value(group: str, word: object, base: type[Base]) -> Base | None:
    """The object that a package adds under this name, or None where no installed package has it."""
    entry = _find(group, word)
    if entry is None:
        return None
    found = _load(entry)
    if not isinstance(found, base):
        raise _explain_type(entry, found, "an instance", "实例", base)
    return found


def load_word(group: str, word: object, base: type[AnyKind]) -> type[AnyKind] | None:
    """The class that a package adds under this name, or None where no installed package has it.

    The name must be one of the class's own: a saved recipe holds the class's `kind`, by which the
    entry point is found again.
    """
    entry = _find(group, word)
    if entry is None:
        return None
    found = _load(entry)
    if not (isinstance(found, type) and issubclass(found, base)):
        raise _explain_type(entry, found, "a subclass", "子类", base)
    if word not in found.words():
        own = join_words(map(repr, found.words()), " or ") if found.words() else "no fixed name"
        raise AddedWordError(
            [entry],
            f"the package {_package(entry)} gives the kind {word!r} as {found.__name__}, whose "
            f"`kind` is {own}; both must be the same: update the package",
            f"软件包 {_package(entry)} 为种类 {word!r} 提供的是 {found.__name__}，而其 `kind` 是 "
            f"{own.replace(' or ', ' 或 ')}；两者必须一致：请更新该软件包",
        )
    return found


def _load(entry: EntryPoint) -> Any:
    """Import what an entry point names; a failure names the package."""
    try:
        return entry.load()
    except BaseException as error:
        if not is_fault(error):
            raise
        package, reason, (noun, noun_zh) = _package(entry), reason_of(error), _noun(entry.group)
        raise AddedWordError(
            [entry],
            f"the package {package} gives the {noun} {entry.name!r}, but importing it failed "
            f"({reason}); mend or reinstall the package",
            f"{noun_zh} {entry.name!r} 由软件包 {package} 提供，但导入失败（{reason}）；"
            "请修复或重新安装该软件包",
        ) from error


def is_fault(error: BaseException) -> bool:
    """Whether code of another package failed, rather than that the user stopped the program."""
    return not isinstance(error, KeyboardInterrupt | StoppedBySignal)


def reason_of(error: BaseException) -> str:
    """An error of another package on one line, without characters that a terminal would obey."""
    text = f"{type(error).__name__}: {error}"
    shown = "".join(one if one.isprintable() else " " for one in text[:LONGEST_REASON])
    return shown + "…" * (len(text) > LONGEST_REASON)


def _explain_type(
    entry: EntryPoint, found: object, what: str, what_zh: str, base: type
) -> AddedWordError:
    """What a package adds is of the wrong type."""
    package, name = _package(entry), f"{base.__module__}.{base.__name__}"
    noun, noun_zh = _noun(entry.group)
    return AddedWordError(
        [entry],
        f"the package {package} gives the {noun} {entry.name!r} as {found!r}, but {what} of {name} "
        "is needed; update the package",
        f"软件包 {package} 为{noun_zh} {entry.name!r} 提供的是 {found!r}，而需要 {name} "
        f"的{what_zh}；请更新该软件包",
    )


def find_kinds(
    group: str, base: type[AnyKind], built_in: Iterable[type[AnyKind]]
) -> FoundKinds[AnyKind]:
    """Every kind by its names: the built-in ones, then those of installed packages.

    Kinds that cannot be used are left out with a warning: whoever lists all kinds did not ask for
    them. So are kinds that do not declare what a list shows of them.
    """
    found = FoundKinds({word: kind for kind in built_in for word in kind.words()}, {})
    for word in added_words(group):
        if word in found.usable:
            continue
        try:
            kind = load_word(group, word, base)
            if kind is not None:
                _check_declared(group, word, kind)
                found.usable[word] = kind
        except AddedWordError as error:
            _warn_once(str(error))
            found.refused[word] = error
    return found


def all_kinds(
    group: str, base: type[AnyKind], built_in: Iterable[type[AnyKind]]
) -> dict[str, type[AnyKind]]:
    """The kinds that can be used, by their names (`find_kinds`)."""
    return find_kinds(group, base, built_in).usable


def _check_declared(group: str, word: str, kind: type[Kind]) -> None:
    """Refuse a kind that has no title, summary, … or no valid example of its settings."""
    try:
        kind.declare()
        kind.example()
    except Exception as error:
        entry, reason = _find(group, word), reason_of(error)
        if entry is None:  # a kind that no package gave is a bug of ours
            raise
        raise AddedWordError(
            [entry],
            f"the package {_package(entry)} gives the kind {word!r}, which is left out of lists: "
            f"its class does not declare all that a kind must ({reason}); update the package",
            f"软件包 {_package(entry)} 提供的种类 {word!r} 不列出：其类没有声明所需的全部内容"
            f"（{reason}）；请更新该软件包",
        ) from error


@cache
def _warn_once(message: str) -> None:
    logger.warning("%s", message)


def _find(group: str, word: object) -> EntryPoint | None:
    found = [entry for entry in _entries(group) if entry.name == word]
    packages = sorted({_package(entry) for entry in found})
    if len(packages) > 1:
        noun, noun_zh = _noun(group)
        raise AddedWordError(
            found,
            f"the {noun} {word!r} is given by several packages ({', '.join(packages)}); uninstall "
            "all but one",
            f"{noun_zh} {word!r} 由多个软件包提供（{'、'.join(packages)}）；请只保留一个",
        )
    return found[0] if found else None


def _noun(group: str) -> tuple[str, str]:
    """What a package adds to a group, in English and Chinese."""
    return ("task", "任务") if group == TASK_GROUP else ("kind", "种类")


def _package(entry: EntryPoint) -> str:
    return "?" if entry.dist is None else entry.dist.name


@dataclass(frozen=True)
class OpenChoice:
    """The annotation of a union of kinds that other packages may add to."""

    group: str
    base: type[Kind]

    def __get_pydantic_core_schema__(
        self, source: Any, handler: pydantic.GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        built_in = handler.generate_schema(Annotated[source, pydantic.Field(discriminator="kind")])
        return core_schema.no_info_wrap_validator_function(
            self._validate,
            built_in,
            serialization=core_schema.wrap_serializer_function_ser_schema(
                self._serialize, info_arg=True, schema=built_in
            ),
        )

    def load(self, word: object) -> type[Kind] | None:
        """The added kind of this name; None: no installed package has it."""
        return load_word(self.group, word, self.base)

    def _validate(self, data: Any, validate: core_schema.ValidatorFunctionWrapHandler) -> Any:
        if isinstance(data, self.base) and self.gave(type(data)):
            return data
        word = data.get("kind") if isinstance(data, Mapping) else None
        try:
            return validate(data)
        except pydantic.ValidationError as error:
            unknown = any(
                one["type"] == "union_tag_invalid" and not one["loc"] for one in error.errors()
            )
            added = self.load(word) if unknown else None
            if added is None:
                raise
        return added.model_validate(data)

    def _serialize(self, value: Any, serialize: Any, info: core_schema.SerializationInfo) -> Any:
        if self.gave(type(value)):
            return value.model_dump(mode=info.mode)
        return serialize(value)

    def gave(self, kind: type) -> bool:
        """Whether this class came from another package."""
        return not kind.__module__.startswith("headwise.")


def describe_word(group: str, word: str) -> AddedWord:
    """An added kind with its package and version; "?" where they are not known."""
    entry = _find(group, word)
    if entry is None or entry.dist is None:
        return AddedWord(group, word, "?", "?")
    return AddedWord(group, word, entry.dist.name, entry.dist.version)


def words_in(settings: pydantic.BaseModel) -> list[AddedWord]:
    """The added kinds that these settings use, each once, with the packages that give them."""
    found: dict[tuple[str, str], AddedWord] = {}
    for name, field in type(settings).model_fields.items():
        value = getattr(settings, name)
        for choice in (one for one in field.metadata if isinstance(one, OpenChoice)):
            if value is not None and choice.gave(type(value)):
                one = describe_word(choice.group, str(value.kind))
                found[one.group, one.word] = one
        for part in value if isinstance(value, list | tuple) else [value]:
            if isinstance(part, pydantic.BaseModel):
                found |= {(one.group, one.word): one for one in words_in(part)}
    return list(found.values())


def describe_words(words: Iterable[AddedWord]) -> dict[str, list[dict[str, str]]]:
    """The part `packages` of a saved recipe that uses these kinds; empty if there are none."""
    listed = [asdict(word) for word in words]
    return {PACKAGES: listed} if listed else {}


class MissingPackageError(SettingsError):
    """A saved recipe uses a kind of a package that is not installed."""


def check_packages(data: dict[str, Any], *, file: Path) -> None:
    """Take the part `packages` out of a saved recipe; refuse it if one of them is not installed
    here."""
    if PACKAGES not in data:
        return
    saved = data.pop(PACKAGES)
    if not (isinstance(saved, list) and all(isinstance(one, Mapping) for one in saved)):
        raise SettingsError(
            f"{PACKAGES} is written by headwise: a list of the packages that a recipe needs; "
            "remove it from a recipe of your own",
            f"{PACKAGES} 由 headwise 写入，是配方所需软件包的列表；请从你自己的配方中删去",
            file=file,
        )
    missing = [one for one in saved if one.get("word") not in added_words(str(one.get("group")))]
    if missing:
        named = [(_noun(str(one.get("group"))), repr(one.get("word"))) for one in missing]
        words = [", ".join(f"{noun[i]} {word}" for noun, word in named) for i in (0, 1)]
        packages = ", ".join(dict.fromkeys(str(one.get("package")) for one in missing))
        raise MissingPackageError(
            f"uses the {words[0]} of the package {packages}, which is not installed; install "
            "that package, then try again",
            f"使用了软件包 {packages} 提供的{words[1]}，而该软件包没有安装；请先安装它，再重试",
            file=file,
        )
