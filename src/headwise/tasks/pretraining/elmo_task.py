"""The `Task` of ELMo's pre-training. Classifiers and taggers can start from the trained encoder.

    runs/mine/  recipe.yaml   log.jsonl   checkpoints/   model/

`tasks/run.py` calls it. Loss, data and validation are in `elmo_objective.py`.
"""

from pathlib import Path
from typing import Any

from torch import nn

from headwise.data.batching import ALL_ROWS, Share
from headwise.data.shared_batches import SharedBatches
from headwise.data.splits import Part
from headwise.data.text.text_batches import PaddedLines, fingerprint
from headwise.evaluation.item_means import MeanStatistics, exponential
from headwise.evaluation.several_seeds import Statistics
from headwise.language import say
from headwise.models.elmo import BidirectionalLanguageModel, build_bidirectional
from headwise.randomness import torch_generator
from headwise.tasks.comparison_metrics import ComparisonMetrics, declared_metric
from headwise.tasks.events import Events
from headwise.tasks.item_scores import read_item_scores
from headwise.tasks.planned_step import PlannedStep, find_vocabularies
from headwise.tasks.pretraining.contextual_vectors import WordReader, load_word_reader
from headwise.tasks.pretraining.elmo_objective import (
    ElmoData,
    ElmoLoss,
    plan_step,
    prepare_elmo,
    validation,
)
from headwise.tasks.pretraining.elmo_recipe import ElmoRecipe
from headwise.tasks.pretraining.line_scores import save_elmo_lines
from headwise.tasks.pretraining.pretraining_task import PretrainingTask
from headwise.tasks.recurrent_training import check_word_by_word, train_word_by_word
from headwise.tasks.task import Learner
from headwise.tasks.text_comparison_metrics import text_comparison_metrics
from headwise.tasks.training_cost import Trial, first_batch
from headwise.text.tokenizer import NUM_SPECIAL
from headwise.training.session import Evaluate


class ElmoTask(PretrainingTask[ElmoRecipe, ElmoData]):
    """Learn the next word forwards and the previous word backwards."""

    def prepare(self, recipe: ElmoRecipe, directory: Path, watcher: Events) -> ElmoData:
        return prepare_elmo(recipe, watcher)

    def sizes(self, recipe: ElmoRecipe, prepared: ElmoData) -> dict[str, Any]:
        return {
            "lines": len(prepared.train.lengths),
            "tokens": len(prepared.train.tokens),
            "words": len(prepared.letters) - NUM_SPECIAL,
            "vocabulary": prepared.tokenizer.size,
        }

    def build(self, recipe: ElmoRecipe, prepared: ElmoData) -> BidirectionalLanguageModel:
        model = build_bidirectional(
            recipe.model,
            vocabulary_size=prepared.tokenizer.size,
            generator=torch_generator(recipe.training.seed, "weights"),
        )
        if prepared.start is not None:
            prepared.start.put_into(model.encoder)
        return model

    def planned_step(self, recipe: ElmoRecipe, bundle: Path | None = None) -> PlannedStep:
        return plan_step(recipe, find_vocabularies(recipe.text.size, bundle))

    def validation(
        self, recipe: ElmoRecipe, prepared: ElmoData, module: nn.Module
    ) -> Evaluate | None:
        assert isinstance(module, BidirectionalLanguageModel)
        return validation(recipe, prepared, module)

    def save_lines(
        self, recipe: ElmoRecipe, prepared: ElmoData, model: Any, part: Part, directory: Path
    ) -> None:
        save_elmo_lines(recipe, prepared, model, part, directory)

    def comparison_metrics(self, recipe: ElmoRecipe) -> ComparisonMetrics:
        """By the perplexity of a word, over both directions."""

        def read(directory: Path, part: Part) -> dict[str, Statistics]:
            kept = read_item_scores(directory, part, ("loss", "tokens"))
            return {"perplexity": MeanStatistics.of(kept["loss"], kept["tokens"], exponential)}

        metrics = (declared_metric(recipe, "perplexity"),)
        return text_comparison_metrics(recipe.data, recipe.text, metrics=metrics, read=read)

    def check_training(self, recipe: ElmoRecipe) -> None:
        check_word_by_word(recipe.training, "elmo")

    def learner(
        self,
        recipe: ElmoRecipe,
        prepared: ElmoData,
        module: nn.Module,
        *,
        share: Share,
        directory: Path,
    ) -> Learner:
        assert isinstance(module, BidirectionalLanguageModel)
        # Sentences have no fixed shape, and a recurrent layer is one call of torch's.
        return Learner(
            ElmoLoss(module, prepared.letters, recipe.training.objective.label_smoothing),
            _batches(recipe, prepared, share),
            train_word_by_word(recipe.training),
            validation(recipe, prepared, module),
        )

    def count_tokens(self, recipe: ElmoRecipe, prepared: ElmoData) -> int:
        return len(prepared.train.tokens) + len(prepared.train.lengths)

    def trial(self, recipe: ElmoRecipe, prepared: ElmoData, module: nn.Module) -> Trial:
        """Sentences have no fixed length: a whole batch is taken."""
        assert isinstance(module, BidirectionalLanguageModel)
        loss = ElmoLoss(module, prepared.letters, recipe.training.objective.label_smoothing)
        batch = first_batch(_batches(recipe, prepared, ALL_ROWS))
        return Trial(loss, 1, lambda _: batch)

    def describe_start(
        self, recipe: ElmoRecipe, prepared: ElmoData, module: nn.Module | None
    ) -> str:
        assert module is not None
        lines, tokens, words, vocabulary = self.sizes(recipe, prepared).values()
        parameters = sum(parameter.numel() for parameter in module.parameters())
        steps = recipe.training.steps
        return say(
            f"{recipe.data.language}: {lines:,} lines, {tokens:,} tokens, "
            f"{words:,} different words, output vocabulary of {vocabulary:,}; "
            f"{parameters:,} parameters; {steps:,} steps",
            f"{recipe.data.language}：{lines:,} 行，{tokens:,} 词元，{words:,} 种词，"
            f"输出词表 {vocabulary:,}；参数 {parameters:,}；共 {steps:,} 步",
        )

    def title(self, recipe: ElmoRecipe) -> str:
        return f"ELMo, {recipe.data.language}: two language models, one for each direction"

    def card_use(self, recipe: ElmoRecipe) -> str:
        return """```python
from headwise.tasks.pretraining.contextual_vectors import Occurrence, load_word_reader
reader = load_word_reader("DIR OF THIS FILE")
sentence = ("…", "…")
layers = reader.read([Occurrence(sentence[0], "", 0, sentence)])  # one table for each layer
```
Another recipe starts from it with `model: {kind: elmo, start_from: DIR OF THIS FILE}`."""

    def load(self, directory: Path) -> WordReader:
        return load_word_reader(directory)


def _batches(recipe: ElmoRecipe, prepared: ElmoData, share: Share) -> SharedBatches:
    training = recipe.training
    name = fingerprint(prepared.train, recipe.data.model_dump_json())
    lines = PaddedLines(prepared.train, training.batch_tokens, training.seed, name)
    return SharedBatches(lines, share)
