"""Finds recipe files: those that come with Headwise by name, the user's own by path.

Nothing here loads torch, so a misspelt name is reported at once. `recipe.py` checks the content.
"""

import contextlib
import difflib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import headwise
from headwise.errors import HeadwiseError, SettingsError
from headwise.language import say
from headwise.tasks.arguments import require_path


def recipes_directory() -> Path:
    """Inside the installed package, or beside the sources in a checkout."""
    package = Path(headwise.__file__).resolve().parent
    inside = package / "recipes"
    return inside if inside.is_dir() else package.parent.parent / "recipes"


MAX_KEYS = 3
SURE = 0.75
"""How alike a word and a key must be; below, most keys of four letters would be alike."""


@dataclass(frozen=True)
class ShippedRecipe:
    """What a list of recipes says of one."""

    task: str
    summary: str


def shipped_recipes() -> dict[str, ShippedRecipe]:
    """By name; the summary is a recipe's first line, which is English, or its second, which is
    Chinese.
    """
    found = {}
    for path in sorted(recipes_directory().glob("*.yaml"), key=lambda path: path.stem):
        english, chinese, *rest = path.read_text(encoding="utf-8").splitlines()
        task = next(line.removeprefix("task:").strip() for line in rest if line.startswith("task:"))
        found[path.stem] = ShippedRecipe(task, say(english, chinese).removeprefix("#").strip())
    return found


def find_recipe(name: str | Path) -> Path:
    """A path, or the name of a shipped recipe."""
    path = require_path(name, "recipe", "pocket")
    if path.is_file():
        return path
    shipped = recipes_directory() / f"{name}.yaml"
    if shipped.is_file() and path.name == str(name):
        return shipped
    if path.is_dir():
        raise SettingsError(
            "is a directory; a recipe is a YAML file, e.g. the recipe.yaml in a run",
            "是目录；配方是 YAML 文件，例如运行目录中的 recipe.yaml",
            file=path,
        )
    names = list(shipped_recipes())
    near = difflib.get_close_matches(str(name), names, n=1)
    hint_en = f"did you mean {near[0]!r}? " if near else ""
    hint_zh = f"是否想写 {near[0]!r}？" if near else ""
    raise SettingsError(
        f"there is no recipe {str(name)!r}; {hint_en}give the path of a YAML file or "
        "a name that `headwise recipes` lists",
        f"没有配方 {str(name)!r}；{hint_zh}请给出 YAML 文件路径，或 `headwise recipes` 列出的名称",
    )


def read_recipe_text(name: str | Path) -> str:
    """A recipe as it stands in its file, comments and all."""
    from headwise.settings import (
        read_settings_file,
    )  # pydantic takes longer to load than a name to look up

    path = find_recipe(name)
    read_settings_file(path)  # refuses what is too large or not a recipe
    return path.read_text(encoding="utf-8")


def find_keys(name: str, *, task: str) -> list[str]:
    """The dotted paths in the shipped recipes of a task that end in this key, those of most recipes
    first.
    """
    found = Counter(
        {path: count for path, count in _count_paths(task).items() if path.split(".")[-1] == name}
    )
    return [path for path, _ in found.most_common(MAX_KEYS)]


def _count_paths(task: str) -> Counter[str]:
    """Every dotted path of the shipped recipes of a task, and how many recipes have it."""
    from headwise.settings import read_settings_file

    def search(data: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
        for key, value in data.items():
            yield ".".join((*path, key))
            if isinstance(value, Mapping):
                yield from search(value, (*path, key))

    recipes = [read_settings_file(file) for file in sorted(recipes_directory().glob("*.yaml"))]
    return Counter(
        path for recipe in recipes if recipe.get("task") == task for path in search(recipe, ())
    )


def propose_overrides(option: str, value: str, *, task: str) -> list[str]:
    """`training.schedule.peak=3` for --lr 3: the changes of a recipe that may be meant by an option
    of another toolkit's.
    """
    from headwise.settings.problems import has_path
    from headwise.settings.usual_names import find_usual
    from headwise.tasks.table import find_entry

    word, entry = option.removeprefix("--").replace("-", "_"), find_entry(task)
    for usual in find_usual(word):  # the first whose keys the task has
        if entry is not None and all(
            has_path(entry.recipe_type, path.split(".")) for path in usual.paths
        ):
            return [f"{path}={value if usual.same_value else '…'}" for path in usual.paths]
    return [f"{path}={value}" for path in find_keys(word, task=task)]


def propose_nearest_overrides(option: str, value: str, *, task: str) -> list[str]:
    """`training.steps=3` for --step 3: the changes that may be meant by a misspelt option."""
    from headwise.settings.usual_names import USUAL_NAMES

    word = option.removeprefix("--").replace("-", "_")
    keys = [path.split(".")[-1] for path, _ in _count_paths(task).most_common()]
    known = dict.fromkeys([*keys, *(name for usual in USUAL_NAMES for name in usual.words)])
    for near in difflib.get_close_matches(word, known, n=MAX_KEYS, cutoff=SURE):
        if proposed := propose_overrides(near, value, task=task):
            return proposed
    return []


def task_of_recipe(words: Sequence[str]) -> str:
    """The task of the first recipe among the words of a command; without one a translation."""
    from headwise.settings import DEFAULT_TASK, read_settings_file

    for word in words:
        with contextlib.suppress(HeadwiseError, OSError, ValueError):
            return str(read_settings_file(find_recipe(word)).get("task", DEFAULT_TASK))
    return DEFAULT_TASK
