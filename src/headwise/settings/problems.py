"""Turns pydantic's errors into our messages: path, requirement, given value, nearest known name.

A path is what a user would write (`decoding.size`), without the tags that pydantic adds for members
of a union. An invalid choice is reported with its alternatives; an unknown key with the nearest
known one, the kind that has it, or its full path.
"""

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pydantic

from headwise.errors import HeadwiseError
from headwise.settings.usual_names import find_usual

SHOWN_CHARACTERS = 60
MAX_DEPTH = 2
"""How many levels down a key that was written too high is searched."""
MAX_PATHS = 3
_PLAIN_MEMBERS = frozenset(
    f"{form}{name}" for name in ("int", "float", "str", "bool") for form in ("", "constrained-")
)
"""pydantic's tags for members of a union that are no settings; `constrained-`: with bounds."""
SettingsClass = type[pydantic.BaseModel]


class Problem(NamedTuple):
    """One problem in both languages."""

    en: str
    zh: str


# What is required, by pydantic's name of the problem; {…} are the bounds that pydantic states.
_INTEGER = ("must be a whole number", "必须是整数")
_NUMBER = ("must be a number", "必须是数字")
_YES_OR_NO = ("must be true or false", "必须是 true 或 false")
_WORD = ("must be a text", "必须是文本")
_MAPPING = ("must be `key: value` parts", "必须由 `键: 值` 组成")
_LIST = ("must be a list", "必须是列表")
REQUIREMENTS: Mapping[str, tuple[str, str]] = {
    "int_type": _INTEGER,
    "int_parsing": _INTEGER,
    "int_from_float": _INTEGER,
    "float_type": _NUMBER,
    "float_parsing": _NUMBER,
    "finite_number": ("must be a finite number", "必须是有限的数"),
    "bool_type": _YES_OR_NO,
    "bool_parsing": _YES_OR_NO,
    "string_type": _WORD,
    "path_type": ("must be a path", "必须是路径"),
    "model_type": _MAPPING,
    "model_attributes_type": _MAPPING,
    "dict_type": _MAPPING,
    "tuple_type": _LIST,
    "list_type": _LIST,
    "greater_than": ("must be greater than {gt}", "必须大于 {gt}"),
    "greater_than_equal": ("must be at least {ge}", "必须不小于 {ge}"),
    "less_than": ("must be less than {lt}", "必须小于 {lt}"),
    "less_than_equal": ("must be at most {le}", "必须不大于 {le}"),
    "multiple_of": ("must be a multiple of {multiple_of}", "必须是 {multiple_of} 的倍数"),
    "literal_error": ("must be {expected}", "必须是 {expected}"),
    "string_too_short": (
        "must have at least {min_length} characters",
        "至少需要 {min_length} 个字符",
    ),
    "string_too_long": ("must have at most {max_length} characters", "最多 {max_length} 个字符"),
    "too_short": ("must have at least {min_length} entries", "至少需要 {min_length} 项"),
    "too_long": ("must have at most {max_length} entries", "最多 {max_length} 项"),
}

_OTHER_FORM = frozenset(
    name for name in REQUIREMENTS if name.endswith(("_type", "_parsing", "_from_float"))
)
"""Values of the wrong form: text for a number, a number for a mapping."""
_PARTS_NEEDED = ("model_type", "model_attributes_type", "dict_type")


def requirement(name: str, context: Mapping[str, Any]) -> tuple[str, str] | None:
    """What pydantic's problem of this name requires, in both languages; None for unknown ones.

    pydantic lists the words that may stand somewhere in English: 'a', 'b' or 'c'.
    """
    if name not in REQUIREMENTS:
        return None
    en, zh = REQUIREMENTS[name]
    listed = str(context.get("expected", ""))
    zh_context = {**context, "expected": listed.replace(" or ", " 或 ")}
    return en.format(**context), zh.format(**zh_context)


def describe_problems(kind: SettingsClass, error: pydantic.ValidationError) -> list[Problem]:
    """Every problem once, in the order of the settings."""
    found = error.errors()
    # A list whose only entry is wrong counts as empty for pydantic; the entry's own problem says it
    # better.
    inner = {
        tuple(problem["loc"][:length]) for problem in found for length in range(len(problem["loc"]))
    }
    told = [one for one in found if not (one["type"] == "too_short" and tuple(one["loc"]) in inner)]
    paths = [tuple(walk(kind, one["loc"])[0]) for one in told]
    return [_describe_all(kind, together) for together in _by_path(told, paths)]


def _by_path(told: Sequence[Any], paths: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
    """Group the problems of one value: a value that may be a number or a mapping is wrong once."""
    inside = {path[:length] for path in paths for length in range(len(path))}
    groups: dict[tuple[Any, ...], list[Any]] = {}
    for number, (path, problem) in enumerate(zip(paths, told, strict=True)):
        is_other_form = problem["type"] in _OTHER_FORM
        if not (is_other_form and path in inside):
            groups.setdefault((*path, "" if is_other_form else number), []).append(problem)
    is_told = {group[:-1] for group in groups if group[-1] != ""}
    return [
        problems
        for group, problems in groups.items()
        if group[-1] != "" or group[:-1] not in is_told
    ]


def _describe_all(kind: SettingsClass, together: Sequence[Any]) -> Problem:
    """One problem; several requirements of one value are joined with "or"."""
    first, *others = [_describe(kind, problem) for problem in together]
    for problem in together[1:] if others else ():
        en, zh = REQUIREMENTS[problem["type"]]
        first = Problem(
            first.en.replace(", not ", f" or {en.removeprefix('must be ')}, not ", 1),
            first.zh.replace("，而不是", f"，或{zh.removeprefix('必须')}，而不是", 1),
        )
    return first


def _describe(kind: SettingsClass, problem: Any) -> Problem:
    parts, allowed, others = walk(kind, problem["loc"])
    path = ".".join(str(part) for part in parts)
    context, given = problem.get("ctx", {}), problem.get("input")
    match problem["type"]:
        case "extra_forbidden":
            elsewhere = _set_elsewhere(kind, parts, given)
            return _unknown_key(path, str(parts[-1]), allowed, others, elsewhere)
        case "missing":
            return Problem(f"{path}: is required, but not there", f"{path}：必须给出")
        case "union_tag_invalid":
            tag, tags = context["tag"], context["expected_tags"]
            near = _described_as(kind, parts, tag)
            near = near or difflib.get_close_matches(
                tag, [name.strip(" '") for name in tags.split(",")], n=1
            )
            hint = (
                (f"; did you mean {near[0]!r}?", f"；是否想写 {near[0]!r}？") if near else ("", "")
            )
            return Problem(
                f"{path}: no kind {tag!r}; choose one of {tags}{hint[0]}",
                f"{path}：没有 {tag!r} 这个 kind；可选：{tags}{hint[1]}",
            )
        case "union_tag_not_found":
            return Problem(
                f"{path}: its kind is missing; write e.g. {{kind: …}}",
                f"{path}：缺少 kind；例如写 {{kind: …}}",
            )
        case "value_error" if isinstance(context.get("error"), HeadwiseError):
            prefix = (f"{path}: ", f"{path}：") if path else ("", "")
            return Problem(prefix[0] + context["error"].en, prefix[1] + context["error"].zh)
    required = requirement(problem["type"], context)
    en, zh = required or (problem["msg"].removeprefix("Value error, "),) * 2
    if (
        problem["type"] in _PARTS_NEEDED
        and isinstance(given, str)
        and given in kinds_at(kind, parts)
    ):
        return Problem(
            f"{path}: {en}, not {given!r}; did you mean {path}.kind={given}?",
            f"{path}：{zh}，而不是 {given!r}；是否想写 {path}.kind={given}？",
        )
    whole = repr(given)
    shown = whole if len(whole) <= SHOWN_CHARACTERS else whole[: SHOWN_CHARACTERS - 1] + "…"
    return Problem(f"{path}: {en}, not {shown}", f"{path}：{zh}，而不是 {shown}")


def _unknown_key(
    path: str,
    key: str,
    allowed: Sequence[SettingsClass],
    others: Sequence[SettingsClass],
    set_elsewhere: Sequence[str],
) -> Problem:
    known = sorted({name for one in allowed for name in one.model_fields})
    owners = [str(_tag(one)) for one in others if key in one.model_fields]
    if (
        owners and len(allowed) == 1
    ):  # right in itself, but of another kind: nearer than any name that looks alike
        here = _tag(allowed[0])
        return Problem(
            f"{path}: unknown key of kind: {here}; it belongs to kind: {' or '.join(owners)}; "
            f"known here: {', '.join(known)}",
            f"{path}：kind: {here} 没有这个键；它属于 kind: {' 或 '.join(owners)}；这里可用："
            f"{'、'.join(known)}",
        )
    below = find_below(allowed, key)
    # `steps=3` for `training.steps=3`: the right name, not the whole path
    paths = [".".join((*path.split(".")[:-1], *one)) for one in below] or set_elsewhere
    if paths:
        return Problem(
            f"{path}: unknown key; did you mean {' or '.join(paths)}?",
            f"{path}：未知的键；是否想写 {' 或 '.join(paths)}？",
        )
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    if near:
        return Problem(
            f"{path}: unknown key; did you mean {near[0]!r}?",
            f"{path}：未知的键；是否想写 {near[0]!r}？",
        )
    # `sise` where the kind has no size, but another kind has.
    # The first kind that has a key is named: kinds are listed from the usual to the special.
    elsewhere = {
        name: str(_tag(one)) for one in reversed(list(others)) for name in one.model_fields
    }
    near = difflib.get_close_matches(key, elsewhere, n=1, cutoff=0.7)
    if near:
        owner = elsewhere[near[0]]
        return Problem(
            f"{path}: unknown key; did you mean {near[0]!r} of kind: {owner}? known here: "
            f"{', '.join(known)}",
            f"{path}：未知的键；是否想写 kind: {owner} 的 {near[0]!r}？这里可用："
            f"{'、'.join(known)}",
        )
    return Problem(
        f"{path}: unknown key; known here: {', '.join(known)}",
        f"{path}：未知的键；这里可用：{'、'.join(known)}",
    )


def _set_elsewhere(kind: SettingsClass, parts: Sequence[Any], given: Any) -> list[str]:
    """Where a key with the name of another toolkit is set here (`lr`, `optim.lr`), or one written
    too deep.
    """
    inner = given if isinstance(given, Mapping) else {}
    above = [[*parts[:length], parts[-1]] for length in range(len(parts) - 2, 0, -1)]
    higher = next((one for one in above if has_path(kind, one)), None)
    if higher is not None:
        name = str(inner.get("kind", ""))
        tag = (
            [name]
            if name in kinds_at(kind, higher)
            else _described_as(kind, higher, name)
            if name
            else []
        )
        return [".".join((*map(str, higher), *(f"kind={one}" for one in tag)))]
    for word in (*inner, parts[-1]):
        paths = [
            path
            for one in find_usual(str(word))
            for path in one.paths
            if has_path(kind, path.split("."))
        ]
        if paths:
            return paths
    return []


def has_path(kind: SettingsClass, parts: Sequence[Any]) -> bool:
    """Whether the settings have such a key, for any kinds on the way."""
    return any(parts[-1] in one.model_fields for one in _types_at(kind, parts[:-1]))


def find_below(types: Sequence[SettingsClass], key: str) -> list[tuple[str, ...]]:
    """The paths of a key further down, all of the nearest level, in the order of the settings."""
    level: list[tuple[tuple[str, ...], SettingsClass]] = [((), one) for one in types]
    for _ in range(MAX_DEPTH):
        level = [
            ((*path, name), inner)
            for path, one in level
            for name, field in one.model_fields.items()
            for inner in models_in(field.annotation)
        ]
        found = list(dict.fromkeys((*path, key) for path, one in level if key in one.model_fields))
        if found:
            return found[:MAX_PATHS]
    return []


def walk(
    kind: SettingsClass, location: Sequence[Any]
) -> tuple[list[Any], list[SettingsClass], list[SettingsClass]]:
    """A location without the tags of unions, the types that contain its last part, and those of
    other kinds.
    """
    candidates, others = [kind], list[SettingsClass]()
    parts: list[Any] = []
    for number, part in enumerate(location):
        # Only a choice has tags: a key of the only type may have the name of its kind.
        tagged = [
            one
            for one in candidates
            if (_tag(one) == part and len(candidates) > 1) or one.__name__ == part
        ]
        if number > 0 and (tagged or part in _PLAIN_MEMBERS):
            if tagged:
                others = [one for one in candidates if one not in tagged and _tag(one) is not None]
                candidates = tagged
            continue
        parts.append(part)
        if number == len(location) - 1:
            break
        following: list[SettingsClass] = []
        for candidate in candidates:
            field = candidate.model_fields.get(part) if isinstance(part, str) else None
            following.extend(models_in(field.annotation) if field is not None else [])
        candidates, others = (following, []) if following else (candidates, others)
    return parts, candidates, others


def _described_as(kind: SettingsClass, parts: Sequence[Any], name: str) -> list[str]:
    """The kind whose description has another name of the same thing: SwiGLU is `gated`."""
    found = [
        one
        for one in _types_at(kind, parts)
        if re.search(rf"\b{re.escape(name)}\b", one.__doc__ or "", re.I)
    ]
    return [str(_tag(one)) for one in found[:1]]


def kinds_at(kind: SettingsClass, parts: Sequence[Any]) -> set[Any]:
    """The kinds that can be chosen at a path."""
    return {_tag(one) for one in _types_at(kind, parts)}


def _types_at(kind: SettingsClass, parts: Sequence[Any]) -> list[SettingsClass]:
    candidates = [kind]
    for part in parts:
        fields = [one.model_fields[part] for one in candidates if part in one.model_fields]
        candidates = [model for field in fields for model in models_in(field.annotation)]
    return candidates


def _tag(kind: SettingsClass) -> Any:
    return kind.model_fields["kind"].default if "kind" in kind.model_fields else None


def models_in(annotation: Any) -> list[SettingsClass]:
    """The types of settings that an annotation names, in unions and lists too."""
    if isinstance(annotation, type) and issubclass(annotation, pydantic.BaseModel):
        return [annotation]
    return [
        model for argument in getattr(annotation, "__args__", ()) for model in models_in(argument)
    ]
