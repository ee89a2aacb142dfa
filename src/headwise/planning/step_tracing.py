"""Traces one training step without executing it, to count its memory and operations.

The real loss runs on torch's fake tensors, which have shape, dtype and lifetime but no data. So a
step of a large model takes a second and no memory. The trace sees what the code does, for any
mechanism of a recipe; there are no formulas to keep in step with the code.

    live bytes      a storage counts from its first use until autograd releases it
    operations      2·m·k·n flops of a product, 2·outputs·width·channels of a convolution,
                    4·q·k·d of attention (backward 2.5 times), bytes read and written by the others

A compiler fuses the operations between two products, so that only tensors that cross a product are
written to memory. A region is the code between two products (or attentions). Compiled code writes a
tensor if a product reads or makes it, or if the forward pass reads it in another region than where
it was made; every region that reads it costs a pass over it.

Tested against: torch's FlopCounterMode, the peak of the allocator where there is one, hand-computed
counts.
"""

import contextlib
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

Kind = Literal["product", "attention", "other"]
PRODUCTS = {"mm": 0, "bmm": 0, "addmm": 1, "baddbmm": 1}
"""The index of the first factor among the arguments."""
CONVOLUTIONS = ("convolution", "convolution_backward")
BACKWARD_OF_ATTENTION = 2.5
"""Products of the backward pass for each of the forward pass: five to two."""
_FREE = (
    "aten.detach",
    "aten.empty",
    "prim.device",
    "aten.new_empty",
    "aten.promote_types",
    "aten._unsafe_view",
)


@dataclass(frozen=True)
class Form:
    """Shape and dtype of a tensor."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True)
class Operation:
    """A call and how often it occurs: the function, its arguments (forms instead of tensors), its
    cost.
    """

    function: Any
    arguments: tuple[Any, ...]
    options: tuple[tuple[str, Any], ...]
    kind: Kind
    flops: int
    nbytes: int

    @property
    def work(self) -> int:
        """What its time grows with."""
        return self.flops or self.nbytes


@dataclass
class StepTrace:
    """Memory and work of one step of a loss, without the optimiser."""

    operations: dict[Operation, int] = field(default_factory=dict)
    activations: int = 0
    """What the forward pass keeps for the backward pass, uncompiled."""
    workspace: int = 0
    """At the peak, what is neither gradient nor activation: chunks of logits, intermediate results.
    """
    gradients_at_peak: int = 0
    compiled_workspace: int = 0
    """The same for compiled code, which does not write what it fuses (such as fp32 scores of a
    chunk)."""
    compiled_traffic: int = 0
    """Bytes the fused code between products reads and writes."""
    num_regions: int = 0

    @property
    def eager_peak(self) -> int:
        """Peak memory beyond weights and batch, with gradients."""
        return self.activations + self.workspace + self.gradients_at_peak

    @property
    def flops(self) -> int:
        return sum(count * operation.flops for operation, count in self.operations.items())

    def calls(self, kind: Kind | None = None) -> int:
        return sum(
            count for operation, count in self.operations.items() if kind in (None, operation.kind)
        )


Step = Callable[[], contextlib.AbstractContextManager[tuple[nn.Module, Callable[[], Tensor]]]]
"""Opens a module in training mode and a function that computes the loss to differentiate."""


def trace_step(step: Step) -> StepTrace:
    """Trace a step, forward and backward."""
    with FakeTensorMode(), torch.device("cpu"), step() as (module, loss):
        watch = _Watch([*module.parameters(), *module.buffers()])
        with watch:
            value = loss()
            watch.start_backward()
            value.backward()
            del value
        return watch.finish(
            [parameter.grad for parameter in module.parameters() if parameter.grad is not None]
        )


@dataclass
class _Storage:
    """One storage: its size and who made and read it, where."""

    nbytes: int
    made_by: Kind
    made_in: int
    made_forward: bool
    read_by_product: bool = False
    read_in: set[int] = field(default_factory=set)


class _Watch(TorchDispatchMode):
    def __init__(self, given: Sequence[Tensor]) -> None:
        super().__init__()
        self.trace = StepTrace()
        self._given = {tensor.untyped_storage()._cdata for tensor in given}
        self._storages: dict[int, _Storage] = {}
        self._all: list[_Storage] = []
        self._events: list[tuple[_Storage, bool]] = []
        self._live = self._peak = self._made_before_peak = 0
        self._forward = True

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        options = kwargs or {}
        result = function(*args, **options)
        inputs, outputs = list(_tensors((args, options))), list(_tensors(result))
        if not str(function).startswith(_FREE) and not getattr(function, "is_view", False):
            self._record(function, args, options, inputs, outputs)
        for tensor in outputs:
            self._see(tensor, function)
        return result

    def _record(
        self, function: Any, args: Any, options: Any, inputs: list[Tensor], outputs: list[Tensor]
    ) -> None:
        kind, flops = count_flops(function, args, outputs)
        operation = Operation(
            function,
            _without_content(args),
            tuple((name, _without_content(value)) for name, value in sorted(options.items())),
            kind,
            flops,
            sum(_nbytes(tensor) for tensor in (*inputs, *outputs)),
        )
        self.trace.operations[operation] = self.trace.operations.get(operation, 0) + 1
        if kind != "other":
            self.trace.num_regions += 1
        for tensor in inputs:
            memory = self._storages.get(tensor.untyped_storage()._cdata)
            if memory is None:
                continue
            memory.read_by_product |= kind != "other"
            if kind == "other":
                memory.read_in.add(self.trace.num_regions)

    def _see(self, tensor: Tensor, function: Any) -> None:
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self._storages or key in self._given:
            return
        kind = kind_of(function)
        memory = _Storage(storage.nbytes(), kind, self.trace.num_regions, self._forward)
        self._storages[key] = memory
        self._all.append(memory)
        self._events.append((memory, True))
        self._live += memory.nbytes
        if self._live > self._peak:
            self._peak, self._made_before_peak = self._live, len(self._all)
        weakref.finalize(storage, self._forget, key, memory)

    def _forget(self, key: int, memory: _Storage) -> None:
        if self._storages.pop(key, None) is not None:
            self._live -= memory.nbytes
            self._events.append((memory, False))

    def start_backward(self) -> None:
        self._forward = False
        self.trace.activations = self._live
        self._kept = set(map(id, self._storages.values()))

    def finish(self, gradients: Sequence[Tensor]) -> StepTrace:
        """Divide the peak into its parts; add what compiled code would keep and move."""
        trace = self.trace
        ours = [self._storages.get(gradient.untyped_storage()._cdata) for gradient in gradients]
        before = {id(memory) for memory in self._all[: self._made_before_peak]}
        trace.gradients_at_peak = sum(
            memory.nbytes for memory in ours if memory is not None and id(memory) in before
        )
        trace.activations = min(trace.activations, self._peak - trace.gradients_at_peak)
        trace.workspace = self._peak - trace.gradients_at_peak - trace.activations
        fixed = self._kept | {id(memory) for memory in ours}
        trace.compiled_workspace = highest(
            (memory.nbytes, made)
            for memory, made in self._events
            if id(memory) not in fixed and _is_written(memory)
        )
        for memory in self._all:
            if not _is_written(memory):
                continue
            reads = len(memory.read_in - ({memory.made_in} if memory.made_by == "other" else set()))
            trace.compiled_traffic += memory.nbytes * (reads + (memory.made_by == "other"))
        return trace


def highest(events: Iterable[tuple[int, bool]]) -> int:
    """The most bytes alive at once, from allocations and releases in order."""
    live = peak = 0
    for nbytes, made in events:
        live += nbytes if made else -nbytes
        peak = max(peak, live)
    return peak


def _is_written(memory: _Storage) -> bool:
    if memory.made_by != "other" or memory.read_by_product:
        return True
    return memory.made_forward and bool(memory.read_in - {memory.made_in})


def kind_of(function: Any) -> Kind:
    name = str(function).split(".")[1]
    if name in PRODUCTS or name in CONVOLUTIONS:
        return "product"
    return "attention" if "scaled_dot_product" in name else "other"


def count_flops(function: Any, args: Sequence[Any], outputs: Sequence[Tensor]) -> tuple[Kind, int]:
    """Of products and attention; other operations move bytes."""
    kind = kind_of(function)
    name = str(function).split(".")[1]
    if name == "convolution":
        return kind, 2 * prod(outputs[0].shape) * prod(args[1].shape[1:])
    if name == "convolution_backward":  # one product each for the input and for the filters
        return kind, 2 * sum(args[-1][:2]) * prod(args[0].shape) * prod(args[2].shape[1:])
    if kind == "product":
        first, second = args[PRODUCTS[name]], args[PRODUCTS[name] + 1]
        return kind, 2 * prod(first.shape) * int(second.shape[-1])
    if kind == "attention":
        backward = "backward" in name
        query, key = args[1 if backward else 0], args[2 if backward else 1]
        flops = 4 * prod(query.shape) * int(key.shape[-2])
        return kind, int(BACKWARD_OF_ATTENTION * flops) if backward else flops
    return kind, 0


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors(item)


def _nbytes(tensor: Tensor) -> int:
    """The bytes really read: an expanded dimension is read once."""
    return (
        prod(size for size, step in zip(tensor.shape, tensor.stride(), strict=True) if step)
        * tensor.element_size()
    )


def _without_content(value: Any) -> Any:
    if isinstance(value, Tensor):
        return Form(tuple(value.shape), tuple(value.stride()), value.dtype)
    if isinstance(value, list | tuple):
        return tuple(_without_content(item) for item in value)
    return value
