"""How several processes hold the weights: a whole copy in each, or a shard of every tensor in each.

    replicated   every process has all weights and trains on its rows; gradients are summed
                 (Li et al. 2020, DDP)
    sharded      a process keeps 1/N of weights, gradients and optimiser state; the weights of a
                 block are gathered for its computation and then released
                 (Rajbhandari et al. 2020, ZeRO-3; torch's fully_shard)

Both compute the gradient of the whole batch, so that a recipe trains the same on any number of
processes. Checkpoints always hold whole tensors and do not depend on the number of processes.

Tested against: one process, losses and weights, on 2 and 4 processes; checkpoints written with one
layout and read with another.
"""

import contextlib
import copy
import logging
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh

from headwise.errors import UsageError
from headwise.language import say
from headwise.training.averaging import MovingAverage
from headwise.training.choices import ReplicatedLayout, ShardedLayout, TrainingSettings
from headwise.training.compilation import Compilation, decide_compilation, pays
from headwise.training.gradient_all_reduce import GradientSum
from headwise.training.gradient_checkpointing import blocks_of
from headwise.training.process_group import Processes
from headwise.training.updates import Trainable, WeightLayout, WholeModel
from headwise.weights import Weights, check_fit, is_part, put_weights, weights_of

logger = logging.getLogger(__name__)


@runtime_checkable
class HoldsRows(Protocol):
    """A module with states of the rows of a batch, of which each process changes its own."""

    def only_own_rows(self, name: str, tensor: Tensor) -> Tensor | None:
        """A copy of a state in which the rows of other processes are zero; None for a weight."""
        ...


def join_rows(module: nn.Module, weights: Weights, processes: Processes) -> Weights:
    """The same tensors, with the rows of all processes in the states. All processes call this."""
    if not isinstance(module, HoldsRows):
        return weights
    joined = dict(weights)
    for name, tensor in weights.items():
        own = module.only_own_rows(name, tensor)
        if own is not None:
            processes.add_up(own)
            joined[name] = own
    return joined


class ReplicatedModel(WholeModel):
    """All weights in every process; gradients are summed over processes."""

    owns_gradients = True

    def __init__(self, trainable: Trainable, processes: Processes, *, overlap: bool) -> None:
        super().__init__(trainable)
        self.is_whole = not isinstance(trainable.module, HoldsRows)
        self._processes = processes
        parameters = [
            parameter for parameter in trainable.module.parameters() if parameter.requires_grad
        ]
        self._gradients = GradientSum(parameters, overlap=overlap)

    def backward(self, loss: Tensor, *, is_last: bool) -> None:
        self._gradients.backward(loss, is_last=is_last)

    def gather(self, weights: Weights) -> Weights:
        return join_rows(self.learner.module, super().gather(weights), self._processes)

    def put(self, target: Weights, source: Weights, *, file: Path | None) -> None:
        if self._processes.is_first:
            super().put(target, source, file=file)
        for tensor in target.values():
            self._processes.spread(tensor)


class ShardedModel:
    """A shard of every weight in every process.

    The trainable's own module stays whole in the first process, for validation and for the end.
    """

    is_whole = False
    owns_gradients = False

    def __init__(self, trainable: Trainable, processes: Processes, *, device: torch.device) -> None:
        from torch.distributed.fsdp import FSDPModule, fully_shard

        self._processes, self._whole = processes, trainable.module
        self.learner = copy.deepcopy(trainable)
        if not processes.is_first:
            self._whole.to("cpu")  # only the first process measures
        module = self.learner.module
        mesh = init_device_mesh(device.type, (processes.count,))
        for block in blocks_of(module):
            fully_shard(block, mesh=mesh)
        fully_shard(module, mesh=mesh)
        for part in module.modules():
            if isinstance(part, FSDPModule):
                # The sum, not the mean: processes may hold different numbers of target tokens.
                part.set_gradient_divide_factor(1.0)
                part.set_force_sum_reduction_for_comms(True)

    def backward(self, loss: Tensor, *, is_last: bool) -> None:
        loss.backward()

    def add_up_norm(self, norm: Tensor) -> Tensor:
        square = norm.double().square()
        self._processes.add_up(square)
        return square.sqrt().to(norm.dtype)

    def gather(self, weights: Weights) -> Weights:
        whole = {}
        for name, tensor in weights.items():
            part: Any = tensor
            gathered = part.full_tensor().cpu() if is_part(tensor) else tensor
            if self._processes.is_first or not is_part(tensor):
                whole[name] = gathered
        return join_rows(self.learner.module, whole, self._processes)

    @contextlib.contextmanager
    def showing(self, average: MovingAverage | None) -> Iterator[None]:
        whole = self.gather(weights_of(self.learner.module) if average is None else average.weights)
        if self._processes.is_first:
            put_weights(weights_of(self._whole), whole)
        yield

    @torch.no_grad()
    def put(self, target: Weights, source: Weights, *, file: Path | None) -> None:
        from torch.distributed.tensor import distribute_tensor

        if self._processes.is_first:
            check_fit(target, source, file=file)
        for name, tensor in target.items():
            whole = (
                source[name]
                if self._processes.is_first
                else torch.empty(tensor.shape, dtype=tensor.dtype)
            )
            self._processes.spread(whole)
            whole = whole.to(tensor.device)
            if is_part(tensor):
                # Every process has the whole tensor at this moment: it only takes its own part.
                part: Any = tensor
                whole = distribute_tensor(
                    whole, part.device_mesh, part.placements, src_data_rank=None
                )
            tensor.copy_(whole)


def build_layout(
    trainable: Trainable,
    settings: TrainingSettings,
    processes: Processes,
    *,
    device: torch.device,
    overlap: bool,
) -> WeightLayout:
    """The layout of the recipe; all processes begin with the weights of the first one."""
    if processes.is_alone:
        return WholeModel(trainable)
    for tensor in weights_of(trainable.module).values():
        processes.spread(tensor)
    match settings.parallel:
        case ReplicatedLayout():
            return ReplicatedModel(trainable, processes, overlap=overlap)
        case ShardedLayout():
            return ShardedModel(trainable, processes, device=device)


def decide_parallel_compilation(
    settings: TrainingSettings,
    device: torch.device,
    *,
    alone: bool,
    recorded: Compilation | None = None,
    elsewhere: bool = False,
) -> Compilation:
    """Like `decide_compilation`, without what several processes cannot use.

    A recorded update cannot wait for other processes. Sharded weights are gathered block by block,
    which one graph of the whole loss cannot contain.
    """
    decide = partial(decide_compilation, settings, device, recorded=recorded, elsewhere=elsewhere)
    if alone:
        return decide()
    if settings.cuda_graphs == "on":
        raise UsageError(
            "training.cuda_graphs is on, but an update that sums over processes is not recorded; "
            "use training.cuda_graphs=auto, or start without torchrun",
            "training.cuda_graphs 为 on，但跨进程求和的更新不能录制；请用 "
            "training.cuda_graphs=auto，或不用 torchrun 启动",
        )
    if isinstance(settings.parallel, ReplicatedLayout):
        return Compilation(enabled=decide().enabled, cuda_graphs=False)
    if settings.compile == "on":
        raise UsageError(
            "training.compile is on, but sharded weights are gathered block by block, which a "
            "graph of the whole loss cannot hold; use training.compile=off, or "
            "training.parallel.kind=replicated",
            "training.compile 为 on，但分片的权重是逐块收集的，整个损失的图无法容纳；请用 "
            "training.compile=off，或 training.parallel.kind=replicated",
        )
    if settings.compile == "auto" and pays(settings, device):
        logger.warning(
            say(
                "sharded weights are gathered block by block: training runs uncompiled, which is "
                "slower but correct",
                "分片的权重逐块收集：训练将不编译运行，较慢但结果正确",
            )
        )
    return Compilation(enabled=False)
