"""Starts a training, or continues it from its checkpoint, in one process or in many.

The first process reads and verifies the checkpoint. It sends the state and then the tensors, one by
one, to the other processes. So a checkpoint fits any number of processes and any layout of the
weights, and only the first process needs access to the run directory. Tested by resuming: the same
bits with the same number of processes, the same losses with another number.
"""

from dataclasses import dataclass
from pathlib import Path

import torch

from headwise.training.checkpoints import Checkpoint, CheckpointState, prepare_optimizer
from headwise.training.choices import TrainingSettings
from headwise.training.compilation import Compilation
from headwise.training.distributed_model import build_layout, decide_parallel_compilation
from headwise.training.environment import Environment, compare_environments
from headwise.training.freezing import freeze
from headwise.training.precision import choose_dtype, name_of
from headwise.training.process_group import Processes
from headwise.training.run_directory import RunDirectory
from headwise.training.updates import Trainable, Updater
from headwise.weights import Weights, weights_of


@dataclass(frozen=True)
class Restored:
    """What a session continues with; `state` is None at the start of a run."""

    state: CheckpointState | None
    updater: Updater
    environment: Environment


def restore_training(
    trainable: Trainable,
    settings: TrainingSettings,
    run: RunDirectory | None,
    *,
    processes: Processes,
    device: torch.device,
    fingerprint: str,
) -> Restored:
    """Build the updater; if the run has a checkpoint, restore everything from it."""
    checkpoint = run.load() if run is not None else None
    found = processes.ask_first(
        lambda: None if checkpoint is None else checkpoint.state.model_dump(mode="json")
    )
    state = None if found is None else CheckpointState.model_validate(found)
    environment = Environment.here(
        fingerprint=fingerprint,
        seed=settings.seed,
        device=device,
        num_processes=processes.count,
        layout="whole" if processes.is_alone else settings.parallel.kind,
        precision=name_of(choose_dtype(settings.precision, device)),
    )
    if state is not None:
        compare_environments(state.environment, environment)
    recorded = None if state is None else Compilation(state.compiled, state.cuda_graphs)
    compilation = decide_parallel_compilation(
        settings, device, alone=processes.is_alone, recorded=recorded
    )
    trainable.module.to(device).train()
    freeze(trainable.module, settings.freeze)
    layout = build_layout(
        trainable, settings, processes, device=device, overlap=not compilation.enabled
    )
    updater = Updater(
        trainable,
        settings,
        device=device,
        compilation=compilation,
        layout=layout,
        processes=processes,
    )
    if state is not None:
        folder = None if run is None else run.checkpoint(state.step)
        _put_back(checkpoint, updater, processes, folder=folder)
        updater.sums.restore(state.window)
    return Restored(state, updater, environment)


def _put_back(
    checkpoint: Checkpoint | None, updater: Updater, processes: Processes, *, folder: Path | None
) -> None:
    """Restore weights, optimiser and moving average; only the first process has the checkpoint."""

    def file(name: str) -> Path | None:
        return None if folder is None else folder / f"{name}.safetensors"

    weights: Weights
    optimizer: Weights
    ema: Weights
    weights, optimizer, ema = ({}, {}, {}) if checkpoint is None else checkpoint.tensors
    module, layout = updater.learner.module, updater.layout
    layout.put(weights_of(module), weights, file=file("model"))
    names = processes.ask_first(lambda: list(optimizer))
    layout.put(
        prepare_optimizer(updater.optimizer, module, names), optimizer, file=file("optimizer")
    )
    if updater.average is not None:
        layout.put(updater.average.weights, ema, file=file("ema"))
