"""`headwise compare`: trains variants of a recipe and tests whether their scores differ.

Every variant is trained with the same seeds, data and budget. The task defines the score
(tasks/comparison_metrics.py): BLEU and chrF for translators, accuracy for taggers and classifiers,
perplexity for language models. The table has the mean over seeds, with an interval that covers the
choice of the test set and of the seeds (evaluation/several_seeds.py). A difference from the first
variant is reported only if it is significant at 5 %. Time per step and memory are those of
training; speed is that of processing the test set.

    DIR/comparison.json   DIR/comparison.md   DIR/quality.png   DIR/learning-curves.png
    DIR/runs/VARIANT/seed-N/   one run each
    DIR/prepared/              data that runs share: hard links to the files in their data/

Tested with real tiny runs, with a variant that fails, and with hand-made outcomes whose table is
known.
"""

import logging
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from headwise.comparing.own_directory import require_own_directory
from headwise.comparing.recipe_table import ComparisonResult, VariantResult, as_markdown
from headwise.comparing.run_processes import Outcome, run_all
from headwise.comparing.run_scores import VariantScores, score_variants
from headwise.comparing.shared_data import FOLDER
from headwise.comparing.variants import Run, plan_comparison
from headwise.language import say
from headwise.storage import write_json, write_text
from headwise.tasks.comparison_metrics import ComparisonMetrics
from headwise.tasks.events import Events, Silence
from headwise.tasks.machine import describe_machine
from headwise.tasks.table import find_task
from headwise.tasks.task import TrainedTask, training_of
from headwise.training.log_file import read_log

logger = logging.getLogger(__name__)

OWN = ("runs", FOLDER, "comparison.json", "comparison.md")


def compare(
    words: Sequence[str],
    *,
    directory: Path | str,
    seeds: Sequence[int] = (),
    jobs: int = 1,
    events: Events | None = None,
) -> ComparisonResult:
    """Train every variant with every seed, measure, and write the table; a second call continues
    where the first one ended.
    """
    place = Path(directory)
    require_own_directory(place, own=OWN)
    runs = plan_comparison(words, seeds=seeds, directory=place)
    for note in _notes(runs):
        logger.warning("%s", note)
    outcomes = run_all(runs, directory=place, jobs=jobs, events=events or Silence())
    result = summarize(outcomes, directory=place, jobs=jobs)
    write_json(place / "comparison.json", result.as_dict())
    write_text(place / "comparison.md", as_markdown(result))
    return result


def _notes(runs: Sequence[Run]) -> tuple[str, ...]:
    """The notes of all runs without duplicates, since most variants share their data."""
    return tuple(dict.fromkeys(run.note for run in runs if run.note is not None))


def summarize(outcomes: Sequence[Outcome], *, directory: Path, jobs: int) -> ComparisonResult:
    """The table of finished and failed runs."""
    comparison_metrics = outcomes[0].run.comparison_metrics
    scores = score_variants(outcomes, comparison_metrics)
    first = next(iter(scores.values()))
    variants = []
    for name, found in scores.items():
        own = [outcome for outcome in outcomes if outcome.run.variant == name]
        variants.append(_line(name, own, found, first, comparison_metrics))
    if any(not isinstance(find_task(outcome.run.recipe), TrainedTask) for outcome in outcomes):
        variants = [
            replace(variant, training_seconds=_seconds(outcomes, variant.name))
            for variant in variants
        ]
    return ComparisonResult(
        directory=directory,
        variants=tuple(variants),
        signature=comparison_metrics.signature()
        if any(one.by_metric for one in scores.values())
        else "",
        jobs=jobs,
        machine={
            "date": datetime.now(UTC).strftime("%Y-%m-%d"),
            **describe_machine(_device_of(outcomes)),
        },
        curves={
            outcome.run.label: [
                line for line in _journal(outcome.run) if line.get("kind") == "valid"
            ]
            for outcome in outcomes
        },
        comparison_metrics=comparison_metrics,
        notes=_notes([outcome.run for outcome in outcomes]),
    )


def _device_of(outcomes: Sequence[Outcome]) -> Literal["auto", "cpu", "cuda"]:
    """Where the models were trained; a single pass uses the CPU."""
    recipes = [outcome.run.recipe for outcome in outcomes]
    trained = [recipe for recipe in recipes if isinstance(find_task(recipe), TrainedTask)]
    return training_of(trained[0]).device if trained else "cpu"


def _line(
    name: str,
    own: Sequence[Outcome],
    scores: VariantScores,
    baseline: VariantScores,
    comparison_metrics: ComparisonMetrics,
) -> VariantResult:
    finished = [outcome for outcome in own if outcome.results is not None]
    results = [outcome.results or {} for outcome in finished]
    tests = [result["test"] for result in results if "test" in result]
    ends = {metric.key: metric.ends for metric in comparison_metrics.metrics}
    values, others = scores.by_metric, baseline.by_metric
    shared = [metric for metric in values if metric in others and scores is not baseline]
    return VariantResult(
        name=name,
        seeds=tuple(outcome.run.seed for outcome in finished),
        quality={metric: found.estimate(ends[metric]) for metric, found in values.items()},
        spread={metric: found.spread for metric, found in values.items()},
        differences={
            metric: values[metric].difference(others[metric], ends[metric]) for metric in shared
        },
        valid_loss=_mean([_last_loss(outcome.run) for outcome in finished]),
        parameters=results[0].get("parameters") if results else None,
        step_seconds=_mean([step_seconds(_journal(outcome.run)) for outcome in finished]),
        peak_memory_mib=max(
            (r["peak_memory_mib"] for r in results if r.get("peak_memory_mib")), default=None
        ),
        sentences_per_second=_mean([_speed(test, "num_sentences") for test in tests]),
        words_per_second=_mean([_speed(test, "words") for test in tests]),
        failures=tuple(
            say(
                f"seed {outcome.run.seed}: {outcome.failure}",
                f"种子 {outcome.run.seed}：{outcome.failure}",
            )
            for outcome in own
            if outcome.failure is not None
        )
        + scores.problems,
    )


def _seconds(outcomes: Sequence[Outcome], name: str) -> float | None:
    """The mean time of training of a variant."""
    own = [outcome.results or {} for outcome in outcomes if outcome.run.variant == name]
    return _mean([result.get("training_seconds") for result in own])


def _speed(test: Mapping[str, Any], unit: str) -> float | None:
    return test[unit] / test["seconds"] if test.get(unit) and test.get("seconds") else None


def step_seconds(lines: Sequence[dict[str, Any]]) -> float | None:
    """The median seconds per update over the lines of the log. The first line, which includes
    compilation and warming up, is left out if there are others.
    """
    steps, found = 0, []
    for line in lines:
        if line.get("kind") == "train" and line.get("tokens_per_second"):
            found.append(
                line["target_tokens"] / line["tokens_per_second"] / max(1, line["step"] - steps)
            )
            steps = line["step"]
    return statistics.median(found[1:] or found) if found else None


def _journal(run: Run) -> list[dict[str, Any]]:
    try:
        return read_log(run.directory / "log.jsonl")
    except OSError:
        return []


def _last_loss(run: Run) -> float | None:
    losses = [
        line["loss"]
        for line in _journal(run)
        if line.get("kind") == "valid" and line.get("loss") is not None
    ]
    return losses[-1] if losses else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None
