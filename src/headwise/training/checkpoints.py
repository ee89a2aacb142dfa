"""A checkpoint: a directory with everything that the next update depends on.

    step-500/   model.safetensors      weights
                optimizer.safetensors  Adam's moments and step counts, by parameter name
                ema.safetensors        the moving average, if there is one
                state.json             step, data cursor, best validation, counters, environment
                recipe.yaml            a copy of the run's recipe
                MANIFEST.json          size and SHA-256 of each file

The files contain no code. No state of a random generator is saved, because the random numbers of a
step are a function of (seed, step). The directory is written under a temporary name, flushed and
published by one rename (`storage/publishing.py`). Tested by killing the process at random moments.
"""

import shutil
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import torch
from pydantic import Field
from safetensors import SafetensorError
from torch import Tensor, nn

from headwise.errors import CheckpointError, SettingsError
from headwise.settings import Settings, check_settings
from headwise.storage import publish_directory, read_json, verify_directory, write_json, write_text
from headwise.training.early_stopping import Selection
from headwise.training.environment import Environment
from headwise.training.log_file import DISK_FULL
from headwise.training.log_window import FIELDS
from headwise.weights import Weights, read_tensors, write_tensors

KIND = "headwise.checkpoint"
SPARE_BYTES = 16 << 20


class CheckpointState(Settings):
    """`state.json`."""

    step: int
    cursor: dict[str, int] | None
    """The position in the data from which training continues."""
    learning_rate: float
    """Of the last update, for people who read the file; the schedule computes it from the step."""
    seconds: float
    """Time spent on the run so far, in all sessions."""
    window: Annotated[list[float], Field(min_length=len(FIELDS), max_length=len(FIELDS) + 64)]
    """The numbers of log_window.LogWindow, in the order of its fields, then those that the
    objective measures."""
    logged: int
    """Step of the last training line in the log; later lines will be written again."""
    selection: Selection
    """Best validation and patience."""
    compiled: bool
    cuda_graphs: bool
    environment: Environment


@dataclass(frozen=True)
class Checkpoint:
    state: CheckpointState
    weights: Weights
    optimizer: Weights
    ema: Weights = field(default_factory=dict)

    @property
    def tensors(self) -> tuple[Weights, Weights, Weights]:
        return self.weights, self.optimizer, self.ema


def count_bytes(weights: Weights) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in weights.values())


class DiskFullError(CheckpointError):
    """There is no space for a checkpoint; earlier checkpoints are untouched.

    Nothing is damaged, so the exit status is 1 and not 3.
    """

    exit_status = 1


def write_checkpoint(path: Path, checkpoint: Checkpoint, *, recipe: str) -> None:
    """Publish a checkpoint whole, or raise and leave nothing behind."""
    needed = sum(count_bytes(part) for part in checkpoint.tensors) + SPARE_BYTES
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        refusing_full_disk(path.parent, needed=needed),
        publish_directory(path, kind=KIND) as directory,
    ):
        write_tensors(directory / "model.safetensors", checkpoint.weights)
        write_tensors(directory / "optimizer.safetensors", checkpoint.optimizer)
        if checkpoint.ema:
            write_tensors(directory / "ema.safetensors", checkpoint.ema)
        write_json(directory / "state.json", checkpoint.state.model_dump(mode="json"))
        write_text(directory / "recipe.yaml", recipe)


class refusing_full_disk:  # noqa: N801 - reads as a phrase: `with refusing_full_disk(...)`
    """Turn "no space left" into a DiskFullError that says how much to free and where.

    The free space is checked on entry, and errors of the system inside the block are translated.
    """

    def __init__(self, folder: Path, *, needed: int) -> None:
        self.folder, self.needed = folder, needed

    def __enter__(self) -> None:
        if shutil.disk_usage(self.folder).free < self.needed:
            raise self._error()

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        full = isinstance(error, OSError) and error.errno in DISK_FULL
        # safetensors writes in Rust and reports the system's error as text.
        if full or (isinstance(error, SafetensorError) and "os error 28" in str(error)):
            raise self._error() from error

    def _error(self) -> DiskFullError:
        free = shutil.disk_usage(self.folder).free
        return DiskFullError(
            f"has {free >> 20:,} MiB free, {-(-self.needed >> 20):,} MiB are needed to save; "
            "earlier checkpoints are untouched; free some space there (old runs, caches)",
            f"剩余 {free >> 20:,} MiB，保存需要 {-(-self.needed >> 20):,} MiB；已有检查点不受影响；"
            "请在该处释放空间（旧的运行、缓存）",
            file=self.folder,
        )


def verify_checkpoint(path: Path) -> tuple[Mapping[str, Any], CheckpointState]:
    """Compare every file with the manifest and read the state.

    Raises a CheckpointError that names the first bad file.
    """
    manifest = verify_directory(path, kind=KIND)
    for name in ("model.safetensors", "optimizer.safetensors", "state.json"):
        if name not in manifest["files"]:
            raise CheckpointError("is missing from the manifest", "不在清单中", file=path / name)
    try:
        state = check_settings(
            CheckpointState, read_json(path / "state.json"), file=path / "state.json"
        )
    except SettingsError as error:
        raise CheckpointError(error.en, error.zh, file=path / "state.json") from error
    return manifest, state


def read_checkpoint(path: Path) -> Checkpoint:
    """A whole checkpoint."""
    manifest, state = verify_checkpoint(path)
    return Checkpoint(
        state=state,
        weights=read_tensors(path / "model.safetensors"),
        optimizer=read_tensors(path / "optimizer.safetensors"),
        ema=read_tensors(path / "ema.safetensors")
        if "ema.safetensors" in manifest["files"]
        else {},
    )


def optimizer_tensors(optimizer: torch.optim.Optimizer, module: nn.Module) -> dict[str, Tensor]:
    """The optimiser's state flattened to `exp_avg/<parameter name>` and so on."""
    return {
        f"{kind}/{name}": tensor
        for name, parameter in module.named_parameters()
        for kind, tensor in optimizer.state.get(parameter, {}).items()
    }


def prepare_optimizer(
    optimizer: torch.optim.Optimizer, module: nn.Module, names: Container[str]
) -> dict[str, Tensor]:
    """Create optimiser state (zeros) for these names and return the tensors to be filled."""
    grouped = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    named = {parameter: name for name, parameter in module.named_parameters()}
    expected: dict[str, Tensor] = {}
    for parameter in grouped:
        if f"step/{named[parameter]}" not in names:
            continue  # it never had a gradient, so Adam has no state for it
        state = {
            "step": torch.zeros((), dtype=torch.float32, device=parameter.device),
            "exp_avg": torch.zeros_like(parameter),
            "exp_avg_sq": torch.zeros_like(parameter),
        }
        optimizer.state[parameter] = state
        expected.update({f"{kind}/{named[parameter]}": tensor for kind, tensor in state.items()})
    return expected
