"""Training a neural language model: where text, network and loss meet, from recipe to bundle.

    runs/mine/  recipe.yaml   log.jsonl   checkpoints/   model/

A network learns from the batches that suit it: packed sentences (neural n-gram, Transformer), padded sentences (recurrent), a
carried stream (recurrent) or shuffled windows of it (Transformer). The loop, its checkpoints and its log are those of translation.

Tested by resuming bit for bit, by learning a small grammar to its entropy, and by every kind through train, score and predict.
"""

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from headwise.data.packing import PackedBatch
from headwise.data.shards import Ragged, as_ragged
from headwise.data.text.text_batches import (
    LineStore,
    PackedLines,
    PaddedLines,
    StreamWindows,
    TextBatch,
    cut_lines,
    fingerprint,
    join_lines,
)
from headwise.errors import UsageError
from headwise.language import say
from headwise.models.choices import LanguageNetwork, NeuralSettings, build_language_model
from headwise.models.recurrent.language_model import (
    Carrying,
    RecurrentLanguageModel,
    RecurrentPenalty,
    RecurrentSettings,
)
from headwise.randomness import torch_generator
from headwise.tasks.arguments import require_path
from headwise.tasks.events import Events
from headwise.tasks.language.bundle import as_token_model, save_language_bundle
from headwise.tasks.language.language_model import LanguageModel
from headwise.tasks.language.recipe import LanguageRecipe, SentenceReading, StreamReading
from headwise.tasks.language.text import TokenizedText, check_measured, measure, read_part, tokenize
from headwise.tasks.recurrent_training import train_word_by_word
from headwise.tasks.run_start import RunSummary, begin_run
from headwise.tasks.training_cost import first_batch, measure_cost
from headwise.text.tokenizer import PAD
from headwise.training.choices import TrainingSettings
from headwise.training.disk_space import check_room
from headwise.training.loop import train as run_training
from headwise.training.losses import LossSums, cross_entropy
from headwise.training.precision import choose_device
from headwise.training.prefetching import Batches
from headwise.training.progress import TrainingResult
from headwise.weights import weights_of

VALIDATION_ROWS = 16
CHECKED_BATCHES = 8
"""Batches of text that a check of the cost draws from."""


@dataclass(frozen=True)
class LanguageTask:
    """A network and its objective, as the training loop wants them; `module` carries states where the text is a carried stream."""

    module: nn.Module
    network: LanguageNetwork
    label_smoothing: float
    penalty: RecurrentPenalty | None = None

    def loss(self, batch: PackedBatch | TextBatch) -> LossSums:
        if isinstance(batch, PackedBatch):
            hidden = self.module(
                batch.target_input, segment=batch.target_segment, position=batch.target_position
            )
            targets = batch.target_output
        else:
            targets = batch.targets
            match self.module:
                case Carrying():
                    hidden = self.module(batch.tokens, batch.fresh)
                case RecurrentLanguageModel():
                    hidden = self.module(batch.tokens)[0]
                case _:
                    hidden = self.module(batch.tokens)
        output = self.network.output
        sums = cross_entropy(
            hidden.flatten(0, 1),
            output.weight,
            targets=targets.flatten(),
            bias=output.bias,
            smoothing=self.label_smoothing,
        )
        if self.penalty is None:
            return sums
        return sums._replace(
            loss=sums.loss + sums.num_tokens * self.penalty.of(hidden, targets != PAD)
        )


def train_neural(
    recipe: LanguageRecipe, *, run: Path | str, resume: bool, watcher: Events
) -> RunSummary:
    """Learn by a recipe in a run directory; the bundle ends up in `run/model`."""
    directory = require_path(run, "run", "runs/mine")
    choose_device(recipe.training.device)
    _refuse_several_processes()
    opened, text = begin_run(directory, recipe, lambda: _read(recipe, watcher), resume=resume)
    with opened:
        network = _new_network(recipe, text)
        batches = make_batches(recipe, text.lines)
        rows = batches.rows if isinstance(batches, StreamWindows) and batches.carried else None
        module = (
            Carrying(network, rows)
            if rows and isinstance(network, RecurrentLanguageModel)
            else network
        )
        penalty = recipe.model.penalty if isinstance(recipe.model, RecurrentSettings) else None
        penalty = None if penalty == RecurrentPenalty() else penalty
        task = LanguageTask(module, network, recipe.training.objective.label_smoothing, penalty)
        check_room(opened.path, module, recipe.training)
        watcher.note(_describe_start(recipe, text, network))
        outcome = run_training(
            task,
            batches,
            training_of(recipe),
            opened,
            evaluate=_evaluation(recipe, text, network),
            progress=watcher.training,
        )
        results = _results(text, network, outcome)
        # The model is safe on disk before it is measured.
        weights = weights_of(network)
        save_language_bundle(
            opened.model, recipe=recipe, tokenizer=text.tokenizer, weights=weights, results=results
        )
        model = LanguageModel(text.tokenizer, as_token_model(network.eval(), recipe))
        results |= measure(model, recipe, watcher)
        save_language_bundle(
            opened.model, recipe=recipe, tokenizer=text.tokenizer, weights=weights, results=results
        )
    return RunSummary(directory, recipe, results)


def check_neural(recipe: LanguageRecipe, text: TokenizedText, watcher: Events) -> dict[str, int]:
    """What training would cost; states are not carried, which changes neither time nor memory."""
    network = _new_network(recipe, text)
    watcher.note(_describe_start(recipe, text, network))
    task = LanguageTask(network, network, recipe.training.objective.label_smoothing)
    lines = _beginning(text.lines, CHECKED_BATCHES * recipe.training.batch_tokens)
    row = (
        recipe.reading.length
        if isinstance(recipe.reading, StreamReading)
        else recipe.reading.row_tokens
    )
    # Padded sentences have no rows of one length: there a whole batch is taken.
    is_padded = isinstance(recipe.reading, SentenceReading) and recipe.model.kind == "recurrent"
    rows = 1 if is_padded else max(1, round(recipe.training.batch_tokens / row))

    def batch_of(count: int) -> PackedBatch | TextBatch:
        size = recipe.training.batch_tokens * count // rows if is_padded else row * count
        training = recipe.training.model_copy(update={"batch_tokens": size})
        return first_batch(make_batches(recipe.model_copy(update={"training": training}), lines))

    return measure_cost(task, batch_of, rows=rows, training=recipe.training).tell(watcher)


def _beginning(lines: Ragged, num_tokens: int) -> Ragged:
    """The first lines, about so many tokens of them: a check need not shuffle a whole corpus."""
    return lines.choose(np.cumsum(lines.lengths) - lines.lengths < num_tokens)


def _read(recipe: LanguageRecipe, watcher: Events) -> TokenizedText:
    check_measured(recipe)
    return tokenize(recipe, watcher)


def training_of(recipe: LanguageRecipe) -> TrainingSettings:
    """A recurrent layer is one call of torch's: there is nothing to compile, and padded batches have no fixed shape to record."""
    if recipe.model.kind != "recurrent":
        return recipe.training
    return train_word_by_word(recipe.training)


def make_batches(recipe: LanguageRecipe, lines: Ragged) -> Batches:
    """The batches that suit the network."""
    training, is_recurrent = recipe.training, recipe.model.kind == "recurrent"
    name = fingerprint(lines, recipe.reading.model_dump_json())
    match recipe.reading:
        case StreamReading(length=length):
            return StreamWindows.of(
                join_lines(lines),
                batch_tokens=training.batch_tokens,
                length=length,
                carried=is_recurrent,
                seed=training.seed,
                fingerprint=name,
            )
        case SentenceReading(row_tokens=row_tokens):
            cut = cut_lines(lines, row_tokens - 1)
            if is_recurrent:
                return PaddedLines(cut, training.batch_tokens, training.seed, name)
            rows = max(1, round(training.batch_tokens / row_tokens))
            return PackedLines(LineStore(cut), rows, row_tokens, training.seed, name)


def _new_network(recipe: LanguageRecipe, text: TokenizedText) -> LanguageNetwork:
    assert isinstance(recipe.model, NeuralSettings)
    return build_language_model(
        recipe.model,
        size=text.tokenizer.size,
        generator=torch_generator(recipe.training.seed, "weights"),
    )


def _refuse_several_processes() -> None:
    if (count := int(os.environ.get("WORLD_SIZE", "1"))) > 1:
        raise UsageError(
            f"{count} processes were started, a language model learns in one; run `headwise train` without torchrun",
            f"启动了 {count} 个进程，语言模型只在一个进程中训练；请不用 torchrun，直接运行 `headwise train`",
        )


def _describe_start(recipe: LanguageRecipe, text: TokenizedText, network: LanguageNetwork) -> str:
    tokens, parameters = (
        len(text.lines.tokens),
        sum(parameter.numel() for parameter in network.parameters()),
    )
    return say(
        f"{recipe.data.language}: {text.num_lines:,} lines, {tokens:,} tokens, vocabulary {text.tokenizer.size:,}; "
        f"{recipe.model.kind} of {parameters:,} parameters; {recipe.training.steps:,} steps of {recipe.training.batch_tokens:,} tokens",
        f"{recipe.data.language}：{text.num_lines:,} 行，{tokens:,} 词元，词表 {text.tokenizer.size:,}；"
        f"{recipe.model.kind}，参数 {parameters:,}；共 {recipe.training.steps:,} 步，每步 {recipe.training.batch_tokens:,} 词元",
    )


def _evaluation(
    recipe: LanguageRecipe, text: TokenizedText, network: LanguageNetwork
) -> Callable[[int], Mapping[str, float]] | None:
    """What the loop calls to validate: the mean loss of a token, ends of sentences counted, and its perplexity."""
    if not recipe.data.texts("valid"):
        return None
    lines = text.tokenizer.encode_batch(list(read_part(recipe, "valid")))
    stream = join_lines(as_ragged(lines)) if isinstance(recipe.reading, StreamReading) else None

    def evaluate(step: int) -> Mapping[str, float]:
        model = as_token_model(network, recipe)
        if stream is not None:
            scores = model.score_running(stream, rows=min(VALIDATION_ROWS, len(stream) - 1))
        else:
            scores = np.concatenate(model.score(lines))
        loss = -float(scores.mean(dtype=np.float64))
        return {"loss": loss, "perplexity": math.exp(min(loss, 700.0))}

    return evaluate


def _results(
    text: TokenizedText, network: LanguageNetwork, outcome: TrainingResult
) -> dict[str, Any]:
    return {
        "lines": text.num_lines,
        "tokens": len(text.lines.tokens) + text.num_lines,
        "vocabulary": text.tokenizer.size,
        "parameters": sum(parameter.numel() for parameter in network.parameters()),
        "steps": outcome.step,
        "stopped_by": outcome.reason,
        "weights": outcome.weights,
        "target_tokens": outcome.target_tokens,
        "training_seconds": round(outcome.seconds, 3),
        "precision": outcome.precision,
        "compiled": outcome.compiled,
    }
