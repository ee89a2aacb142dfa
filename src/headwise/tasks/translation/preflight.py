"""Checks of a translator's recipe and data, so that its run does not fail after an hour.

They cover the test set, lengths and the decoding settings.
What is checked for every task is in tasks/preflight.py.
"""

from headwise.data.pairs.choices import corpus_name
from headwise.data.pairs.preparation import PreparedData, read_part
from headwise.data.splits import Part
from headwise.decoding.rules.phrases import check_shortest
from headwise.errors import DataError, SettingsError
from headwise.models.limits import check_rows, source_limits
from headwise.models.recurrent.choices import attends
from headwise.models.recurrent.stepper import explain_missing_attention
from headwise.tasks.translation.fused_language_model import check_fused, load_fused
from headwise.tasks.translation.judge import check_judge
from headwise.tasks.translation.length_limits import longest_source
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.tasks.translation.training_rows import source_row


def check_helpers(recipe: TranslationRecipe) -> None:
    """Refuse a recipe whose decoding has no judge or no language model where it names one: they are
    asked only when the trained model is measured."""
    recipe.decoding.check_complete()
    if recipe.decoding.asked_memory is not None:
        raise SettingsError(
            "decoding.memory is set, but a memory is built with the finished model; leave it out, "
            "and give --memory to `headwise translate`",
            "设置了 decoding.memory，但记忆要用训练好的模型建立；请去掉，翻译时再给 "
            "`headwise translate` 加 --memory",
        )
    if recipe.decoding.judge_path is not None:
        check_judge(recipe.decoding.judge_path, recipe)
    if recipe.decoding.language_model_path is not None:
        check_fused(recipe.decoding.language_model_path)


def check_named_train(recipe: TranslationRecipe) -> None:
    """An imported model names no corpus: what it was trained on is not known."""
    if not recipe.data.train:
        raise SettingsError(
            "data.train names no corpus, as the recipe of an imported model; name your own, e.g. "
            "data.train=my/train, or use `headwise adapt`",
            "data.train 没有指明语料（导入模型的配方即如此）；请给出自己的语料，例如 "
            "data.train=my/train，或用 `headwise adapt`",
        )


def check_test(recipe: TranslationRecipe) -> None:
    """The test set is needed only in the end; a mistake in it must not show after hours of
    training.
    """
    if recipe.data.test and not any(True for _ in read_part(recipe.data, "test")):
        names = ", ".join(corpus_name(corpus) for corpus in recipe.data.test)
        raise DataError(
            f"data.test ({names}) has no pair that can be used; give another file, or set "
            "data.test=null",
            f"data.test（{names}）没有可用的句对；请换一个文件，或设 data.test=null",
        )


def check_lengths(recipe: TranslationRecipe, prepared: PreparedData) -> None:
    """Rows and sentences that a model of limited length could not read: source rows are known only
    now, and a test set is read last.
    """
    check_rows(
        source_limits(recipe.model),
        source_row(prepared),
        rows=(
            "source rows, in the proportion of the languages to data.row_tokens",
            "源语言行长，按两种语言的比例由 data.row_tokens 得出",
        ),
    )
    limit = longest_source(recipe.model)
    if not limit.key:
        return
    parts: tuple[Part, ...] = ("valid", "test")
    for part in parts:
        for pair in read_part(recipe.data, part):
            num_tokens = len(prepared.tokenizers.source.encode(pair.source)) + 1
            if num_tokens > limit.tokens:
                raise DataError(
                    f"a source of {num_tokens:,} tokens in data.{part}, but the model reads at "
                    f"most {limit.tokens:,} ({limit.key}); set {limit.key}={num_tokens} or more, "
                    "or take the pair out",
                    f"data.{part} 中有 {num_tokens:,} 个词元的源句，而模型最多读 {limit.tokens:,} "
                    f"个（{limit.key}）；请设 {limit.key}={num_tokens} 或更大，或去掉该句对",
                    file=pair.file,
                    line=pair.line,
                )


def check_decoding(recipe: TranslationRecipe, prepared: PreparedData) -> None:
    """Refuse a search that the recipe's own tokenizer or model makes impossible: it is the last
    thing a run does.
    """
    check_shortest(recipe.decoding, prepared.tokenizers.target)
    if recipe.decoding.language_model_path is not None:
        load_fused(recipe.decoding.language_model_path, prepared.tokenizers.target)
    if recipe.decoding.needs_attention and not attends(recipe.model):
        raise explain_missing_attention()
