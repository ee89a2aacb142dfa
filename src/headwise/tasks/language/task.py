"""The `Task`s of language modelling: n-gram models are counted, neural models trained in steps.

    runs/mine/  recipe.yaml   log.jsonl   checkpoints/   model/

`tasks/run.py` calls them. The loss and the batches are in `objective.py`, counting in
`ngram_counting.py`. Perplexity is measured on `data.valid` and `data.test` and includes the end of
each sentence.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from headwise.data.batching import Share
from headwise.data.shards import Ragged, as_ragged
from headwise.data.text.text_batches import join_lines
from headwise.language import say
from headwise.models.choices import LanguageNetwork, NeuralSettings, build_language_model
from headwise.models.ngram import NgramModel, NgramSettings
from headwise.randomness import torch_generator
from headwise.tasks.bundle import save_tokenizer
from headwise.tasks.comparison_metrics import ComparisonMetrics
from headwise.tasks.events import Events
from headwise.tasks.language.bundle import as_token_model, load_language_bundle
from headwise.tasks.language.comparison_metrics import language_comparison_metrics
from headwise.tasks.language.language_model import LanguageModel
from headwise.tasks.language.language_start import find_language_start
from headwise.tasks.language.ngram_counting import (
    bound_memory,
    count_model,
    predict_cost,
    tables_of,
)
from headwise.tasks.language.objective import (
    CarriedRows,
    carried_rows,
    carries_states,
    make_batches,
    make_loss,
    plan_step,
)
from headwise.tasks.language.recipe import LanguageRecipe, SentenceReading, StreamReading
from headwise.tasks.language.stored_pairs import check_stored_pairs
from headwise.tasks.language.text import (
    TokenizedText,
    check_measured,
    measure,
    read_part,
    tokenize,
)
from headwise.tasks.planned_step import PlannedStep, find_vocabularies
from headwise.tasks.recurrent_training import check_word_by_word, train_word_by_word
from headwise.tasks.task import (
    Learner,
    SinglePassModel,
    SinglePassPart,
    SinglePassTask,
    Task,
    TrainedTask,
)
from headwise.tasks.training_cost import TrainingCost, Trial, first_batch
from headwise.training.session import Evaluate

VALIDATION_ROWS = 16
CHECKED_BATCHES = 8
"""Batches of text from which `--check` takes its own."""


class LanguageTask(Task[LanguageRecipe, TokenizedText]):
    """Learn which token comes next; `for_recipe` chooses how."""

    def for_recipe(self, recipe: LanguageRecipe) -> Task[LanguageRecipe, TokenizedText]:
        return NgramTask() if isinstance(recipe.model, NgramSettings) else NeuralLanguageTask()

    def prepare(self, recipe: LanguageRecipe, directory: Path, watcher: Events) -> TokenizedText:
        check_measured(recipe)
        start = find_language_start(recipe)
        return tokenize(recipe, watcher, None if start is None else start.tokenizer)

    def sizes(self, recipe: LanguageRecipe, prepared: TokenizedText) -> dict[str, Any]:
        return {
            "lines": prepared.num_lines,
            "tokens": len(prepared.lines.tokens) + prepared.num_lines,
            "vocabulary": prepared.tokenizer.size,
        }

    def describe_start(
        self, recipe: LanguageRecipe, prepared: TokenizedText, module: nn.Module | None
    ) -> str:
        lines, tokens = prepared.num_lines, len(prepared.lines.tokens)
        vocabulary, language = prepared.tokenizer.size, recipe.data.language
        text = say(
            f"{language}: {lines:,} lines, {tokens:,} tokens, vocabulary {vocabulary:,}; "
            f"{recipe.model.kind}",
            f"{language}：{lines:,} 行，{tokens:,} 词元，词表 {vocabulary:,}；{recipe.model.kind}",
        )
        if module is None:
            return text
        parameters = sum(parameter.numel() for parameter in module.parameters())
        training, start = recipe.training, find_language_start(recipe)
        begun = "" if start is None else start.describe(module) + "\n"
        return (
            begun
            + text
            + say(
                f" of {parameters:,} parameters; {training.steps:,} steps of "
                f"{training.batch_tokens:,} tokens",
                f"，参数 {parameters:,}；共 {training.steps:,} 步，每步 "
                f"{training.batch_tokens:,} 词元",
            )
        )

    def measure(
        self,
        recipe: LanguageRecipe,
        prepared: TokenizedText,
        model: Any,
        *,
        watcher: Events,
        directory: Path | None,
    ) -> dict[str, Any]:
        if isinstance(model, nn.Module):
            assert isinstance(model, LanguageNetwork)
            model = as_token_model(model, recipe)
        return measure(LanguageModel(prepared.tokenizer, model), recipe, watcher, directory)

    def comparison_metrics(self, recipe: LanguageRecipe) -> ComparisonMetrics:
        return language_comparison_metrics(recipe)

    def save_parts(self, recipe: LanguageRecipe, prepared: TokenizedText, directory: Path) -> None:
        save_tokenizer(prepared.tokenizer, directory)

    def title(self, recipe: LanguageRecipe) -> str:
        return f"Language model, {recipe.data.language}"

    def card_use(self, recipe: LanguageRecipe) -> str:
        return """```python
import headwise
model = headwise.LanguageModel.load("DIR OF THIS FILE")
print(model.score(["…"])[0].perplexity, model.predict("…"))
```"""

    def load(self, directory: Path) -> LanguageModel:
        return LanguageModel.load(directory)


class NgramTask(LanguageTask, SinglePassTask[LanguageRecipe, TokenizedText]):
    """Count n-grams."""

    def learn(
        self, recipe: LanguageRecipe, prepared: TokenizedText, watcher: Events
    ) -> SinglePassModel:
        assert isinstance(recipe.model, NgramSettings)
        model, results = count_model(recipe.model, prepared, watcher)
        return SinglePassModel(tables_of(model), results, model)

    def predict_cost(self, recipe: LanguageRecipe, prepared: TokenizedText) -> TrainingCost:
        assert isinstance(recipe.model, NgramSettings)
        return predict_cost(recipe.model, prepared)

    def bound_memory(self, recipe: LanguageRecipe, prepared: TokenizedText) -> int:
        assert isinstance(recipe.model, NgramSettings)
        return bound_memory(recipe.model, prepared)

    def describe_parts(self, directory: Path) -> tuple[SinglePassPart, ...]:
        """The table of each order."""
        model = load_language_bundle(directory).model
        assert isinstance(model, NgramModel)
        return tuple(
            SinglePassPart(
                (f"{order}-grams: {len(level.keys):,}", f"{order} 元语法：{len(level.keys):,} 个"),
                len(level.probabilities) + len(level.weights),
                level.keys.nbytes + level.probabilities.nbytes + level.weights.nbytes,
            )
            for order, level in enumerate(model.tables.levels, start=1)
        )


class NeuralLanguageTask(LanguageTask, TrainedTask[LanguageRecipe, TokenizedText]):
    """Train a network to predict the next token."""

    def check_training(self, recipe: LanguageRecipe) -> None:
        if recipe.model.kind == "recurrent":
            check_word_by_word(recipe.training)

    def check(self, recipe: LanguageRecipe, *, num_processes: int, anyway: bool) -> None:
        find_language_start(recipe)
        if not anyway:
            check_stored_pairs(recipe)

    def build(self, recipe: LanguageRecipe, prepared: TokenizedText) -> LanguageNetwork:
        assert isinstance(recipe.model, NeuralSettings)
        network = build_language_model(
            recipe.model,
            size=prepared.tokenizer.size,
            generator=torch_generator(recipe.training.seed, "weights"),
        )
        start = find_language_start(recipe)
        if start is not None:
            start.put_into(network)
        return network

    def learner(
        self,
        recipe: LanguageRecipe,
        prepared: TokenizedText,
        module: nn.Module,
        *,
        share: Share,
        directory: Path,
    ) -> Learner:
        assert isinstance(module, LanguageNetwork)
        batches = make_batches(recipe, prepared.lines, share)
        loss = make_loss(recipe, module, rows=carried_rows(batches, share))
        training = recipe.training
        if recipe.model.kind == "recurrent":
            # A recurrent layer is one call of torch's, and padded batches have no fixed shape.
            training = train_word_by_word(training)
        return Learner(loss, batches, training, _validation(recipe, prepared, module))

    def count_tokens(self, recipe: LanguageRecipe, prepared: TokenizedText) -> int:
        return len(prepared.lines.tokens) + prepared.num_lines

    def trial(self, recipe: LanguageRecipe, prepared: TokenizedText, module: nn.Module) -> Trial:
        assert isinstance(module, LanguageNetwork)
        training, reading = recipe.training, recipe.reading
        lines = _beginning(prepared.lines, CHECKED_BATCHES * training.batch_tokens)
        row = reading.length if isinstance(reading, StreamReading) else reading.row_tokens
        # Padded sentences have no rows of one length: there a whole batch is taken.
        is_padded = isinstance(reading, SentenceReading) and recipe.model.kind == "recurrent"
        rows = 1 if is_padded else max(1, round(training.batch_tokens / row))

        def batch_of(count: int) -> Any:
            size = training.batch_tokens * count // rows if is_padded else row * count
            smaller = training.model_copy(update={"batch_tokens": size})
            return first_batch(make_batches(recipe.model_copy(update={"training": smaller}), lines))

        # A memory costs time and space; the state of a recurrent layer does not.
        remembers = recipe.model.kind != "recurrent" and carries_states(recipe.model)
        carried = CarriedRows(rows, 0, rows) if remembers else None
        return Trial(make_loss(recipe, module, rows=carried), rows, batch_of)

    def planned_step(self, recipe: LanguageRecipe, bundle: Path | None = None) -> PlannedStep:
        return plan_step(recipe, find_vocabularies(recipe.text.size, bundle))


def _beginning(lines: Ragged, num_tokens: int) -> Ragged:
    """The first lines, about so many tokens: a check need not shuffle a whole corpus."""
    return lines.choose(np.cumsum(lines.lengths) - lines.lengths < num_tokens)


def _validation(
    recipe: LanguageRecipe, text: TokenizedText, network: LanguageNetwork
) -> Evaluate | None:
    """The mean loss of a token, ends of sentences counted, and its perplexity."""
    if not recipe.data.texts("valid"):
        return None
    lines = text.tokenizer.encode_batch(list(read_part(recipe, "valid")))
    is_stream = isinstance(recipe.reading, StreamReading)
    stream = join_lines(as_ragged(lines)) if is_stream else None

    def evaluate(step: int) -> Mapping[str, float]:
        model = as_token_model(network, recipe)
        if stream is not None:
            scores = model.score_running(stream, rows=min(VALIDATION_ROWS, len(stream) - 1))
        else:
            scores = np.concatenate(model.score(lines))
        loss = -float(scores.mean(dtype=np.float64))
        return {"loss": loss, "perplexity": math.exp(min(loss, 700.0))}

    return evaluate
