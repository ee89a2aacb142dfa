"""Compares language models, masked language models and ELMo by perplexity per token.

    perplexity = exp( Σ loss of a line's tokens / Σ tokens of a line )

The test text is used, or the validation text if there is none. A perplexity depends on what counts
as a token. So all variants must have the same training text, from which the vocabulary is made, and
the same `text` settings.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from headwise.data.splits import Part
from headwise.data.text.choices import TextDataSettings
from headwise.evaluation.several_seeds import Statistics
from headwise.settings import Settings
from headwise.tasks.comparison_metrics import ON_VALIDATION, ComparisonMetrics, Metric
from headwise.tasks.item_scores import item_file


def scored_part(data: TextDataSettings) -> Part | None:
    """The test text, or the validation text where there is none."""
    parts: tuple[Part, ...] = ("test", "valid")
    return next((part for part in parts if data.texts(part)), None)


def text_comparison_metrics(
    data: TextDataSettings,
    text: Settings,
    *,
    metrics: tuple[Metric, ...],
    read: Callable[[Path, Part], Mapping[str, Statistics]],
) -> ComparisonMetrics:
    """Comparison metrics of the lines that a run kept for a part."""
    part = scored_part(data)
    question: dict[str, Any] = {"data.test": data.test, "data.language": data.language}
    if part == "valid":
        question["data.valid"] = data.valid
    question["data.keep_empty"] = data.keep_empty
    return ComparisonMetrics(
        metrics=metrics,
        question=question,
        read=lambda directory: {} if part is None else read(directory, part),
        is_scored=part is not None,
        tokens={"data.train": data.train, "text": text},
        files=() if part is None else (item_file(part),),
        remark=ON_VALIDATION if part == "valid" else None,
    )
