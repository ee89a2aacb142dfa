"""A step on paper against the same step done."""

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from headwise.planning.step_tracing import trace_step
from tests.planning.models import made_recipe, made_step, step_of, with_content


def test_what_forward_leaves_for_backward_is_counted_to_the_byte() -> None:
    step = made_step()
    trace = trace_step(step.step(5, bf16=False))
    saved: dict[int, int] = {}

    def watch(loss: object, module: nn.Module) -> None:
        own = {parameter.untyped_storage().data_ptr() for parameter in module.parameters()}

        def pack(tensor: Tensor) -> Tensor:
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in own:
                saved[storage.data_ptr()] = storage.nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            loss()  # type: ignore[operator]

    with_content(step, 5, watch)
    # The batch's own numbers and the three sums of the loss are in one count and not in the other.
    assert abs(trace.activations - sum(saved.values())) < 8 * 5 * 24 * 10


def test_products_are_those_torch_counts() -> None:
    step = made_step()
    counter = FlopCounterMode(display=False)

    def watch(loss: object, module: nn.Module) -> None:
        with counter:
            loss().backward()  # type: ignore[operator]

    with_content(step, 5, watch)
    counts = counter.get_flop_counts()["Global"]
    expected = sum(
        number
        for name, number in counts.items()
        if str(name) in ("aten.mm", "aten.addmm", "aten.bmm")
    )
    trace = trace_step(step.step(5, bf16=False))
    products = [
        (count, operation)
        for operation, count in trace.operations.items()
        if operation.kind == "product"
    ]
    assert sum(count * operation.flops for count, operation in products) == expected
    assert trace.calls("attention") == 2 * (2 + 2 * 2)


def test_a_hand_worked_case() -> None:
    def step() -> object:
        import contextlib

        layer = nn.Linear(7, 11, bias=False)
        x = torch.zeros(5, 7, requires_grad=True)
        return contextlib.nullcontext((layer, lambda: layer(x).relu().sum()))

    trace = trace_step(step)  # type: ignore[arg-type]
    assert trace.flops == 3 * 2 * 5 * 7 * 11
    # relu keeps its result; the sum is one number; x stood there before.
    assert trace.activations == 4 * (5 * 11 + 1) + 4 * 5 * 7 - 4 * 5 * 7
    assert trace.num_regions == 3
    assert trace.eager_peak >= trace.activations


def test_memory_grows_with_rows_and_shrinks_by_recomputing() -> None:
    few, many = (trace_step(made_step().step(rows, bf16=False)) for rows in (3, 6))
    assert 1.9 < many.activations / few.activations < 2.1
    again = trace_step(made_step(recompute="blocks").step(6, bf16=False))
    assert again.activations < 0.6 * many.activations
    assert again.flops > 1.2 * many.flops


def test_attention_with_dropout_is_fused_on_a_gpu_alone() -> None:
    recipe = made_recipe()
    dropout = recipe.model.dropout.model_copy(update={"attention": 0.2})
    changed = recipe.model_copy(
        update={"model": recipe.model.model_copy(update={"dropout": dropout})}
    )
    step = step_of(changed)
    for bf16 in (False, True):
        written_out = trace_step(step.step(3, bf16=bf16))
        fused = trace_step(step.step(3, bf16=bf16, cuda=True))
        assert written_out.calls("attention") == 0
        assert fused.calls("attention") == 2 * (2 + 2 * 2)
        assert fused.activations < written_out.activations
    without_dropout = trace_step(made_step().step(3, bf16=True, cuda=True))
    assert without_dropout.calls("attention") == 2 * (2 + 2 * 2), (
        "in bf16 too, though a CPU would store the weights"
    )
