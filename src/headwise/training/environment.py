"""Records what an exact continuation depends on besides the recipe: data, processes, machine,
build.

A checkpoint stores this record, and a resumed run compares it with its own. Other data or another
vocabulary would be a different training; this is an error that says what differs. Another machine
or build is allowed with a warning: PyTorch does not promise equal bits across releases, devices or
thread counts, but steps, data order, schedule and dropout seeds are functions of the recipe and
stay the same. Another number of processes is also allowed: the global batches are the same, only
divided differently.

Tested by changing each entry.
"""

import logging
import platform

import torch

import headwise
from headwise.errors import DataError, UsageError
from headwise.language import say
from headwise.settings import Settings

logger = logging.getLogger(__name__)

# Names of the parts of a fingerprint ("train:3f2a… valid:none …") in messages.
DATA_PARTS = {
    "train": ("training pairs", "训练句对"),
    "valid": ("validation pairs", "验证句对"),
    "vocabulary": ("vocabulary", "词表"),
    "rows": ("row lengths", "行长"),
    "alignment": ("word alignment", "词对齐"),
}


class Environment(Settings):
    """What bit-exact continuation depends on besides the recipe."""

    fingerprint: str
    """Of the training data and its order. If it consists of parts `name:value`, an error names the
    parts that differ."""
    seed: int
    num_processes: int
    layout: str = ""
    """How the weights were held: `whole` in one process, `replicated` or `sharded`."""
    device: str
    num_threads: int
    torch_version: str
    machine: str
    precision: str = ""
    """Number format of matrix products, `fp32` or `bf16`; empty in older checkpoints."""
    headwise_version: str = ""
    """Empty in older checkpoints."""

    @classmethod
    def here(
        cls,
        *,
        fingerprint: str,
        seed: int,
        device: torch.device,
        num_processes: int = 1,
        layout: str = "whole",
        precision: str = "",
    ) -> "Environment":
        name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
        return cls(
            fingerprint=fingerprint,
            seed=seed,
            num_processes=num_processes,
            layout=layout,
            device=device.type,
            num_threads=torch.get_num_threads(),
            torch_version=torch.__version__,
            machine=name,
            precision=precision,
            headwise_version=headwise.__version__,
        )


def compare_environments(before: Environment, now: Environment) -> None:
    """Raise for other data or another seed; warn about what may change the last bits."""
    if before.fingerprint != now.fingerprint:
        raise _other_data(before.fingerprint, now.fingerprint)
    if before.seed != now.seed:
        raise UsageError(
            f"training.seed is {now.seed}, this run began with {before.seed}; set it back or "
            "start a new run",
            f"training.seed 为 {now.seed}，本次运行开始时为 {before.seed}；请改回，或开始新的运行",
        )
    changed = {
        name: f"{name}: {value} → {getattr(now, name)}"
        for name, value in before
        if value not in ("", getattr(now, name))
    }
    if shared := [changed.pop(name) for name in ("num_processes", "layout") if name in changed]:
        logger.warning(
            "%s",
            say(
                f"going on with the work shared differently ({', '.join(shared)}): the batches, "
                "their order and the schedule are the same, and so is dropout if both numbers of "
                "processes divide training.accumulation; sums are rounded differently, so the "
                "weights will not be those of an uninterrupted run to the last bit",
                f"以不同的分工继续（{'，'.join(shared)}）：各批数据、其顺序与学习率计划都不变，"
                "两个进程数都能整除 training.accumulation 时 dropout 也不变；求和的舍入不同，"
                "权重的末位将与未中断的运行不同",
            ),
        )
    if changed:
        logger.warning(
            "%s",
            say(
                f"going on with another machine or build ({', '.join(changed.values())}): the "
                "steps, the order of the data, the schedule and the seeds of dropout are the "
                "same, but sums are rounded differently: the weights will not be those of an "
                "uninterrupted run to the last bit",
                f"在不同的机器或版本上继续（{'，'.join(changed.values())}）：步数、数据顺序、"
                "学习率计划与 dropout 种子都不变，但求和的舍入不同："
                "权重的末位将与未中断的运行不同",
            ),
        )


def _other_data(before: str, now: str) -> DataError:
    old, new = _parts(before), _parts(now)
    if not old or old.keys() != new.keys():
        old, new = {"train": before}, {"train": now}
    words = {name: DATA_PARTS.get(name, (name, name)) for name in old}
    differing = [name for name in old if old[name] != new[name]]
    same = [name for name in old if old[name] == new[name]]
    kept_en = f"the same: {', '.join(words[name][0] for name in same)}; " if same else ""
    kept_zh = f"相同的有：{'、'.join(words[name][1] for name in same)}；" if same else ""
    return DataError(
        "the data is not what this run began with:\n"
        + "\n".join(
            f"  {words[name][0]}: fingerprint {old[name]} → {new[name]}" for name in differing
        )
        + f"\n{kept_en}going on would be another training: put the old data back, or start a "
        "new run in another directory",
        "数据与本次运行开始时不同：\n"
        + "\n".join(f"  {words[name][1]}：指纹 {old[name]} → {new[name]}" for name in differing)
        + f"\n{kept_zh}继续下去将是另一次训练：请恢复原数据，或在别的目录开始新的运行",
    )


def _parts(fingerprint: str) -> dict[str, str]:
    words = [word.partition(":") for word in fingerprint.split()]
    return (
        {name: value for name, colon, value in words} if all(colon for _, colon, _ in words) else {}
    )
