"""The comparison of recipes: which way of training is better, and is the difference significant?
`headwise compare` prints the table.

Every variant is trained with the same seeds, data and budget. Quality is BLEU (and chrF) for
translators and accuracy for taggers and classifiers: the mean over seeds, with an interval that
covers the test set and the seeds (evaluation/several_seeds.py). A difference from the first variant
is reported only if it is significant at 5 %. Time per step and memory are those of training, speed
that of processing the test set.

    DIR/comparison.json   DIR/comparison.md   DIR/quality.png   DIR/learning-curves.png
    DIR/runs/VARIANT/seed-N/   one run each
    DIR/prepared/              data that runs share: hard links to the files in their data/

Tested with real tiny runs, with a variant that fails, and with hand-made outcomes whose table is
known.
"""

import logging
import statistics
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headwise.comparing.recipe_table import (
    LABELS,
    TRANSLATION,
    ComparisonResult,
    VariantResult,
    as_markdown,
)
from headwise.comparing.run_processes import Outcome, run_all
from headwise.comparing.variants import Run, plan_comparison
from headwise.evaluation.several_seeds import SeedScores
from headwise.evaluation.translation import build_metrics
from headwise.language import say
from headwise.storage import write_json, write_text
from headwise.tasks.events import Events, Silence
from headwise.tasks.labels import measured_part
from headwise.tasks.labels.measured_part import read_label_statistics
from headwise.tasks.machine import describe_machine
from headwise.tasks.text_input import read_text_lines
from headwise.tasks.translation import translated_part
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.training.log_file import read_log

METRICS = ("bleu", "chrf")

logger = logging.getLogger(__name__)


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
    recipe = outcomes[0].run.recipe
    yardstick = TRANSLATION if isinstance(recipe, TranslationRecipe) else LABELS
    signature, measure = (
        _translation_scores(recipe)
        if isinstance(recipe, TranslationRecipe)
        else (str, _label_scores)
    )
    names = list(dict.fromkeys(outcome.run.variant for outcome in outcomes))
    scores: dict[str, dict[str, SeedScores]] = {}
    variants = []
    for name in names:
        own = [outcome for outcome in outcomes if outcome.run.variant == name]
        finished = [outcome for outcome in own if outcome.results is not None]
        has_test = finished and all("test" in (outcome.results or {}) for outcome in finished)
        scores[name] = measure([outcome.run.directory for outcome in finished]) if has_test else {}
        variants.append(_line(name, own, finished, scores[name], scores[names[0]]))
    return ComparisonResult(
        directory=directory,
        variants=tuple(variants),
        signature=signature() if any(scores.values()) else "",
        jobs=jobs,
        machine={
            "date": datetime.now(UTC).strftime("%Y-%m-%d"),
            **describe_machine(recipe.training.device),
        },
        curves={
            outcome.run.label: [
                line for line in _journal(outcome.run) if line.get("kind") == "valid"
            ]
            for outcome in outcomes
        },
        yardstick=yardstick,
        notes=_notes([outcome.run for outcome in outcomes]),
    )


Measure = Callable[[Sequence[Path]], dict[str, SeedScores]]
"""From the run directories of a variant's seeds to its scores by metric."""


def _translation_scores(recipe: TranslationRecipe) -> tuple[Callable[[], str], Measure]:
    """The signature of BLEU, known after something was scored, and the function that reads and
    scores translations of the test set.
    """
    language = recipe.data.target
    metrics = build_metrics(
        language, pretokenized=recipe.evaluation.pretokenized, lowercase=recipe.evaluation.lowercase
    )

    def measure(directories: Sequence[Path]) -> dict[str, SeedScores]:
        folders = [directory / translated_part.FOLDER for directory in directories]
        hypotheses = [list(read_text_lines(folder / f"test.{language}")) for folder in folders]
        references = list(read_text_lines(folders[0] / f"test.ref.{language}"))
        return {
            metric: SeedScores.of(metrics[metric], hypotheses, references) for metric in METRICS
        }

    return lambda: str(metrics["bleu"].get_signature()), measure


def _label_scores(directories: Sequence[Path]) -> dict[str, SeedScores]:
    statistics = [
        read_label_statistics(directory / measured_part.FOLDER, "test") for directory in directories
    ]
    return {"accuracy": SeedScores.of_statistics(statistics)}


def _line(
    name: str,
    own: Sequence[Outcome],
    finished: Sequence[Outcome],
    scores: dict[str, SeedScores],
    baseline: dict[str, SeedScores],
) -> VariantResult:
    results = [outcome.results or {} for outcome in finished]
    tests = [result["test"] for result in results if "test" in result]
    shared = [metric for metric in scores if metric in baseline and scores is not baseline]
    return VariantResult(
        name=name,
        seeds=tuple(outcome.run.seed for outcome in finished),
        quality={metric: found.estimate() for metric, found in scores.items()},
        spread={metric: found.spread for metric, found in scores.items()},
        differences={metric: scores[metric].difference(baseline[metric]) for metric in shared},
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
        ),
    )


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
