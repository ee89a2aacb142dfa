"""`headwise describe`: the parts and costs of a model of any task, from a bundle or a recipe.

A bundle is described with its scores. A recipe is described as it would be built, with its largest
vocabulary. The size of n-gram models depends on the text, so their recipes are described without
it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch

from headwise.data.pairs.directions import in_arrows
from headwise.errors import UsageError
from headwise.inspecting.part_costs import PartCost, count_parts
from headwise.language import say
from headwise.models.decoder_cache import DecoderCache, count_decoder_cache
from headwise.settings import check_settings, read_settings_file
from headwise.settings.kind import Words
from headwise.storage import MANIFEST, read_json
from headwise.tasks.accepted_models import task_of_bundle
from headwise.tasks.any_recipe import AnyRecipe
from headwise.tasks.bundle import RESULTS, open_bundle
from headwise.tasks.bundle_directory import find_bundle
from headwise.tasks.bundle_form import RECIPE
from headwise.tasks.planned_step import PlannedStep, Sample
from headwise.tasks.recipe import load_recipe
from headwise.tasks.result_rows import result_rows
from headwise.tasks.table import find_entry, find_task, name_task
from headwise.tasks.task import SinglePassPart, SinglePassTask

BYTES_FP32, BYTES_BF16 = 4, 2

Table = tuple[str, tuple[str, ...], list[tuple[str, ...]]]
"""Title, headings, rows."""

MEMORY: dict[str, Words] = {
    "weights_fp32": ("weights, fp32", "权重，fp32"),
    "weights_bf16": ("weights, bf16", "权重，bf16"),
    "training": ("training (weights, gradients, Adam)", "训练（权重、梯度、Adam）"),
    "cache_per_target_token": ("decoder's cache per target token", "解码缓存，每目标词元"),
    "cache_fixed": ("decoder's cache, fixed part", "解码缓存，固定部分"),
    "cache_per_source_token": ("decoder's cache per source token", "解码缓存，每源词元"),
}
"""What `headwise describe` calls the sizes."""


class DescribedParts(Protocol):
    """The parts and costs of a model."""

    @property
    def parameters(self) -> int: ...

    def tables(self) -> list[Table]: ...

    def as_dict(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Description:
    """What `headwise describe` shows."""

    task: str
    data: Mapping[str, Any]
    """The recipe's `data` section."""
    body: DescribedParts
    results: Mapping[str, Any] | None
    """Of a trained model: sizes of its data and its scores."""
    vocabulary: int | None = None
    """Of a recipe: `text.size`, the largest vocabulary that its data could give."""
    segmentation: str | None = None
    """How training cuts its sentences, if not always in the best way."""

    @property
    def parameters(self) -> int:
        return self.body.parameters

    def tables(self) -> list[Table]:
        model: list[tuple[str, ...]] = [
            (say("task", "任务"), name_task(self.task)),
            *_data_rows(self.data),
        ]
        if self.segmentation is not None:
            model.append((say("segmentation in training", "训练中的切分"), self.segmentation))
        if self.vocabulary is not None:
            name = say("assumed vocabulary (text.size)", "假定的词表大小（text.size）")
            most = say("at most; less text gives fewer", "为上限，文本较少时更小")
            model.append((name, f"{self.vocabulary:,} ({most})"))
        tables = [
            (say("Model", "模型"), (say("what", "项目"), say("value", "值")), model),
            *self.body.tables(),
        ]
        if self.results:
            headings = (say("result", "结果"), say("value", "值"), say("details", "说明"))
            tables.append((say("Results", "结果"), headings, self._result_rows()))
        return tables

    def _result_rows(self) -> list[tuple[str, ...]]:
        entry = find_entry(self.task)
        assert self.results is not None
        assert entry is not None, "the model of an unknown task is refused"
        return list(result_rows(self.results, entry.recipe_type))

    def as_dict(self) -> dict[str, Any]:
        """As plain data, for JSON."""
        results = {} if self.results is None else {"results": dict(self.results)}
        return {"task": self.task, **self.body.as_dict(), **results}


@dataclass(frozen=True)
class LayerDescription:
    """A model that learns by gradient steps: its parts, as its modules call them, for one sample of
    the data."""

    length: int
    parts: tuple[PartCost, ...]
    sample: Sample
    cache: DecoderCache | None
    """Of a translator that writes token by token."""

    @property
    def parameters(self) -> int:
        return sum(part.parameters for part in self.parts)

    @property
    def forward_flops(self) -> int:
        return sum(part.flops for part in self.parts)

    @property
    def memory(self) -> dict[str, int]:
        """Bytes; activations are not counted."""
        sizes = {
            "weights_fp32": BYTES_FP32 * self.parameters,
            "weights_bf16": BYTES_BF16 * self.parameters,
            "training": 4 * BYTES_FP32 * self.parameters,
        }
        if self.cache is not None:
            sizes |= {
                "cache_per_target_token": BYTES_FP32 * self.cache.per_target_token,
                "cache_fixed": BYTES_FP32 * self.cache.fixed,
                "cache_per_source_token": BYTES_FP32 * self.cache.per_source_token,
            }
        return sizes

    def tables(self) -> list[Table]:
        headings = (
            say("part", "部分"),
            say("parameters", "参数"),
            say(f"FLOPs / {self.sample.item[0]}", f"每{self.sample.item[1]} FLOPs"),
        )
        sums: dict[str, tuple[int, int]] = {}
        for part in self.parts:
            parameters, flops = sums.get(say(*part.title), (0, 0))
            sums[say(*part.title)] = parameters + part.parameters, flops + part.flops
        sums[say("all", "合计")] = self.parameters, self.forward_flops
        parts = [
            (title, f"{parameters:,}", f"{round(flops / self.length):,}")
            for title, (parameters, flops) in sums.items()
        ]
        memory = [(say(*MEMORY[name]), format_size(size)) for name, size in self.memory.items()]
        work = [
            (say("forward", "前向"), f"{self.forward_flops:,}"),
            (say("training step", "训练一步"), f"{3 * self.forward_flops:,}"),
        ]
        title = say(*(words.format(length=self.length) for words in self.sample.title))
        return [
            (say("Parts", "组成"), headings, list(parts)),
            (say("Memory", "内存"), (say("what", "项目"), say("size", "大小")), list(memory)),
            (title, (say("pass", "过程"), "FLOPs"), list(work)),
        ]

    def as_dict(self) -> dict[str, Any]:
        return {
            "length": self.length,
            "parts": [
                {
                    "name": part.name,
                    "parameters": part.parameters,
                    "flops": part.flops,
                    "flops_per_token": round(part.flops / self.length),
                }
                for part in self.parts
            ],
            "memory": self.memory,
            "parameters": self.parameters,
            "forward_flops": self.forward_flops,
            "training_flops": 3 * self.forward_flops,
        }


@dataclass(frozen=True)
class TableDescription:
    """A model that was learnt in a single pass: its tables."""

    parts: tuple[SinglePassPart, ...]

    @property
    def parameters(self) -> int:
        return sum(part.parameters for part in self.parts)

    def tables(self) -> list[Table]:
        headings = (say("part", "部分"), say("parameters", "参数"), say("size", "大小"))
        rows = [
            (say(*part.name), f"{part.parameters:,}", format_size(part.nbytes))
            for part in self.parts
        ]
        total = sum(part.nbytes for part in self.parts)
        rows.append((say("all", "合计"), f"{self.parameters:,}", format_size(total)))
        return [(say("Parts", "组成"), headings, list(rows))]

    def as_dict(self) -> dict[str, Any]:
        parts = [
            {"name": part.name[0], "parameters": part.parameters, "bytes": part.nbytes}
            for part in self.parts
        ]
        size = sum(part.nbytes for part in self.parts)
        return {"parts": parts, "memory": {"weights": size}, "parameters": self.parameters}


def describe_model(
    name: Path | str, overrides: Sequence[str] = (), *, length: int = 25
) -> Description:
    """A bundle or run directory is described as it is; a recipe as it would be built, with its
    largest vocabulary.
    """
    path = Path(name)
    if (path / MANIFEST).is_file() or (path / "model" / MANIFEST).is_file():
        if overrides:
            raise UsageError(
                f"{path} is a trained model, its parts cannot be changed ({overrides[0]}); give a "
                "recipe instead",
                f"{path} 是训练好的模型，不能修改（{overrides[0]}）；请改为给出配方",
            )
        return _describe_bundle(find_bundle(path), length)
    recipe = load_recipe(name, overrides)
    task = find_task(recipe)
    if isinstance(task, SinglePassTask):
        raise UsageError(
            f"{name}: how large its model becomes depends on the text alone; "
            f"`headwise plan {name}` predicts it from a part of the text, and `headwise describe "
            "RUN` describes the trained one",
            f"{name}：该模型的大小只取决于文本；`headwise plan {name}` "
            "用一部分文本预测，`headwise describe 运行目录` 描述训练好的模型",
        )
    body = _describe_step(task.planned_step(recipe), length)
    settings = recipe.model_dump(mode="json")
    size = (settings.get("text") or {}).get("size")
    cut = _segmentation_of(recipe)
    return Description(recipe.task, settings["data"], body, None, size, cut)


def _describe_bundle(path: Path, length: int) -> Description:
    word = task_of_bundle(path)
    recipe = _read_recipe(path, word)
    entry = find_entry(word)
    assert entry is not None
    task = entry.implementation if recipe is None else find_task(recipe)
    if isinstance(task, SinglePassTask):
        body: DescribedParts = TableDescription(task.describe_parts(path))
    else:
        assert recipe is not None, "only imported vectors have none"
        open_bundle(path, type(recipe))  # checks every file
        body = _describe_step(task.planned_step(recipe, path), length)
    data = {} if recipe is None else recipe.model_dump(mode="json")["data"]
    results, cut = read_json(path / RESULTS), _segmentation_of(recipe)
    return Description(word, data, body, results, segmentation=cut)


def _segmentation_of(recipe: AnyRecipe | None) -> str | None:
    """What `training.segmentation` says; only translators have it."""
    cut = getattr(getattr(recipe, "training", None), "segmentation", None)
    return None if cut is None else str(cut.in_words)


def _read_recipe(path: Path, word: str) -> AnyRecipe | None:
    """The recipe of a bundle; None for vectors that were imported."""
    entry, file = find_entry(word), path / RECIPE
    if entry is None:
        return load_recipe(file)  # refuses it and says which tasks there are
    return (
        check_settings(entry.recipe_type, read_settings_file(file), file=file)
        if (file.is_file())
        else None
    )


def _describe_step(step: PlannedStep, length: int) -> DescribedParts:
    with torch.device("meta"):
        cache = count_decoder_cache(step.build(1))
    length = step.described.length or length
    return LayerDescription(length, count_parts(step, length=length), step.described, cache)


def format_size(num_bytes: int) -> str:
    """968,392,704 bytes as 923.5 MiB."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if num_bytes >= size:
            return f"{num_bytes / size:,.1f} {unit}"
    return f"{num_bytes} B"


def _data_rows(data: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Languages and training corpora, as the recipe names them."""
    rows: list[tuple[str, ...]] = []
    if data.get("directions"):
        rows.append((say("directions", "方向"), in_arrows(data["directions"])))
        if data.get("zero_shot"):
            name = say("directions not learnt (zero-shot)", "未训练的方向（零样本）")
            rows.append((name, in_arrows(data["zero_shot"])))
    elif "source" in data and "target" in data:
        rows.append((say("languages", "语言"), f"{data['source']} → {data['target']}"))
    elif data.get("language"):
        rows.append((say("language", "语言"), str(data["language"])))
    given = data.get("train")
    corpora = given if isinstance(given, list) else [] if given is None else [given]
    if corpora:
        names = dict.fromkeys(map(_name_corpus, corpora))
        rows.append((say("training data", "训练数据"), ", ".join(names)))
    return rows


def _name_corpus(corpus: Any) -> str:
    if not isinstance(corpus, Mapping):
        return str(corpus)
    return str(corpus.get("path") or corpus.get("name") or corpus.get("kind"))
