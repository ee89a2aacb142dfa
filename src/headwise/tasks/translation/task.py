"""The `Task` of translation: prepares sentence pairs, builds the model, measures the translator.

    runs/mine/  recipe.yaml   data/   log.jsonl   checkpoints/   model/   translations/

`tasks/run.py` calls it. The loss and the batches are in `objective.py`, the validation during
training in `validation.py`, the finished translator in `translator.py`.
"""

from functools import partial
from pathlib import Path
from typing import Any

from torch import nn

from headwise.data.batching import Share
from headwise.data.pairs.filtering import FilterReport
from headwise.data.pairs.preparation import (
    GivenTokenizers,
    PreparedData,
    describe_inputs,
    open_prepared,
    prepare_data,
)
from headwise.data.splits import Part
from headwise.language import say
from headwise.models.choices import build_model
from headwise.models.translation_model import TranslationModel
from headwise.randomness import torch_generator
from headwise.tasks.bundle import save_tokenizers
from headwise.tasks.comparison_metrics import ComparisonMetrics
from headwise.tasks.events import Events
from headwise.tasks.planned_step import PlannedStep, find_vocabularies
from headwise.tasks.result_rows import part_name
from headwise.tasks.task import Learner, TrainedTask
from headwise.tasks.training_cost import Trial, first_batch
from headwise.tasks.translation.bundle import (
    TranslatorBundle,
    card_details,
    card_title,
    card_use,
    load_translator_bundle,
)
from headwise.tasks.translation.comparison_metrics import translation_comparison_metrics
from headwise.tasks.translation.losses import loss_of, plan_step
from headwise.tasks.translation.objective import RowShape
from headwise.tasks.translation.preflight import (
    check_decoding,
    check_helpers,
    check_lengths,
    check_named_train,
    check_test,
)
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.tasks.translation.several_directions import translate_directions
from headwise.tasks.translation.training_rows import (
    add_alignment,
    add_segmentation,
    batches_for,
    check_targets,
    on_pairs,
    pairs_for,
    reopen_additions,
    row_shape,
)
from headwise.tasks.translation.translated_part import FOLDER as TRANSLATIONS
from headwise.tasks.translation.translated_part import translate_part
from headwise.tasks.translation.translator import Translator
from headwise.tasks.translation.translator_start import find_translator_start
from headwise.tasks.translation.validation import Validation
from headwise.tasks.vocabulary_progress import watch_vocabulary
from headwise.training.precision import choose_device, choose_dtype, name_of


class TranslationTask(TrainedTask[TranslationRecipe, PreparedData]):
    """Learn to translate from pairs of sentences."""

    def check_training(self, recipe: TranslationRecipe) -> None:
        check_named_train(recipe)

    def check(self, recipe: TranslationRecipe, *, num_processes: int, anyway: bool) -> None:
        check_helpers(recipe)
        find_translator_start(recipe)

    def prepare(self, recipe: TranslationRecipe, directory: Path, watcher: Events) -> PreparedData:
        watcher.note(say("preparing the data …", "正在准备数据……"))
        check_test(recipe)
        labels = {
            "survey": say("pairs looked through", "已浏览句对"),
            "train": say("training pairs", "训练句对"),
            "valid": say("validation pairs", "验证句对"),
        }
        prepared = prepare_data(
            recipe.data,
            recipe.text,
            directory,
            earlier_seed=recipe.training.seed,
            given=_given_tokenizers(recipe),
            progress=lambda part, done: watcher.count(labels.get(part, part), done, None),
            vocabulary_progress=watch_vocabulary(watcher),
        )
        watcher.note(FilterReport.from_json(prepared.train.details["report"]).describe())
        prepared = add_segmentation(recipe, prepared, directory, watcher)
        check_lengths(recipe, prepared)
        check_targets(recipe, prepared)
        check_decoding(recipe, prepared)
        return add_alignment(recipe, prepared, directory, watcher)

    def reopen(self, recipe: TranslationRecipe, directory: Path, watcher: Events) -> PreparedData:
        return reopen_additions(recipe, open_prepared(directory), directory)

    def sizes(self, recipe: TranslationRecipe, prepared: PreparedData) -> dict[str, Any]:
        return {"pairs": len(prepared.train)}

    def build(self, recipe: TranslationRecipe, prepared: PreparedData) -> TranslationModel:
        model = build_model(
            recipe.model,
            source_size=prepared.tokenizers.source.size,
            target_size=prepared.tokenizers.target.size,
            generator=torch_generator(recipe.training.seed, "weights"),
        )
        start = find_translator_start(recipe)
        if start is not None:
            start.put_into(model)
        return model

    def planned_step(self, recipe: TranslationRecipe, bundle: Path | None = None) -> PlannedStep:
        return plan_step(recipe, find_vocabularies(recipe.text.size, bundle))

    def count_tokens(self, recipe: TranslationRecipe, prepared: PreparedData) -> int:
        """Of the target, with the end of each sentence."""
        count = prepared.train.total_tokens["target"] + len(prepared.train)
        cut = prepared.segmentation
        return count if cut is None else round(cut.growth["target"] * count)

    def learner(
        self,
        recipe: TranslationRecipe,
        prepared: PreparedData,
        module: nn.Module,
        *,
        share: Share,
        directory: Path,
    ) -> Learner:
        assert isinstance(module, TranslationModel)
        shape = row_shape(recipe, prepared)
        loss = loss_of(recipe, module, tokenizers=prepared.tokenizers)
        loss = on_pairs(recipe, prepared, loss)
        evaluate = None
        if prepared.valid is not None:
            translator = partial(_translator, recipe, prepared, module, directory)
            evaluate = Validation(
                recipe, loss, pairs_for(recipe, prepared.valid), shape, translator
            )
        batches = batches_for(recipe, prepared, shape, share)
        return Learner(loss, batches, recipe.training_as_run, evaluate)

    def trial(self, recipe: TranslationRecipe, prepared: PreparedData, module: nn.Module) -> Trial:
        assert isinstance(module, TranslationModel)
        shape = row_shape(recipe, prepared)

        def batch_of(rows: int) -> Any:
            smaller = RowShape(rows, shape.source, shape.target)
            return first_batch(batches_for(recipe, prepared, smaller))

        loss = loss_of(recipe, module, tokenizers=prepared.tokenizers)
        return Trial(on_pairs(recipe, prepared, loss), shape.rows, batch_of)

    def describe_start(
        self, recipe: TranslationRecipe, prepared: PreparedData, module: nn.Module | None
    ) -> str:
        assert module is not None
        shape = row_shape(recipe, prepared)
        pairs, vocabulary = len(prepared.train), prepared.tokenizers.target.size
        parameters = sum(parameter.numel() for parameter in module.parameters())
        device = choose_device(recipe.training.device)
        precision = name_of(choose_dtype(recipe.training.precision, device))
        languages = recipe.data.in_arrows
        start = find_translator_start(recipe)
        begun = "" if start is None else start.describe(module) + "\n"
        return begun + say(
            f"{languages}: {pairs:,} pairs, vocabulary {vocabulary:,}, {parameters:,} parameters; "
            f"a batch is {shape.rows} rows of {shape.source} + {shape.target} tokens; "
            f"{recipe.training.steps:,} steps in {precision}",
            f"{languages}：{pairs:,} 句对，词表 {vocabulary:,}，参数 {parameters:,}；"
            f"每批 {shape.rows} 行，每行 {shape.source} + {shape.target} 词元；"
            f"共 {recipe.training.steps:,} 步，{precision}",
        )

    def measure(
        self,
        recipe: TranslationRecipe,
        prepared: PreparedData,
        model: Any,
        *,
        watcher: Events,
        directory: Path | None,
    ) -> dict[str, Any]:
        """The scores of the validation and test sets; the translations are kept in the run."""
        assert directory is not None
        results: dict[str, Any] = {}
        translator = _translator(recipe, prepared, model, directory)
        parts: tuple[Part, ...] = ("valid", "test")
        for part in parts:
            if recipe.data.corpora(part):
                watcher.note(
                    say(f"translating the {part_name(part)} …", f"正在翻译{part_name(part)}……")
                )
                if recipe.data.directions:
                    results[part] = translate_directions(translator, part, directory / TRANSLATIONS)
                    continue
                translated = translate_part(translator, recipe, part)
                translated.save(directory / TRANSLATIONS, part)
                results[part] = translated.as_dict()
        return results

    def comparison_metrics(self, recipe: TranslationRecipe) -> ComparisonMetrics:
        return translation_comparison_metrics(recipe)

    def shared_data(self, recipe: TranslationRecipe) -> str:
        given = _given_tokenizers(recipe)
        return describe_inputs(recipe.data, recipe.text, given=given)[:16]

    def check_prepared(self, recipe: TranslationRecipe, prepared: PreparedData) -> None:
        check_lengths(recipe, prepared)

    def save_parts(
        self, recipe: TranslationRecipe, prepared: PreparedData, directory: Path
    ) -> None:
        save_tokenizers(prepared.tokenizers, directory)

    def title(self, recipe: TranslationRecipe) -> str:
        return card_title(recipe)

    def card_details(self, recipe: TranslationRecipe, prepared: PreparedData) -> str:
        return card_details(recipe)

    def card_use(self, recipe: TranslationRecipe) -> str:
        return card_use(recipe)

    def load(self, directory: Path) -> Translator:
        return Translator.load(directory)

    def summarize(self, directory: Path) -> str:
        return load_translator_bundle(directory, several_directions=True).recipe.data.in_arrows


def _given_tokenizers(recipe: TranslationRecipe) -> GivenTokenizers | None:
    start = find_translator_start(recipe)
    return None if start is None else start.tokenizers


def _translator(
    recipe: TranslationRecipe, prepared: PreparedData, model: TranslationModel, directory: Path
) -> Translator:
    bundle = TranslatorBundle(directory, recipe, prepared.tokenizers, model, {})
    return Translator(bundle, device=recipe.training.device)
