"""Settings: frozen values that refuse what they do not know.

A recipe is a tree of these. Unknown keys are refused with the nearest known name, all problems are listed at
once with their dotted path, defaults live on the field and nowhere else, and a choice is a union of small
types told apart by `kind`. `key.path=value` on the command line changes one value and nothing else can.
"""

import difflib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pydantic
import yaml

from headwise.errors import SettingsError

MAX_RECIPE_BYTES = 1 << 20


class Settings(pydantic.BaseModel):
    """Base of every settings type: frozen, strict about names, documented by its field docstrings."""

    model_config = pydantic.ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, validate_default=True, allow_inf_nan=False
    )


SettingsType = TypeVar("SettingsType", bound=pydantic.BaseModel)


class _PlainLoader(yaml.SafeLoader):
    """YAML without aliases (they can blow a small file up to gigabytes) and without repeated keys."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.events.AliasEvent):
            mark = self.peek_event().start_mark
            raise yaml.YAMLError(f"line {mark.line + 1}: aliases (*name) are not allowed")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - yaml's
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise yaml.YAMLError(f"line {key_node.start_mark.line + 1}: the key {key!r} must be a word")
            if key in seen:
                raise yaml.YAMLError(f"line {key_node.start_mark.line + 1}: the key {key!r} stands here twice")
            seen.add(key)
        return super().construct_mapping(node, deep)


# YAML 1.1 reads 1e-3 as text and `no` as false; numbers are read as people write them instead.
_PlainLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(?:\d[\d_]*)(?:\.[\d_]*)?[eE][-+]?\d+$"),
    list("-+0123456789"),
)
_PlainLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:bool"]
    for first, resolvers in _PlainLoader.yaml_implicit_resolvers.items()
}
_PlainLoader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)


def read_yaml(text: str, *, file: Path | str | None = None) -> Any:
    """Plain YAML data; anything else (tags, aliases, repeated keys) is refused with its line."""
    try:
        return yaml.load(text, Loader=_PlainLoader)  # noqa: S506 - a SafeLoader, made stricter
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        detail = getattr(error, "problem", None) or str(error)
        raise SettingsError(
            f"not a readable YAML file: {detail}; mend the line or compare with a shipped recipe (headwise recipes)",
            f"不是可读的 YAML 文件：{detail}；请修改该行，或对照自带配方（headwise recipes）",
            file=file,
            line=None if mark is None else mark.line + 1,
        ) from error


def read_settings_file(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file of bounded size."""
    try:
        size = path.stat().st_size
        if size > MAX_RECIPE_BYTES:
            raise SettingsError(
                f"the recipe has {size:,} bytes; at most {MAX_RECIPE_BYTES:,} are read; is this the right file?",
                f"配方有 {size:,} 字节，最多读取 {MAX_RECIPE_BYTES:,}；文件选对了吗？",
                file=path,
            )
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise SettingsError(
            f"cannot be read ({error.strerror}); give the path of a recipe or a shipped name (headwise recipes)",
            f"无法读取（{error.strerror}）；请给出配方路径或自带配方名（headwise recipes）",
            file=path,
        ) from error
    except UnicodeDecodeError as error:
        raise SettingsError(
            "is not UTF-8 text; save the recipe as UTF-8", "不是 UTF-8 文本；请存为 UTF-8", file=path
        ) from error
    data = read_yaml(text, file=path)
    if not isinstance(data, dict):
        raise SettingsError(
            f"holds {type(data).__name__}, not `key: value` lines; a recipe starts with e.g. `task: translation`",
            f"内容是 {type(data).__name__}，不是 `键: 值`；配方应以 `task: translation` 之类开头",
            file=path,
        )
    return data


def apply_overrides(data: Mapping[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """`training.steps=100` sets one value; the part right of `=` is read as YAML."""
    result = _deep_copy(data)
    for override in overrides:
        path, equals, text = override.partition("=")
        keys = path.strip().split(".")
        if not equals or not all(re.fullmatch(r"[A-Za-z_]\w*|\d+", key) for key in keys):
            raise SettingsError(
                f"{override!r} is not an override; write key.path=value, e.g. training.steps=100",
                f"{override!r} 不是覆盖项；请写成 键.路径=值，例如 training.steps=100",
            )
        _set_path(result, keys, read_yaml(text, file=f"override {path}"), override)
    return result


def _deep_copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _deep_copy(child) for key, child in value.items()}
    return [_deep_copy(child) for child in value] if isinstance(value, list) else value


def _set_path(data: Any, keys: Sequence[str], value: Any, override: str) -> None:
    for key in keys[:-1]:
        if isinstance(data, list) and key.isdigit() and int(key) < len(data):
            data = data[int(key)]
        elif isinstance(data, dict):
            data = data.setdefault(key, {})
        else:
            _refuse_path(override, key)
    last = keys[-1]
    if isinstance(data, list) and last.isdigit() and int(last) < len(data):
        data[int(last)] = value
    elif isinstance(data, dict):
        # A change of kind starts the choice afresh: keys of the old kind would not fit the new one.
        if last == "kind" and data.get("kind") != value:
            data.clear()
        data[last] = value
    else:
        _refuse_path(override, last)


def _refuse_path(override: str, key: str) -> None:
    raise SettingsError(
        f"{override!r}: there is no place for {key!r}, the value above it has no parts; "
        "set the whole value instead, e.g. model.norm='{kind: rms}'",
        f"{override!r}：{key!r} 的上一级不是可分的值；请整体设置，例如 model.norm='{{kind: rms}}'",
    )


def check_settings(
    kind: type[SettingsType], data: Mapping[str, Any], *, file: Path | str | None = None
) -> SettingsType:
    """A validated settings value, or one error that lists every problem with its dotted path."""
    try:
        return kind.model_validate(data)
    except pydantic.ValidationError as error:
        problems = [_describe_problem(kind, problem, "en") for problem in error.errors()]
        translated = [_describe_problem(kind, problem, "zh") for problem in error.errors()]
        raise SettingsError(
            f"{len(problems)} problem(s) in the settings:\n" + "\n".join(f"  - {line}" for line in problems),
            f"设置有 {len(problems)} 处问题：\n" + "\n".join(f"  - {line}" for line in translated),
            file=file,
        ) from error


def _describe_problem(kind: type[pydantic.BaseModel], problem: Any, language: str) -> str:
    path = ".".join(str(part) for part in problem["loc"]) or "(top)"
    if problem["type"] == "extra_forbidden":
        known = known_keys(kind, problem["loc"])
        near = difflib.get_close_matches(str(problem["loc"][-1]), known, n=1, cutoff=0.5)
        hint_en = f"; did you mean {near[0]!r}?" if near else f"; known here: {', '.join(known)}"
        hint_zh = f"；是否想写 {near[0]!r}？" if near else f"；这里可用：{'、'.join(known)}"
        return f"{path}: unknown key{hint_en}" if language == "en" else f"{path}：未知的键{hint_zh}"
    if problem["type"] == "union_tag_invalid":
        expected = problem["ctx"]["expected_tags"]
        given = problem["ctx"]["tag"]
        return (
            f"{path}: no kind {given!r}; choose one of {expected}"
            if language == "en"
            else f"{path}：没有 {given!r} 这个 kind；可选：{expected}"
        )
    given = repr(problem.get("input"))
    given = given if len(given) < 60 else given[:57] + "…"
    message = problem["msg"].removeprefix("Value error, ")
    return f"{path}: {message} (given: {given})" if language == "en" else f"{path}：{message}（给出：{given}）"


def known_keys(kind: type[pydantic.BaseModel], location: Sequence[Any]) -> list[str]:
    """The field names that would be allowed beside the last part of a location, found by walking the types."""
    candidates: list[Any] = [kind]
    for part in location[:-1]:
        following: list[Any] = []
        for candidate in candidates:
            field = candidate.model_fields.get(part) if isinstance(part, str) else None
            if field is not None:
                following.extend(_models_in(field.annotation))
        # A union's tag appears in the location as a part of its own: it narrows rather than descends.
        tagged = [c for c in candidates if "kind" in c.model_fields and c.model_fields["kind"].default == part]
        candidates = tagged or following or candidates
    names: set[str] = set()
    for candidate in candidates:
        names.update(candidate.model_fields)
    return sorted(names)


def _models_in(annotation: Any) -> list[type[pydantic.BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, pydantic.BaseModel):
        return [annotation]
    found: list[type[pydantic.BaseModel]] = []
    for argument in getattr(annotation, "__args__", ()):
        found.extend(_models_in(argument))
    return found
