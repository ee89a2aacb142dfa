"""Checks that a training fits into memory, before its run directory is kept. All tasks use it.

First an upper bound that is computed at once: every linear map and recurrent layer keeps its input
and output, four times over, in fp32. A training below the bound is accepted. Otherwise the memory
of a step is predicted as by `headwise plan` (planner.py). If the training may not fit, within the
margin of error of the prediction, the user is warned; if it cannot fit, it is refused (exit status
2), unless `--anyway` is given. The message proposes

    halve training.batch_tokens, double training.accumulation: equal updates, half the activations

Processes of one machine share its memory, but each has a GPU of its own. Tested with a limit on the
address space.
"""

import contextlib
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import nn

from headwise.errors import UsageError, is_out_of_memory
from headwise.language import say
from headwise.planning.available_memory import available_memory
from headwise.planning.cost_prediction import MemoryParts
from headwise.planning.hardware import GIB, GLIBC_HEAP
from headwise.planning.smaller_batches import MARGIN_OF_MEMORY
from headwise.planning.units import mebibytes
from headwise.tasks.planned_step import PlannedStep, choose_execution
from headwise.tasks.planner import Planner
from headwise.tasks.training_cost import TrainingCost
from headwise.training.choices import TrainingSettings
from headwise.training.precision import choose_device

logger = logging.getLogger(__name__)


class TooLargeError(UsageError):
    """A training does not fit into memory; the message says which setting to halve."""


def check_memory(step: PlannedStep, *, num_processes: int = 1, anyway: bool = False) -> None:
    """Refuse what cannot fit, warn of what may not; silent where there is room."""
    training = step.training
    device = choose_device(training.device)
    room = available_memory(device)
    is_cpu = device.type == "cpu"
    sharing = int(os.environ.get("LOCAL_WORLD_SIZE", num_processes)) if is_cpu else 1
    if room is None or sharing * bound_memory(step) < room // 2:
        return
    execution, _ = choose_execution(training, "cpu" if is_cpu else None, num_devices=num_processes)
    planner = Planner(step, execution, cuda=not is_cpu)
    memory = planner.memory(GLIBC_HEAP if is_cpu else 1.0)
    fixed, batch = (
        sharing * part for part in parts_of_process(memory, training, num_processes=num_processes)
    )
    if fixed + batch <= (1 - MARGIN_OF_MEMORY) * room:
        return
    need = _describe(fixed, batch, room, sharing)
    proposal = planner.propose(memory, room / sharing).describe()
    _refuse_or_warn(
        (f"{need[0]}; {proposal[0]}", f"{need[1]}；{proposal[1]}"),
        may_fit=fixed + batch <= (1 + MARGIN_OF_MEMORY) * room or anyway,
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


def check_single_pass_memory(
    bound: int, measure: Callable[[], TrainingCost], *, anyway: bool
) -> None:
    """The same for a single pass: `bound` bytes are certainly enough, `measure` predicts what is
    needed.
    """
    available = available_memory(torch.device("cpu"))
    if available is None or bound < available // 2:
        return
    needed = measure().memory
    if needed <= (1 - MARGIN_OF_MEMORY) * available:
        return
    en = (
        f"this training needs about {_amount(needed)}, {_amount(available)} are free; give less "
        "text, or lower model.order (n-grams) or model.dim (word vectors)"
    )
    zh = (
        f"该训练约需 {_amount(needed)}，可用 {_amount(available)}；请减少文本，或减小 "
        "model.order（n 元语法）、model.dim（词向量）"
    )
    _refuse_or_warn((en, zh), may_fit=needed <= (1 + MARGIN_OF_MEMORY) * available or anyway)


def _amount(nbytes: float) -> str:
    return f"{nbytes / GIB:.1f} GiB" if nbytes >= GIB else mebibytes(nbytes)


def _refuse_or_warn(said: tuple[str, str], *, may_fit: bool) -> None:
    en, zh = said
    if may_fit:
        logger.warning("%s", say(f"it may not fit: {en}", f"可能放不下：{zh}"))
        return
    raise TooLargeError(
        f"{en}; or start it nevertheless with --anyway", f"{zh}；若仍要开始，请加 --anyway"
    )


def bound_memory(step: PlannedStep) -> int:
    """Certainly more than a step takes; attention that writes its table out grows with the row."""
    with torch.device("meta"):
        module = step.build(step.num_rows)
    num_tokens = int(step.num_rows * step.row * (1 + step.row / 512))
    maps = [part for part in module.modules() if isinstance(part, nn.Linear | nn.RNNBase)]
    matrices = [
        weight
        for part in maps
        for name, weight in part.named_parameters(recurse=False)
        if "weight" in name
    ]
    widths = sum(sum(weight.shape) for weight in matrices)
    states = 2 * sum(state.nbytes for state in module.buffers())  # and their average, with ema
    weights = 16 * sum(weight.numel() for weight in module.parameters())
    return 24 * num_tokens * widths + weights + states


def _describe(fixed: int, batch: int, room: float, sharing: int) -> tuple[str, str]:
    en, zh = ("a step", "一步") if sharing == 1 else (f"{sharing} processes", f"{sharing} 个进程")
    verb = "needs" if sharing == 1 else "need"
    return (
        f"{en} {verb} about {_amount(fixed + batch)} ({_amount(fixed)} for weights and optimiser, "
        f"{_amount(batch)} for the batch and its gradients), {_amount(room)} are free",
        f"{zh}约需 {_amount(fixed + batch)}（权重与优化器 {_amount(fixed)}，批次与梯度 "
        f"{_amount(batch)}），可用 {_amount(room)}",
    )


def _halved(training: TrainingSettings) -> str:
    """Settings that make the same updates with half of the activations."""
    return (
        f"training.batch_tokens={max(1, training.batch_tokens // 2)} "
        f"training.accumulation={2 * training.accumulation}"
    )


@contextlib.contextmanager
def explaining_memory(training: TrainingSettings, run: Path | None) -> Iterator[None]:
    """Turn "out of memory", however it is raised, into what to halve and where to go on."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:  # torch.OutOfMemoryError is a RuntimeError
        if not is_out_of_memory(error):
            raise
        half = _halved(training)
        saved = _latest(run)
        raise TooLargeError(
            f"memory ran out with training.batch_tokens={training.batch_tokens:,}; start a new "
            f"run with half the batch, which learns the same: {half} (or "
            "training.recompute=blocks); "
            + (
                f"{saved} is whole: with more memory free, --resume goes on from it"
                if saved
                else "nothing had been saved yet"
            ),
            f"内存用尽（training.batch_tokens={training.batch_tokens:,}）；"
            f"请以一半的批次重新开始，训练效果不变：{half}（或 training.recompute=blocks）；"
            + (
                f"{saved} 完好：腾出内存后可用 --resume 从它继续" if saved else "尚未保存任何检查点"
            ),
        ) from error


def _latest(run: Path | None) -> Path | None:
    """The checkpoint a resumed run would start from."""
    with contextlib.suppress(OSError):
        if run is not None:
            return run / "checkpoints" / (run / "LATEST").read_text(encoding="utf-8").strip()
    return None
