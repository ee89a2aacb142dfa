"""The option `--checkpoint`, with which a command uses the model of an unfinished run.

The newest or the best weights of the run are written as a bundle (the directory of a saved model)
to a temporary place, and the command loads that.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headwise.cli.options.model_paths import UnfinishedRun
from headwise.cli.terminal.wrapping import write_line
from headwise.errors import UsageError
from headwise.language import say


def accept_unfinished(arguments: argparse.Namespace) -> None:
    """With --checkpoint, a run has no model yet: its directory must exist, and be of the right
    task; there can be no memory of it."""
    if arguments.checkpoint is None:
        return
    changed = {one.partition("=")[0].split(".")[0] for one in getattr(arguments, "changes", ())}
    if getattr(arguments, "memory", None) is not None or "memory" in changed:
        raise UsageError(
            "--checkpoint and a memory exclude each other, because a store belongs to a finished "
            "model; leave one of them out",
            "--checkpoint 与记忆不能同时使用，因为存储只属于已完成的模型；请去掉其一",
        )
    model = arguments.model
    is_list = isinstance(model, list)
    arguments.model = list(map(UnfinishedRun.of, model)) if is_list else UnfinishedRun.of(model)


@contextmanager
def model_to_load(model: str, which: str | None) -> Iterator[str]:
    """The model itself; with --checkpoint, a bundle made from the weights of its run."""
    if which is None:
        yield model
        return
    from headwise.tasks.checkpoint_bundle import write_checkpoint_bundle
    from headwise.tasks.task import training_of

    with tempfile.TemporaryDirectory(prefix="headwise-checkpoint-") as temporary:
        target = Path(temporary) / "model"
        step, recipe = write_checkpoint_bundle(Path(model), which, target)
        steps = training_of(recipe).steps
        tell_weights(model, which, step=step, steps=steps)
        yield str(target)


def tell_weights(model: str, which: str, *, step: int, steps: int) -> None:
    """Which weights of a run answer, on standard error."""
    if which.startswith("average"):
        sentence = say(
            f"{model}: mean of the weights of its last checkpoints, up to step {step:,} of "
            f"{steps:,}",
            f"{model}：最近几个检查点的权重平均，直到第 {step:,} 步（共 {steps:,} 步）",
        )
    else:
        sentence = say(
            f"{model}: weights of step {step:,} of {steps:,}",
            f"{model}：第 {step:,} 步的权重（共 {steps:,} 步）",
        )
    write_line(sentence, sys.stderr)
