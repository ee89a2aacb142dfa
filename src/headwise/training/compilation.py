"""Compiles the loss of one batch with torch.compile. Shapes are static, so one graph serves the
run.

Compiling fuses the operations between matrix products and takes about a minute. On a GPU the
update, compiled or not, is also recorded once and replayed as one CUDA graph (cuda_graph.py), which
removes the launch cost of every kernel. `auto` compiles on a GPU if a compiler is installed and the
run is long enough. It does not compile on a CPU, where it was no faster (0.87 of the uncompiled
speed for a small model in bf16; docs/experiments).

The decision is saved with the run: compiled and uncompiled code round differently, and a resumed
run must use the same code. Tested by removing the compiler, and by comparing losses.
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

COMPILER = ("torch._dynamo", "torch._inductor", "torch._functorch", "torch.fx", "triton")
"""Modules of the compiler. An error raised in them is its own; it may be of any class."""
MIN_CUDA_STEPS = 200
MIN_SECONDS = 600.0

LossFunction = Callable[[Any], LossSums]


@dataclass(frozen=True)
class Compilation:
    """What was decided, in the form that is saved with the run."""

    enabled: bool
    cuda_graphs: bool = False


def find_compiler(device: torch.device) -> str | None:
    """The compiler that torch.compile would use on this device, or None."""
    if device.type == "cuda":
        return "triton" if importlib.util.find_spec("triton") is not None else None
    for name in (os.environ.get("CXX", ""), "g++", "clang++", "c++"):
        if name and (path := shutil.which(name)):
            return path
    return None


def decide_compilation(
    settings: TrainingSettings,
    device: torch.device,
    *,
    recorded: Compilation | None = None,
    elsewhere: bool = False,
) -> Compilation:
    """Decide from settings and machine alone; a resumed run keeps its recorded decision.

    `elsewhere`: plan for another machine, which is assumed to have a compiler.
    """
    if recorded is not None and settings.compile == "auto" and not recorded.enabled:
        return recorded
    graphs = device.type == "cuda" and settings.cuda_graphs != "off"
    plain = Compilation(enabled=False, cuda_graphs=graphs)
    if settings.compile == "off":
        return plain
    compiler = "elsewhere" if elsewhere else find_compiler(device)
    if settings.compile == "on" and compiler is None:
        raise UsageError(
            f"training.compile is on, but no compiler for {device.type} is installed (a C++ "
            "compiler on a CPU, triton on a GPU); install one or use training.compile=off",
            f"training.compile 为 on，但没有可用于 {device.type} 的编译器（CPU 需要 C++ 编译器，"
            "GPU 需要 triton）；请安装，或使用 training.compile=off",
        )
    if settings.compile == "auto":
        if recorded is None and not pays(settings, device):
            return plain
        if compiler is None:
            logger.warning(
                say(
                    f"no compiler for {device.type} found: training runs uncompiled, which is "
                    "slower but correct",
                    f"没有找到 {device.type} 的编译器：训练将不编译运行，较慢但结果正确",
                )
            )
            return plain
    return (
        recorded
        if recorded is not None and recorded.enabled
        else Compilation(enabled=True, cuda_graphs=graphs)
    )


def pays(settings: TrainingSettings, device: torch.device) -> bool:
    """Whether compiling saves time: on a GPU, if the run is long enough."""
    enough = device.type == "cuda" and settings.steps >= MIN_CUDA_STEPS
    return enough and (settings.time_limit is None or settings.time_limit >= MIN_SECONDS)


def compiler_options() -> dict[str, Any]:
    """Options for torch's compiler.

    By default it fuses the two reductions in the backward pass of a norm (over the features of a
    token and over all tokens) into one kernel. Two kernels are three times as fast at these shapes
    (measured on an H200; docs/experiments).
    """
    import torch._inductor.config as defaults

    name = "mix_order_reduction"  # torch 2.10 and later have it
    return {f"triton.{name}": False} if hasattr(defaults.triton, name) else {}


def compile_loss(
    loss: LossFunction,
    decision: Compilation,
    *,
    insist: bool = True,
    failed: Callable[[], None] = lambda: None,
) -> LossFunction:
    """The function compiled, if so decided.

    If the compiler fails: an error if `insist`; else a warning, a call of `failed`, and the
    function as it is.
    """
    if not decision.enabled:
        return loss
    chosen = torch.compile(loss, dynamic=False, options=compiler_options())
    if insist:
        return chosen

    def attempt(batch: Any) -> LossSums:
        nonlocal chosen
        try:
            return chosen(batch)
        except Exception as error:
            if chosen is loss or not _is_of_the_compiler(error):
                raise
            reason = str(error).partition("\n")[0] or type(error).__name__
            logger.warning(
                say(
                    f"torch.compile failed ({reason}): training runs uncompiled, which is slower "
                    "but correct",
                    f"torch.compile 失败（{reason}）：训练将不编译运行，较慢但结果正确",
                )
            )
            chosen = loss
            failed()
            return loss(batch)

    return attempt


def _is_of_the_compiler(error: Exception) -> bool:
    """Whether the compiler failed, and not the loss that it has compiled."""
    if isinstance(error, torch._dynamo.exc.TorchDynamoException):
        return True
    innermost = error.__traceback__
    while innermost is not None and innermost.tb_next is not None:
        innermost = innermost.tb_next
    module = "" if innermost is None else str(innermost.tb_frame.f_globals.get("__name__"))
    return f"{module}.".startswith(tuple(f"{name}." for name in COMPILER))
