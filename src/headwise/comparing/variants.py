r"""The variants of a comparison: recipes, alternative values, seeds, and the run directory of each.

    headwise compare base big --seeds 1,2                   two recipes
    headwise compare pocket model.norm.kind=layer,rms       one recipe, two values, separated by
                                                            commas outside brackets
    headwise compare pocket model.dim=64,128 \
        'model.encoder.attention={kind: fused},{kind: window, left: 8, right: 8}'
    headwise compare ud-ewt-tags model.kind=word,window,encoder     recipes of every task

All runs of a comparison are of one task and have the same test set and languages; where the score
depends on the tokens (perplexity), they also have the same training text and `text` settings.
Several alternatives give every combination; a single value holds for all variants. The others are
compared with the first variant. The name of a variant contains its values, so adding another one
keeps the directories of the others.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from typing import Any

import torch

from headwise.errors import HeadwiseError, SettingsError, UsageError
from headwise.settings import read_yaml
from headwise.tasks.any_recipe import AnyRecipe
from headwise.tasks.comparison_metrics import ComparisonMetrics
from headwise.tasks.measured_corpora import note_on_measuring
from headwise.tasks.recipe import load_recipe
from headwise.tasks.recipe_files import find_recipe
from headwise.tasks.table import find_task
from headwise.tasks.task import TrainedTask, training_of

MAX_RUNS = 1000


@dataclass(frozen=True)
class Run:
    """One training of a comparison."""

    variant: str
    seed: int
    recipe: AnyRecipe
    directory: Path
    """The run directory; the recipe and the output of the run lie beside it (.yaml, .log)."""
    note: str | None = None
    """Notes that a reader of its scores needs (tasks/measured_corpora.py)."""

    @property
    def recipe_file(self) -> Path:
        return self.directory.with_name(self.directory.name + ".yaml")

    @property
    def log_file(self) -> Path:
        return self.directory.with_name(self.directory.name + ".log")

    @property
    def label(self) -> str:
        return f"{self.variant} · {self.seed}"

    @property
    def comparison_metrics(self) -> ComparisonMetrics:
        """How its task scores it."""
        return find_task(self.recipe).comparison_metrics(self.recipe)

    @property
    def num_steps(self) -> int:
        """Updates of its training; a single pass is one step."""
        is_trained = isinstance(find_task(self.recipe), TrainedTask)
        return training_of(self.recipe).steps if is_trained else 1


def plan_comparison(
    words: Sequence[str], *, seeds: Sequence[int] = (), directory: Path
) -> list[Run]:
    """The runs in order: all variants with the first seed, then all with the second, …"""
    recipes = [word for word in words if "=" not in word]
    changes = [word for word in words if "=" in word]
    if not recipes:
        raise UsageError(
            "there is nothing to compare; give recipes (headwise compare base big) or one and "
            "alternatives (headwise compare pocket model.norm.kind=layer,rms)",
            "没有可比较的内容；请给出若干配方（headwise compare base big），或一个配方与备选值"
            "（headwise compare pocket model.norm.kind=layer,rms）",
        )
    variants = _variants(recipes, changes)
    if len(variants) < 2:
        find_recipe(recipes[0])  # a missing recipe is reported first
        raise UsageError(
            f"there is one variant only ({next(iter(variants))}); give a second recipe, or "
            "several values separated by commas: model.norm.kind=layer,rms",
            f"只有一个变体（{next(iter(variants))}）；请再给一个配方，或用逗号分隔多个值："
            "model.norm.kind=layer,rms",
        )
    if len(set(seeds)) != len(seeds):
        raise UsageError(
            "a seed is given twice; give each once: --seeds 1,2,3",
            "种子重复；请各给一次：--seeds 1,2,3",
        )
    if len(variants) * max(1, len(seeds)) > MAX_RUNS:
        raise UsageError(
            f"{len(variants)} variants and {max(1, len(seeds))} seeds are more than {MAX_RUNS} "
            "runs; leave out alternatives",
            f"{len(variants)} 个变体与 {max(1, len(seeds))} 个种子超过 {MAX_RUNS} 次运行；"
            "请减少备选值",
        )
    runs = []
    for seed in seeds or (None,):
        for name, (recipe, overrides) in variants.items():
            own = _load(recipe, [*overrides, *(() if seed is None else (f"training.seed={seed}",))])
            number = _seed_of(own)
            place = directory / "runs" / file_name(name) / f"seed-{number}"
            runs.append(Run(name, number, own, place, note_on_measuring(recipe, overrides)))
    _check_same_question(runs)
    _check_models({run.variant: run.recipe for run in runs})
    return runs


def _load(name: str, overrides: Sequence[str]) -> AnyRecipe:
    """A recipe whose task says how it is scored."""
    recipe = load_recipe(name, overrides)
    try:
        find_task(recipe).comparison_metrics(recipe)
    except UsageError as error:
        raise UsageError(f"{name}: {error.en}", f"{name}：{error.zh}") from error
    return recipe


def _seed_of(recipe: AnyRecipe) -> int:
    return int(getattr(getattr(recipe, "training", None), "seed", 0))


def _check_models(variants: Mapping[str, AnyRecipe]) -> None:
    """Build every model without memory for its weights, so that impossible ones are refused before
    the first training. The size of a model of a single pass is known from its text alone.
    """
    for name, recipe in variants.items():
        task = find_task(recipe)
        if not isinstance(task, TrainedTask):
            continue
        try:
            with torch.device("meta"):
                step = task.planned_step(recipe)
                step.build(step.num_rows)
        except HeadwiseError as error:
            raise UsageError(f"variant {name}: {error.en}", f"变体 {name}：{error.zh}") from error


def _check_same_question(runs: Sequence[Run]) -> None:
    """Refuse variants whose scores cannot be compared, because they are scores of different test
    sets.
    """
    first = runs[0]
    for run in runs:
        if run.recipe.task != first.recipe.task:
            raise UsageError(
                f"{first.variant} is of task {first.recipe.task}, {run.variant} of "
                f"{run.recipe.task}; compare recipes of one task",
                f"{first.variant} 的任务是 {first.recipe.task}，{run.variant} 的任务是 "
                f"{run.recipe.task}；请比较同一任务的配方",
            )
        asked, own = first.comparison_metrics, run.comparison_metrics
        for key in asked.question:
            if own.question[key] != asked.question[key]:
                raise UsageError(
                    f"{first.variant} and {run.variant} differ in {key}, so they are asked "
                    "different questions or judged differently, and their scores cannot stand "
                    f"beside each other; give one {key} for all",
                    f"{first.variant} 与 {run.variant} 的 {key} 不同，"
                    f"因而所答的问题或评分方式不同，分数无法并列比较；请为所有变体给出同一个 {key}",
                )
        for key in asked.tokens:
            if own.tokens[key] != asked.tokens[key]:
                raise UsageError(
                    f"{first.variant} and {run.variant} differ in {key}, so their vocabularies may "
                    "differ, and scores over different tokens cannot be compared; give one "
                    f"{key} for all",
                    f"{first.variant} 与 {run.variant} 的 {key} 不同，词表因而可能不同；"
                    f"词元不同，分数便无法比较；请为所有变体给出同一个 {key}",
                )


def _variants(recipes: Sequence[str], changes: Sequence[str]) -> dict[str, tuple[str, list[str]]]:
    """Name → recipe and overrides."""
    fixed = [change for change in changes if len(split_values(change)[1]) == 1]
    open_ones = [split_values(change) for change in changes if change not in fixed]
    _check_apart(open_ones)
    found: dict[str, tuple[str, list[str]]] = {}
    for recipe, *values in product(recipes, *(values for _, values in open_ones)):
        chosen = [(key, value) for (key, _), value in zip(open_ones, values, strict=True)]
        parts = [Path(recipe).stem] if len(recipes) > 1 else []
        parts += [_label(key, value, alone=len(open_ones) == 1) for key, value in chosen]
        name = ", ".join(parts) or Path(recipe).stem
        if name in found or file_name(name) in map(file_name, found):
            raise UsageError(
                f"two variants would be called {name!r}; give each recipe and each value once, "
                "and files of different names",
                f"有两个变体同名 {name!r}；配方与值请各给一次，文件名不可相同",
            )
        found[name] = (recipe, [*fixed, *(f"{key}={value}" for key, value in chosen)])
    return found


def _check_apart(open_ones: Sequence[tuple[str, list[str]]]) -> None:
    """Refuse alternatives that overwrite each other, because variants would not be what their names
    say.
    """
    for (first, values), (second, _) in combinations(open_ones, 2):
        inner = (
            second.removeprefix(f"{first}.").split(".") if second.startswith(f"{first}.") else None
        )
        said_inside = inner is not None and any(_says(read_yaml(value), inner) for value in values)
        if first == second or first.startswith(f"{second}.") or said_inside:
            raise UsageError(
                f"{first} and {second} both have alternatives, and one would overwrite the other; "
                f"give each key once, with all its values: {second}=first,second",
                f"{first} 与 {second} 都有备选值，而其一会覆盖另一个；每个键请只给一次，"
                f"并列出全部值：{second}=第一个,第二个",
            )


def _says(value: Any, path: Sequence[str]) -> bool:
    """Whether a mapping sets something within a key."""
    for key in path:
        if not isinstance(value, Mapping):
            return True  # a value that is no mapping replaces the whole key
        if key not in value:
            return False
        value = value[key]
    return True


def split_values(word: str) -> tuple[str, list[str]]:
    """`key=a,b` as key and values; commas inside brackets, braces or quotes do not separate."""
    key, _, text = word.partition("=")
    values, depth, quote = [""], 0, ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character in "[{":
            depth += 1
        elif character in "]}":
            depth -= 1
        elif character == "," and depth == 0:
            values.append("")
            continue
        values[-1] += character
    if len(values) > 1 and not all(value.strip() for value in values):
        raise SettingsError(
            f"{word!r}: a value is empty; write key.path=first,second without a comma at the end",
            f"{word!r}：有一个值是空的；请写成 键.路径=第一个,第二个，末尾不要逗号",
        )
    return key.strip(), [value.strip() for value in values]


def _label(key: str, value: str, *, alone: bool) -> str:
    """A value for people: `window left=8 right=8`, after its key if it is unclear alone."""
    read = read_yaml(value)
    says_kind = key.endswith(".kind") or (isinstance(read, Mapping) and "kind" in read)
    text = _plain(read)
    return (
        text
        if alone and says_kind
        else f"{key.removeprefix('model.').removesuffix('.kind')}={text}"
    )


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        kind = [str(value["kind"])] if "kind" in value else []
        return " ".join(
            kind + [f"{key}={_plain(child)}" for key, child in value.items() if key != "kind"]
        )
    if isinstance(value, list):
        return "+".join(_plain(child) for child in value)
    return (
        "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    )


def file_name(name: str) -> str:
    """The name of a variant as the name of a directory."""
    return re.sub(r"[^\w.=+]+", "-", name).strip("-.")[:120] or "variant"
