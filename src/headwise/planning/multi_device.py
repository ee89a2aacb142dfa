"""Predicts training on N devices: which layout fits, communication, and scaling efficiency.

Replicated (data parallel): every device holds the whole model. The gradients are all-reduced during
the backward pass; in a ring each device sends 2 (N-1)/N of their bytes (Patarasuk & Yuan 2009).
Sharded (ZeRO stage 3, Rajbhandari et al. 2020): every device holds 1/N of weights, gradients and
moments, gathers weights twice and scatters gradients once, which is 1.5 times the traffic.

    exposed    = max(0, traffic / link - overlap · backward) + the last bucket
    efficiency = tokens/s of N devices / (N · tokens/s of one device with the same recipe)

`exposed` is the communication time that is not hidden behind the backward pass; the last bucket of
gradients has no backward pass left to overlap with. Gradient checkpointing keeps the input of each
block and recomputes its forward pass: a third more work, and activations of one block plus the
inputs (Chen et al. 2016).
"""

from dataclasses import dataclass, replace
from typing import Literal

from headwise.planning.cost_prediction import MemoryParts

BACKWARD_SHARE = 2 / 3
OVERLAP = 0.9
BUCKET_BYTES = 25 << 20
"""torch's default size of a bucket of gradients."""
RECOMPUTATION = 4 / 3
SHARD_TRAFFIC = 1.5

Parallel = Literal["replicated", "sharded"]


@dataclass(frozen=True)
class DeviceLayout:
    """How a batch and a model are distributed."""

    parallel: Parallel = "replicated"
    accumulation: int = 1
    recompute: bool = False


@dataclass(frozen=True)
class Scaling:
    """One update on N devices, each with its share of the batch."""

    devices: int
    traffic: int
    """Bytes each device sends, and receives, for one update."""
    compute_seconds: float
    exposed_seconds: float

    @property
    def step_seconds(self) -> float:
        return self.compute_seconds + self.exposed_seconds


def scale(
    compute_seconds: float,
    *,
    gradient_bytes: int,
    devices: int,
    link: float,
    parallel: Parallel = "replicated",
    overlap: float = OVERLAP,
) -> Scaling:
    """One update on `devices` devices that each compute for `compute_seconds`.

    `overlap`: the share of the backward pass that hides communication.
    """
    if devices == 1:
        return Scaling(1, 0, compute_seconds, 0.0)
    traffic = int(
        2
        * (devices - 1)
        / devices
        * gradient_bytes
        * (SHARD_TRAFFIC if parallel == "sharded" else 1)
    )
    hidden = overlap * BACKWARD_SHARE * compute_seconds
    tail = min(BUCKET_BYTES, traffic) / link
    return Scaling(devices, traffic, compute_seconds, max(tail, traffic / link - hidden))


def arrange(
    memory: MemoryParts, layout: DeviceLayout, *, devices: int, num_blocks: int
) -> MemoryParts:
    """The memory of one device in a layout; `memory` is that of the whole batch on one device."""
    share = devices if layout.parallel == "sharded" else 1
    activations = memory.activations // (devices * layout.accumulation)
    if layout.recompute:
        activations = activations // max(1, num_blocks) * 2
    gradients = memory.gradients if layout.accumulation == 1 else memory.optimizer // 2
    # A sharded block is gathered whole while it works.
    gathered = 0 if share == 1 else 2 * memory.weights // max(1, num_blocks)
    return replace(
        memory,
        weights=memory.weights // share + gathered,
        gradients=gradients // share,
        optimizer=memory.optimizer // share,
        averaging=memory.averaging // share,
        activations=activations,
    )


def choose_layout(
    memory: MemoryParts, *, devices: int, num_blocks: int, rows: int, room: float
) -> DeviceLayout | None:
    """The cheapest layout that fits: accumulation costs launches, sharding traffic, checkpointing a
    third of the work.
    """
    halvings = [2**power for power in range(max(1, rows // devices).bit_length())]
    kinds: list[Parallel] = ["replicated", "sharded"] if devices > 1 else ["replicated"]
    for recompute in (False, True):
        for parallel in kinds:
            for accumulation in halvings:
                layout = DeviceLayout(parallel, accumulation, recompute)
                if arrange(memory, layout, devices=devices, num_blocks=num_blocks).total <= room:
                    return layout
    return None
