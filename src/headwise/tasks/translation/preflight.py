"""Checks before a translator is trained, so that its run does not fail after an hour.

They cover memory, the split of a batch over processes, small corpora, the test set, lengths and the
decoding settings. The predicted memory is that of `headwise plan`. If the run may not fit, within
the margin of error of the prediction, the user is warned. If it cannot fit, it is refused (exit
status 2) unless `--anyway` is given. The message proposes

    halve training.batch_tokens, double training.accumulation: equal updates, half the activations

Small runs are accepted by an upper bound that is computed at once. Tested with a limit on the
address space.
"""

import logging
import os

import torch

from headwise.blocks.dropout import NUM_LEVELS, count_levels
from headwise.data.batching import Share
from headwise.data.pairs.choices import corpus_name
from headwise.data.pairs.preparation import PreparedData, read_part
from headwise.data.shards import TokenStore
from headwise.data.splits import Part
from headwise.decoding.rules.phrases import check_shortest
from headwise.errors import DataError
from headwise.language import say
from headwise.models.limits import check_rows, source_limits
from headwise.models.recurrent.choices import attends
from headwise.models.recurrent.stepper import explain_missing_attention
from headwise.planning.available_memory import available_memory
from headwise.planning.cost_prediction import MemoryParts
from headwise.planning.hardware import GIB, GLIBC_HEAP
from headwise.planning.smaller_batches import MARGIN_OF_MEMORY
from headwise.tasks.memory_check import TooLargeError, bound_step
from headwise.tasks.planned_step import PlannedStep, choose_execution, find_vocabularies
from headwise.tasks.planner import Planner
from headwise.tasks.task import rows_of_batch
from headwise.tasks.translation.judge import check_judge
from headwise.tasks.translation.length_limits import longest_source
from headwise.tasks.translation.losses import plan_step
from headwise.tasks.translation.objective import RowShape
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.training.choices import TrainingSettings
from headwise.training.precision import choose_device

logger = logging.getLogger(__name__)


def check_start(recipe: TranslationRecipe, *, num_processes: int, anyway: bool) -> None:
    """All that is asked before anything is made."""
    warn_of_lost_dropout(recipe)
    check_own_judge(recipe)
    check_share(recipe, num_processes=num_processes)
    check_memory(recipe, num_processes=num_processes, anyway=anyway)


def check_memory(
    recipe: TranslationRecipe, *, num_processes: int = 1, anyway: bool = False
) -> None:
    """Refuse a run that cannot fit into memory and warn of one that may not, before its directory
    is made. A run that fits gets no message.
    """
    step = plan_step(recipe, find_vocabularies(recipe.text.size, None))
    device = choose_device(recipe.training.device)
    room = available_memory(device)
    # Processes of one machine share its memory, but each has a GPU of its own.
    sharing = int(os.environ.get("LOCAL_WORLD_SIZE", num_processes)) if device.type == "cpu" else 1
    if room is None or sharing * bound_memory(step) < room // 2:
        return
    execution, _ = choose_execution(
        step.training, "cpu" if device.type == "cpu" else None, num_devices=num_processes
    )
    planner = Planner(step, execution, cuda=device.type == "cuda")
    memory = planner.memory(GLIBC_HEAP if device.type == "cpu" else 1.0)
    fixed, batch = (
        sharing * part
        for part in parts_of_process(memory, recipe.training, num_processes=num_processes)
    )
    needed = fixed + batch
    if needed <= (1 - MARGIN_OF_MEMORY) * room:
        return
    words = _say_need(fixed, batch, room), planner.propose(memory, room / sharing).describe()
    if needed <= (1 + MARGIN_OF_MEMORY) * room or anyway:
        logger.warning(
            "%s",
            say(
                f"{words[0][0]}: it may not fit; {words[1][0]}",
                f"{words[0][1]}：可能放不下；{words[1][1]}",
            ),
        )
        return
    raise TooLargeError(
        f"{words[0][0]}; {words[1][0]}; or start it nevertheless with --anyway",
        f"{words[0][1]}；{words[1][1]}；若仍要开始，请加 --anyway",
    )


def parts_of_process(
    memory: MemoryParts, training: TrainingSettings, *, num_processes: int
) -> tuple[int, int]:
    """Bytes of one process that stay (weights, optimiser) and that come with its largest batch
    (`Share` in data/batching.py).
    """
    num_batches = -(-training.accumulation // num_processes)
    fixed = memory.fixed // num_processes if training.parallel.kind == "sharded" else memory.fixed
    return fixed, (memory.total - memory.fixed) * training.accumulation // (
        num_batches * num_processes
    )


def bound_memory(step: PlannedStep) -> int:
    """Certainly more than a step takes; attention that writes its table out grows with the row."""
    with torch.device("meta"):
        module = step.build(step.num_rows)
    return bound_step(module, int(step.num_rows * step.row * (1 + step.row / 512)))


def _say_need(fixed: int, batch: int, room: float) -> tuple[str, str]:
    needed = (fixed + batch) / GIB
    return (
        f"a step needs about {needed:.1f} GiB ({fixed / GIB:.1f} for weights and optimiser, "
        f"{batch / GIB:.1f} for the batch and its gradients), {room / GIB:.1f} GiB are free",
        f"一步约需 {needed:.1f} GiB（权重与优化器 {fixed / GIB:.1f}，批次与梯度 "
        f"{batch / GIB:.1f}），可用 {room / GIB:.1f} GiB",
    )


def warn_of_lost_dropout(recipe: TranslationRecipe) -> None:
    """A rate that rounds to nothing is said, not refused: a run that began with one must be able to
    go on.
    """
    for name, rate in recipe.model.dropout:
        if name != "attention" and rate > 0 and count_levels(rate) == 0:
            logger.warning(
                "%s",
                say(
                    f"model.dropout.{name} is {rate:g}, but rates are multiples of "
                    f"1/{NUM_LEVELS}: nothing is dropped there; use 0, or {1 / NUM_LEVELS:.4f} "
                    "and more",
                    f"model.dropout.{name} 为 {rate:g}，但比率是 1/{NUM_LEVELS} 的整数倍："
                    f"此处不会丢弃任何数；请用 0，或不小于 {1 / NUM_LEVELS:.4f} 的值",
                ),
            )


def warn_of_small_corpus(training: TrainingSettings, shape: RowShape, store: TokenStore) -> None:
    """An update larger than the corpus sees every pair several times at once: it learns no more
    than a smaller one.
    """
    update = training.accumulation * shape.rows * shape.target
    corpus = store.total_tokens["target"] + len(store)
    if update <= corpus:
        return
    logger.warning(
        "%s",
        say(
            f"an update takes {update:,} target tokens, but the whole corpus has {corpus:,}: "
            f"every pair stands in it about {update / corpus:.1f} times; lower "
            "training.batch_tokens (or training.accumulation), or give more text",
            f"一次更新取 {update:,} 个目标词元，而整个语料只有 {corpus:,} 个："
            f"每个句对在其中约出现 {update / corpus:.1f} 次；请减小 training.batch_tokens（或 "
            "training.accumulation），或增加语料",
        ),
    )


def check_share(recipe: TranslationRecipe, *, num_processes: int) -> None:
    """Every process needs a row of each update; target rows have the recipe's length, so this is
    known before data is prepared.
    """
    rows = rows_of_batch(recipe.training.batch_tokens, recipe.data.row_tokens)
    Share(0, num_processes, recipe.training.accumulation).check(rows)


def check_own_judge(recipe: TranslationRecipe) -> None:
    """Refuse a recipe whose decoding has no judge that fits: the judge is asked only when the
    trained model is measured."""
    recipe.decoding.check_complete()
    if recipe.decoding.judge_path is not None:
        check_judge(recipe.decoding.judge_path, recipe)


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
        prepared.source_row,
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
    if recipe.decoding.needs_attention and not attends(recipe.model):
        raise explain_missing_attention()
