"""Reads settings from YAML: strictly, up to a maximal size, with the line of every mistake.

Tags (they can run code), aliases (they can expand a small file to gigabytes), repeated keys (the
last would silently win) and more entries than any recipe has are errors. Numbers are read as people
write them; YAML 1.1 would read 1e-3 as text, `no` as false, 010 as eight and 1:30 as ninety.

Tested against: each of these alone, every shipped recipe, hostile files (tests/attacks) and
generated text.
"""

import copy
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from headwise.errors import SettingsError
from headwise.language import say
from headwise.settings.added_kinds import check_packages

DEFAULT_TASK = "translation"
"""What a recipe without `task:` is for."""
MAX_RECIPE_BYTES = 1 << 20
MAX_ENTRIES = 10_000


def _refuse(mark: Any, en: str, zh: str) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=say(en, zh), problem_mark=mark)


class _PlainLoader(yaml.SafeLoader):
    num_entries = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()
        if isinstance(event, yaml.events.AliasEvent):
            raise _refuse(
                event.start_mark, "aliases (*name) are not allowed", "不允许使用别名（*name）"
            )
        if event.tag is not None:
            tag = f"{event.tag:.60}"
            raise _refuse(
                event.start_mark, f"tags ({tag}) are not allowed", f"不允许使用标签（{tag}）"
            )
        self.num_entries += 1
        if self.num_entries > MAX_ENTRIES:
            en, zh = f"there are more than {MAX_ENTRIES:,} entries", f"条目超过 {MAX_ENTRIES:,} 个"
            raise _refuse(event.start_mark, en, zh)
        return super().compose_node(parent, index)

    # `deep` is positional because yaml calls it so.
    def construct_mapping(
        self,
        node: Any,
        deep: bool = False,  # noqa: FBT001, FBT002
    ) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key, mark = self.construct_object(key_node, deep=True), key_node.start_mark
            if not isinstance(key, str):
                raise _refuse(mark, f"the key {key!r} must be a word", f"键 {key!r} 必须是一个词")
            if key in seen:
                raise _refuse(mark, f"the key {key!r} stands here twice", f"键 {key!r} 出现了两次")
            seen.add(key)
        return super().construct_mapping(node, deep)


_UNWANTED = tuple(f"tag:yaml.org,2002:{name}" for name in ("bool", "timestamp", "int", "float"))
_PlainLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _UNWANTED]
    for first, resolvers in _PlainLoader.yaml_implicit_resolvers.items()
}
_PlainLoader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)
_PlainLoader.add_implicit_resolver(
    "tag:yaml.org,2002:int", re.compile(r"^[-+]?(?:0|[1-9][\d_]*)$", re.ASCII), list("-+0123456789")
)
_PlainLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(
        r"^[-+]?(?:(?:\d[\d_]*\.[\d_]*|\.\d[\d_]*)(?:[eE][-+]?\d+)?|\d[\d_]*[eE][-+]?\d+|"
        r"\.(?:inf|Inf|INF|nan|NaN|NAN))$",
        re.ASCII,
    ),
    list("-+.0123456789"),
)


def read_yaml(text: str, *, file: Path | str | None = None) -> Any:
    """Plain YAML data; tags, aliases and repeated keys are errors with their line."""
    try:
        return copy.deepcopy(_data_of(text))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        detail, line = _explain(error, text)
        raise SettingsError(
            f"not readable as YAML: {detail}; mend the line, or compare with a shipped recipe "
            "(headwise recipes)",
            f"不是可读的 YAML：{detail}；请修改该行，或对照自带配方（headwise recipes）",
            file=file,
            line=line,
        ) from error


@lru_cache(maxsize=64)
def _data_of(text: str) -> Any:
    """Kept, because a training reads its recipe several times, which takes a hundred times as long
    as a copy of the data."""
    return yaml.load(text, Loader=_PlainLoader)  # noqa: S506 - a SafeLoader, made stricter


def _explain(error: Exception, text: str) -> tuple[str, int | None]:
    """What is wrong, and in which line."""
    match error:
        case yaml.MarkedYAMLError(problem=str(problem), problem_mark=yaml.Mark(line=line)):
            return problem, line + 1
        case yaml.reader.ReaderError(reason=reason, position=int(position), character=character):
            return f"{reason} ({character!r})", text.count("\n", 0, position) + 1
        case RecursionError():
            return say("it is nested too deeply", "嵌套过深"), None
        case ValueError() if "digits" in str(error):
            return say("a number has thousands of digits", "有一个数长达数千位"), None
        case _:
            return str(error), None


def read_settings_file(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file of bounded size."""
    try:
        size = path.stat().st_size
        if size > MAX_RECIPE_BYTES:
            raise SettingsError(
                f"the recipe has {size:,} bytes; at most {MAX_RECIPE_BYTES:,} are read; is this "
                "the right file?",
                f"配方有 {size:,} 字节，最多读取 {MAX_RECIPE_BYTES:,}；文件选对了吗？",
                file=path,
            )
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise SettingsError(
            f"cannot be read ({error.strerror}); give the path of a recipe or a shipped name "
            "(headwise recipes)",
            f"无法读取（{error.strerror}）；请给出配方路径或自带配方名（headwise recipes）",
            file=path,
        ) from error
    except UnicodeDecodeError as error:
        raise SettingsError(
            "is not UTF-8 text; save the recipe as UTF-8",
            "不是 UTF-8 文本；请存为 UTF-8",
            file=path,
        ) from error
    data = read_yaml(text, file=path)
    if not isinstance(data, dict):
        en, zh = (
            ("is empty", "是空的")
            if data is None
            else ("holds no `key: value` lines", "不是 `键: 值` 的形式")
        )
        raise SettingsError(
            f"{en}; a recipe starts with e.g. `task: translation`: print one with `headwise "
            "recipes base`",
            f"{zh}；配方应以 `task: translation` 之类开头：可用 `headwise recipes base` 打印一个",
            file=path,
        )
    check_packages(data, file=path)
    return data
