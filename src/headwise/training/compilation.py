"""torch.compile for the loss of one batch: shapes are static, so one graph serves the whole run.

Compiling fuses what lies between matrix products and costs a minute; on a GPU the compiled step can also be recorded once
and replayed as one CUDA graph, which removes the launch of every kernel (at 4,096 tokens that is most of a step).
`auto` compiles when a compiler is there and the run is long enough; whether it did is saved with the run, because compiled
and plain code round differently and a resumed run must continue with the same one.
Tested by making the compiler vanish, and by comparing compiled with plain losses.
"""

import importlib.util
import logging
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from headwise.errors import UsageError
from headwise.language import say
from headwise.training.choices import TrainingSettings
from headwise.training.losses import LossSums

logger = logging.getLogger(__name__)

# A minute of compiling is won back after some ten minutes of CPU training: about this many updates.
MIN_CPU_STEPS = 1000
MIN_CUDA_STEPS = 200
MIN_SECONDS = 600.0
# Below this a GPU of 2024 spends more time launching kernels than running them.
MAX_TOKENS_FOR_CUDA_GRAPHS = 16384

LossFunction = Callable[[Any], LossSums]


@dataclass(frozen=True)
class Compilation:
    """What was decided, in the form that is saved with the run."""

    enabled: bool
    cuda_graphs: bool = False


def find_compiler(device: torch.device) -> str | None:
    """Whatever torch.compile would generate code with on this device, or None."""
    if device.type == "cuda":
        return "triton" if importlib.util.find_spec("triton") is not None else None
    for name in (os.environ.get("CXX", ""), "g++", "clang++", "c++"):
        if name and (path := shutil.which(name)):
            return path
    return None


def decide_compilation(
    settings: TrainingSettings, device: torch.device, *, recorded: Compilation | None = None
) -> Compilation:
    """Decide from settings and machine alone, never from how much is left; a resumed run keeps its decision."""
    if settings.compile == "off":
        return Compilation(enabled=False)
    compiler = find_compiler(device)
    if settings.compile == "on" and compiler is None:
        raise UsageError(
            f"training.compile is on, but no compiler for {device.type} is installed (a C++ compiler on a CPU, triton on a "
            "GPU); install one or use training.compile=off",
            f"training.compile 为 on，但没有可用于 {device.type} 的编译器（CPU 需要 C++ 编译器，GPU 需要 triton）；"
            "请安装，或使用 training.compile=off",
        )
    if settings.compile == "auto":
        if recorded is not None and not recorded.enabled:
            return recorded
        if recorded is None and not is_long_run(settings, device):
            return Compilation(enabled=False)
        if compiler is None:
            logger.warning(
                say(
                    f"no compiler for {device.type} found: training runs uncompiled, which is slower but correct",
                    f"没有找到 {device.type} 的编译器：训练将不编译运行，较慢但结果正确",
                )
            )
            return Compilation(enabled=False)
    if recorded is not None and recorded.enabled:
        return recorded
    small = settings.batch_tokens <= MAX_TOKENS_FOR_CUDA_GRAPHS
    wanted = settings.cuda_graphs == "on" or (settings.cuda_graphs == "auto" and small)
    return Compilation(enabled=True, cuda_graphs=wanted and device.type == "cuda")


def is_long_run(settings: TrainingSettings, device: torch.device) -> bool:
    enough = settings.steps >= (MIN_CUDA_STEPS if device.type == "cuda" else MIN_CPU_STEPS)
    return enough and (settings.time_limit is None or settings.time_limit >= MIN_SECONDS)


def compile_loss(loss: LossFunction, decision: Compilation, *, insist: bool = True) -> LossFunction:
    """The same function, compiled if so decided; unless `insist`, a compiler that fails is said and done without."""
    if not decision.enabled:
        return loss
    chosen = torch.compile(loss, dynamic=False, mode="reduce-overhead" if decision.cuda_graphs else None)
    if insist:
        return chosen

    def attempt(batch: Any) -> LossSums:
        nonlocal chosen
        try:
            return chosen(batch)
        except torch._dynamo.exc.TorchDynamoException as error:
            if chosen is loss:
                raise
            reason = str(error).partition("\n")[0]
            logger.warning(
                say(
                    f"torch.compile failed ({reason}): training runs uncompiled, which is slower but correct",
                    f"torch.compile 失败（{reason}）：训练将不编译运行，较慢但结果正确",
                )
            )
            chosen = loss
            return loss(batch)

    return attempt
