"""Sequence-level knowledge distillation: a teacher translates the training sources for a student.

A corpus gives one of many right translations of a sentence, and which one it gives cannot be known
from the source. The teacher's own translations are more alike: its most probable output ŷ takes the
place of the reference y, and the student learns from

    L(θ) = - Σ_x log p_θ(ŷ | x),      ŷ ≈ argmax_y p_teacher(y | x)            (by beam search)

(Kim & Rush 2016, Sequence-Level Knowledge Distillation). Small models, shallow decoders and
non-autoregressive models gain most. The steps:

    teacher, data → count sources → missing shards → translate, filter → save → join, measure

Under torchrun every process translates the shards whose turn is its own, in rounds; a shard's text
does not depend on who translates it. The first process counts, holds the lock and joins.

Tested against: the translator itself; kills and resumes; one and two processes; trained students.
"""

import contextlib
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import headwise
from headwise.data.pairs.choices import DataSettings
from headwise.errors import DataError, UsageError
from headwise.language import say
from headwise.storage import read_manifest, seal_of
from headwise.tasks.bundle import TOKENIZER, WEIGHTS
from headwise.tasks.events import Events, Silence
from headwise.tasks.recipe import load_recipe, recipe_from
from headwise.tasks.translation.bundle import load_translator_bundle
from headwise.tasks.translation.distillation_report import measure_shards
from headwise.tasks.translation.distillation_request import DistillationRequest, DistilledCorpus
from headwise.tasks.translation.distillation_rounds import Rounds
from headwise.tasks.translation.distillation_search import Distiller, choose_search
from headwise.tasks.translation.distillation_shards import (
    WorkDirectory,
    check_output,
    describe_json,
    find_finished,
)
from headwise.tasks.translation.distillation_sources import (
    Corpora,
    Sources,
    num_shards,
)
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.tasks.translation.translator import Translator
from headwise.training.precision import choose_device
from headwise.training.process_group import check_devices, join_processes

FORMAT = 1
COUNTING = ("sentences counted", "已清点句数")


def distil(request: DistillationRequest, *, events: Events | None = None) -> DistilledCorpus:
    """Make a distilled corpus, or go on with one that was interrupted."""
    request.check()
    watcher = events or Silence()
    with join_processes() as processes, contextlib.ExitStack() as stack:
        check_output(request.output)
        check_devices(choose_device(request.device))
        bundle = load_translator_bundle(request.teacher)
        corpora = _find_corpora(request, bundle.recipe)
        search = choose_search(bundle.recipe, request.mode, request.keep, request.decoding)
        work = stack.enter_context(WorkDirectory(request.output))

        def begin() -> dict[str, Any]:
            sources = corpora.count(lambda done: watcher.count(say(*COUNTING), done, None))
            job = describe_json(
                {
                    **_describe_request(request, corpora.data),
                    "teacher": teacher_fingerprint(bundle.directory),
                    "decoding": search.model_dump(mode="json"),
                    "corpora": corpora.describe(),
                    "source": asdict(sources),
                }
            )
            done = find_finished(request.output, job)
            if done is not None:
                work.remove_finished(job)
            missing = [] if done else work.begin(job, num_shards(sources.sentences, request.shard))
            return {"job": job, "missing": missing, "done": done}

        plan = processes.ask_first(begin)
        if plan["done"] is not None:
            watcher.note(say(f"{request.output} is complete already", f"{request.output} 已经完成"))
            return DistilledCorpus(request.output, plan["done"])
        translator = Translator(bundle, device=request.device, precision=request.precision)
        distiller = Distiller(
            translator,
            search,
            mode=request.mode,
            keep=request.keep,
            filters=corpora.data.filter,
            row_tokens=corpora.data.row_tokens,
            drop_worst=request.drop_worst,
            noise=request.noise,
        )
        sources = Sources(**plan["job"]["source"])
        rounds = Rounds(processes, watcher, sources, request.shard)
        rounds.run(corpora, plan["missing"], work, distiller)
        if not processes.is_first:
            return DistilledCorpus(request.output, plan["job"])
        return _join(request, work, plan["job"], sources)


def _find_corpora(request: DistillationRequest, teacher: TranslationRecipe) -> Corpora:
    """The sentences to translate; a teacher of other languages is refused."""
    if request.recipe is None:
        recipe = recipe_from(teacher.model_dump(mode="json"), request.overrides)
    else:
        recipe = load_recipe(request.recipe, request.overrides)
    if not isinstance(recipe, TranslationRecipe):
        raise UsageError(
            f"--data {request.recipe} is a recipe of task {recipe.task}, and a translator is "
            "distilled on parallel text; give a recipe of task translation, or --source FILE",
            f"--data {request.recipe} 是任务 {recipe.task} 的配方，而蒸馏翻译模型需要平行语料；"
            "请给出任务为 translation 的配方，或 --source FILE",
        )
    data = recipe.data
    given, needed = (data.source, data.target), (teacher.data.source, teacher.data.target)
    if given != needed:
        raise UsageError(
            f"the teacher {request.teacher} translates {' → '.join(needed)}, and the data is "
            f"{' → '.join(given)}; give a teacher of these languages, or data.source={needed[0]} "
            f"data.target={needed[1]} if the data has them",
            f"教师模型 {request.teacher} 的方向是 {' → '.join(needed)}，而数据是 "
            f"{' → '.join(given)}；请换用该方向的教师模型；若数据含有这两种语言，"
            f"请加上 data.source={needed[0]} data.target={needed[1]}",
        )
    return Corpora(data, request.sources, request.references)


def _describe_request(request: DistillationRequest, data: DataSettings) -> dict[str, Any]:
    """What the text depends on besides the teacher, the search and the sentences."""
    return {
        "drop_worst": request.drop_worst,
        "noise": request.noise,
        "format": FORMAT,
        "languages": {"source": data.source, "target": data.target},
        "mode": request.mode,
        "keep": request.keep,
        "shard": request.shard,
        "precision": request.precision,
        "filter": data.filter.model_dump(mode="json"),
        "row_tokens": data.row_tokens,
    }


def teacher_fingerprint(bundle: Path) -> str:
    """Of the weights and the tokenizers: the same model has it wherever it lies."""
    files = read_manifest(bundle)["files"]
    return seal_of(
        {
            name: entry
            for name, entry in files.items()
            if name == WEIGHTS or name.startswith(f"{TOKENIZER}/")
        }
    )


def _join(
    request: DistillationRequest, work: WorkDirectory, job: dict[str, Any], sources: Sources
) -> DistilledCorpus:
    """Join the shards, measure the corpus and publish it."""
    total = num_shards(sources.sentences, request.shard)
    pairs, dropped = 0, Counter[str]()
    for shard in work.shards(total):
        pairs += len(shard.pairs)
        dropped += shard.dropped
    if not pairs:
        work.remove()
        raise DataError(
            f"no translation of {sources.sentences:,} sentences is left after filtering "
            f"({_list(dropped)}); is the teacher trained? See what it writes with `headwise "
            "translate`",
            f"过滤后 {sources.sentences:,} 句没有留下任何译文（{_list(dropped)}）；"
            "教师模型训练好了吗？可用 `headwise translate` 查看其译文",
        )
    raw, distilled = measure_shards(work, total)
    description = describe_json(
        {
            **job,
            "pairs": pairs,
            "dropped": dict(sorted(dropped.items())),
            "ambiguity": {
                "raw": None if raw is None else raw.as_dict(),
                "distilled": distilled.as_dict(),
            },
            "teacher_directory": str(request.teacher),
            "headwise": headwise.__version__,
        }
    )
    languages = job["languages"]
    work.publish(total, (languages["source"], languages["target"]), description)
    return DistilledCorpus(request.output, description)


def _list(dropped: Counter[str]) -> str:
    return ", ".join(f"{name}: {count:,}" for name, count in sorted(dropped.items()))
