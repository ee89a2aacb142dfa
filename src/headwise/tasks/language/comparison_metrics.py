"""Compares language models by the perplexity of the test text, ends of lines included.

n-gram models and neural models can be compared with each other, because both give a probability to
every token of a line and to its end. Models of sentences and models of one stream predict the same
tokens, the latter from more context. Stupid backoff is refused, because its scores are no
probabilities.
"""

from pathlib import Path

from headwise.data.splits import Part
from headwise.errors import UsageError
from headwise.evaluation.item_means import MeanStatistics, exponential
from headwise.evaluation.several_seeds import Statistics
from headwise.models.ngram import NgramSettings
from headwise.models.ngram.choices import StupidBackoff
from headwise.tasks.comparison_metrics import ComparisonMetrics, declared_metric
from headwise.tasks.item_scores import read_item_scores
from headwise.tasks.language.recipe import LanguageRecipe
from headwise.tasks.text_comparison_metrics import text_comparison_metrics


def language_comparison_metrics(recipe: LanguageRecipe) -> ComparisonMetrics:
    """Perplexity, over lines."""
    model = recipe.model
    if isinstance(model, NgramSettings) and isinstance(model.smoothing, StupidBackoff):
        raise UsageError(
            "the scores of model.smoothing.kind=stupid_backoff do not sum to one, so they give no "
            "perplexity that could be compared; choose another smoothing",
            "model.smoothing.kind=stupid_backoff 的分数之和不为一，得不到可比的困惑度；"
            "请选用其他平滑",
        )

    def read(directory: Path, part: Part) -> dict[str, Statistics]:
        kept = read_item_scores(directory, part, ("loss", "tokens"))
        return {"perplexity": MeanStatistics.of(kept["loss"], kept["tokens"], exponential)}

    metrics = (declared_metric(recipe, "perplexity"),)
    return text_comparison_metrics(recipe.data, recipe.text, metrics=metrics, read=read)
