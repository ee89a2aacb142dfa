"""How long a training will take on the CPU at hand, in about a second: a few rows are learnt from, for nothing but the clock.

A step grows with its rows, so batches of 1, 2, 4 … rows are timed until one takes long enough to be seen, and the line through the last
two is drawn out to the whole batch; the optimiser moves 44 bytes a weight (planning/cost_prediction.py).

    update = accumulation · (a + b · rows) + optimiser

`headwise plan` takes ten times as long and says where the time goes. On a GPU nothing is said: code is compiled and recorded there, which
takes longer than this may. Tested with a step whose time is known.
"""

import time
from collections.abc import Callable

import torch

from headwise.data.packing import PackedBatch
from headwise.language import say
from headwise.models.translation_model import TranslationModel
from headwise.planning.cost_prediction import OPTIMIZER_BYTES
from headwise.planning.machine_timing import measure_bandwidth
from headwise.planning.units import clock_of
from headwise.tasks.recipe import Recipe
from headwise.tasks.translation.objective import RowShape, TranslationTask
from headwise.training.precision import autocast, choose_device, choose_dtype

ENOUGH = 0.3
"""Seconds of a step that need no longer one: the clock and what else the machine does are small beside it."""
TOO_LONG = 5.0
"""A single row that takes this long says all there is to say, if too much of it."""
LONG = 3600.0
"""Trainings beyond this are told where to look for help."""


def expect_seconds(recipe: Recipe, model: TranslationModel, shape: RowShape) -> float | None:
    """Of all updates; None on a GPU. The model is left as it was, gradients and random numbers too."""
    device = choose_device(recipe.training.device)
    if device.type != "cpu":
        return None
    training = recipe.training
    task = TranslationTask(model, training.objective.label_smoothing)
    dtype = choose_dtype(training.precision, device)

    def step(rows: int) -> None:
        with autocast(device, dtype):
            task.loss(_full_rows(rows, shape)).loss.backward()

    was_training = model.training
    model.train()
    with torch.random.fork_rng(devices=[]):
        batch = time_rows(step, shape.rows)
    model.train(was_training)
    model.zero_grad(set_to_none=True)
    learning = sum(weight.numel() for weight in model.parameters() if weight.requires_grad)
    optimizer = OPTIMIZER_BYTES * learning / measure_bandwidth(device)
    return training.steps * (training.accumulation * batch + optimizer)


def time_rows(
    step: Callable[[int], object], rows: int, *, now: Callable[[], float] = time.perf_counter
) -> float:
    """Seconds of a step with so many rows, from smaller ones where those say enough."""

    def timed(count: int) -> float:
        began = now()
        step(count)
        return now() - began

    first = timed(
        1
    )  # libraries are loaded and memory is found: of a short step that is most of the time
    if first > TOO_LONG:
        return first * rows
    known = [(1, first if first > ENOUGH else timed(1))]
    while known[-1][0] < rows and known[-1][1] < ENOUGH:
        count = min(rows, 2 * known[-1][0])
        known.append((count, timed(count)))
    if known[-1][0] >= rows:
        return known[-1][1]
    if len(known) == 1:
        known.append((2, timed(2)))
    (small, fast), (large, slow) = known[-2:]
    return slow + (rows - large) * max(0.0, slow - fast) / (large - small)


def _full_rows(rows: int, shape: RowShape) -> PackedBatch:
    source, target = (
        torch.ones(rows, length, dtype=torch.int64) for length in (shape.source, shape.target)
    )
    return PackedBatch(source, source, source, target, target, target, target)


def describe_duration(seconds: float, recipe_name: str) -> str:
    """One line for people."""
    took = clock_of(seconds)
    if seconds < LONG:
        return say(f"about {took} of training on this machine", f"在本机训练约需 {took}")
    return say(
        f"about {took} of training on this machine; `headwise plan {recipe_name}` says why and what helps",
        f"在本机训练约需 {took}；`headwise plan {recipe_name}` 说明原因与改进办法",
    )
