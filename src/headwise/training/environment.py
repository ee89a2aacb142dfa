"""What "bit-exact" depends on besides the recipe: the data, the number of processes, the machine and the build.

PyTorch does not promise equal results across releases, devices or thread counts, so a checkpoint records them. Other data
or another number of processes would make a different training and is refused; the rest is said and allowed.
"""

import logging
import platform

import torch

from headwise.errors import DataError, UsageError
from headwise.language import say
from headwise.settings import Settings

logger = logging.getLogger(__name__)


class Environment(Settings):
    """What bit-exact continuation depends on besides the recipe."""

    fingerprint: str
    """Of the training data and its order."""
    seed: int
    num_processes: int
    device: str
    num_threads: int
    torch_version: str
    machine: str

    @classmethod
    def here(cls, *, fingerprint: str, seed: int, num_processes: int, device: torch.device) -> "Environment":
        name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
        return cls(
            fingerprint=fingerprint,
            seed=seed,
            num_processes=num_processes,
            device=device.type,
            num_threads=torch.get_num_threads(),
            torch_version=torch.__version__,
            machine=name,
        )


def compare_environments(before: Environment, now: Environment) -> None:
    """Refuse other data or another number of processes; say what else may change the last bits."""
    if before.fingerprint != now.fingerprint:
        raise DataError(
            f"the training data is not the one this run began with (fingerprint {now.fingerprint}, then "
            f"{before.fingerprint}); put the old data back or start a new run",
            f"训练数据与本次运行开始时不同（指纹 {now.fingerprint}，当时为 {before.fingerprint}）；请恢复原数据，或开始新的运行",
        )
    if before.num_processes != now.num_processes:
        raise UsageError(
            f"this run began with {before.num_processes} process(es), {now.num_processes} are given; use as many as then",
            f"本次运行开始时有 {before.num_processes} 个进程，现在是 {now.num_processes} 个；请使用相同的数目",
        )
    changed = [f"{name}: {value} → {getattr(now, name)}" for name, value in before if value != getattr(now, name)]
    if changed:
        logger.warning(
            say(
                f"resuming on a different machine or build ({', '.join(changed)}): the result may differ in the last bits",
                f"在不同的机器或版本上继续（{'，'.join(changed)}）：结果的末位可能不同",
            )
        )
