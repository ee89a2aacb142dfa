"""Formats the results of a run as rows of a table: a name, a value with its unit, and remarks.

The results that every run has are declared here, because `run.py` computes them for all tasks; a
task declares its own at its recipe type (declared_results.py). The table at the end of `headwise
train`, `headwise describe` and the model cards use these rows. Programs should read `results.json`
or `--json`, whose keys do not change.
"""

from collections.abc import Mapping
from typing import Any

from headwise.language import say
from headwise.tasks.any_recipe import AnyRecipe
from headwise.tasks.declared_results import Choose, Result, Results, write_value

Row = tuple[str, str, str]
"""Name, value, detail (a signature, or what was counted)."""

EVERY_RUN: Results = {
    "steps": Result(("training steps", "训练步数")),
    "stopped_by": Result(("stopped because", "停止原因"), "word"),
    "weights": Result(("weights kept", "保留的权重"), "word"),
    "target_tokens": Result(("target tokens seen", "见过的目标词元")),
    "training_seconds": Result(("training time", "训练用时"), "time"),
    "expected_seconds": Result(
        ("expected training time on this machine", "本机预计训练用时"), "time"
    ),
    "expected_memory_mib": Result(
        ("expected memory, without the program", "预计内存（不含程序本身）"), "memory"
    ),
    "precision": Result(("number format", "数值格式"), "word"),
    "compiled": Result(("compiled by torch.compile", "用 torch.compile 编译"), "switch"),
    "parameters": Result(("parameters", "参数")),
    "peak_memory_mib": Result(
        ("peak memory, with the program itself", "内存峰值（含程序本身）"), "memory"
    ),
}
"""What `run.py` records for a task of any kind, or `--check` for a recipe."""
WORDS: dict[str, dict[str, tuple[str, str]]] = {
    "stopped_by": {
        "steps": ("all planned steps were done", "完成了全部计划步数"),
        "patience": ("validation no longer improved", "验证结果不再提高"),
        "time_limit": ("the time limit was reached", "达到时间上限"),
        "data": ("the data came to its end", "数据已用完"),
    },
    "weights": {
        "last": ("of the last step", "最后一步的权重"),
        "best": ("of the best validation", "验证最好时的权重"),
        "averaged": ("the average of several checkpoints", "多个检查点的平均"),
        "ema": ("the moving average", "滑动平均"),
    },
}
PARTS = {"valid": ("validation set", "验证集"), "test": ("test set", "测试集")}


def part_name(part: str) -> str:
    """`valid` and `test` in words."""
    return say(*PARTS[part])


def english(en: str, zh: str) -> str:
    """For texts that are always English, such as model cards."""
    return en


def result_rows(
    results: Mapping[str, Any], recipe: type[AnyRecipe] = AnyRecipe, choose: Choose = say
) -> list[Row]:
    """All results in their order, as the recipe type declares them; a scored set (validation, test)
    gives one row for each metric.
    """
    rows: list[Row] = []
    for key, value in results.items():
        if isinstance(value, Mapping):
            rows += _scored_rows(choose(*PARTS.get(key, (key, key))), value, recipe, choose)
        elif value is not None:  # not measured: memory outside Linux
            name, declared = _name(key, recipe, choose)
            words = WORDS.get(key, {}).get(str(value))
            text = write_value(value, declared.unit, choose) if words is None else choose(*words)
            rows.append((name, text, ""))
    return rows


def _name(key: str, recipe: type[AnyRecipe], choose: Choose) -> tuple[str, Result]:
    """The name of a number, and its declaration; `valid_loss` is a metric of the validation set."""
    declared = recipe.results.get(key) or EVERY_RUN.get(key)
    if declared is not None:
        return choose(*declared.title), declared
    part, _, metric = key.partition("_")
    if part in PARTS and metric in recipe.metrics:
        return _join(choose(*PARTS[part]), recipe.metrics[metric], choose), recipe.metrics[metric]
    return key.replace("_", " "), Result((key, key), "word")


def _join(part: str, metric: Result, choose: Choose) -> str:
    en, zh = metric.title
    return part + choose(f", {en}", f" {zh}" if zh.isascii() else zh)


def _scored_rows(
    part: str, value: Mapping[str, Any], recipe: type[AnyRecipe], choose: Choose
) -> list[Row]:
    rows: list[Row] = []
    undeclared = {key: Result((key, key), "word") for key in value}
    for key, metric in (recipe.metrics or undeclared).items():
        if key not in value:
            continue
        found, detail = value[key], ""
        if isinstance(found, Mapping):  # with its exact definition
            found, detail = found["value"], found["signature"]
        elif metric.detail is not None:
            detail = choose(*(words.format_map(value) for words in metric.detail))
        rows.append((_join(part, metric, choose), write_value(found, metric.unit, choose), detail))
    for direction, scores in value.get("directions", {}).items():
        unseen = choose(" (zero-shot)", "（零样本）") if scores["zero_shot"] else ""
        rows += _scored_rows(f"{part} {direction}{unseen}", scores, recipe, choose)
    return rows


def card_lines(results: Mapping[str, Any], recipe: type[AnyRecipe] = AnyRecipe) -> str:
    """The results as a list in Markdown, for a model card."""
    lines = [
        f"- {name}: {value}"
        + (f" (`{detail}`)" if "|" in detail else f" ({detail})" if detail else "")
        for name, value, detail in result_rows(results, recipe, english)
    ]
    return "\n".join(lines) or "- none recorded"
