"""Planned steps of every task against real ones: the same parameters, and the memory that a real
step on real data keeps for its backward pass.
"""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from headwise.attention.multi_head import MultiHeadAttention
from headwise.inspecting.part_costs import count_parts, name_part
from headwise.models.segment_memory import Remembering
from headwise.planning.step_tracing import trace_step
from headwise.tasks.any_recipe import AnyRecipe
from headwise.tasks.events import Silence
from headwise.tasks.planned_step import PlannedStep
from headwise.tasks.recipe import recipe_from
from headwise.tasks.run import train
from headwise.tasks.shape_only_modules import make_contentless
from headwise.tasks.table import find_task
from tests.tasks.every_task import ELMO, recipe_of

GPT = {"model": {"kind": "decoder_only", "dim": 8, "heads": 2, "layers": 2}}
MEMORY = {
    "model": GPT["model"]
    | {"position": {"kind": "transformer_xl"}, "memory": {"kind": "segments", "length": 11}},
    "reading": {"kind": "stream", "length": 7},
}
NEAREST = {"kind": "nearest", "layer": 1, "length": 11, "size": 13, "neighbours": 3}
LOOKUP = MEMORY | {"model": MEMORY["model"] | {"memory": NEAREST}}
NEURAL_NGRAM = {"model": {"kind": "neural_ngram", "order": 3, "dim": 7, "hidden": 11}}
STREAM = {"reading": {"kind": "stream", "length": 7}}
CASES: dict[str, tuple[str, dict[str, Any], float]] = {
    "translation": ("translation", {}, 0.05),
    "GPT": ("language_modeling", GPT, 0.05),
    "GPT with a memory": ("language_modeling", MEMORY, 0.05),
    "GPT with a lookup": ("language_modeling", LOOKUP, 0.05),
    "neural n-gram": ("language_modeling", NEURAL_NGRAM, 0.1),
    "recurrent, lines": ("language_modeling", {}, 0.15),
    "recurrent, carried": ("language_modeling", STREAM, 0.15),
    "masked": ("masked_language", {}, 0.05),
    "ELMo": ("bidirectional_language", {}, 0.15),
    "classifier": ("classification", {}, 0.05),
    "tagger": ("tagging", {}, 0.05),
    # Real sentences have several lengths and are padded; planned ones have one.
    "recurrent tagger": ("tagging", {"model": {"kind": "recurrent", "dim": 8}}, 0.3),
    "ELMo tagger": ("tagging", {"model": ELMO}, 0.2),
}
"""Recipe, what is changed in it, and how far the plan may be from a real step."""


def make_case(name: str, folder: Path) -> AnyRecipe:
    word, changes, _ = CASES[name]
    recipe = recipe_of(word, folder)
    return recipe_from({**recipe.model_dump(mode="json"), **changes})


def planned(name: str, folder: Path) -> tuple[AnyRecipe, PlannedStep]:
    """The recipe, and its step with the sizes of a trained model."""
    recipe = make_case(name, folder)
    train(recipe, run=folder / "run")
    return recipe, find_task(recipe).planned_step(recipe, folder / "run" / "model")


def count_kept(module: nn.Module, trainable: Any, batch: Any) -> int:
    """Bytes of the tensors that autograd saves, weights left out."""
    weights = {weight.untyped_storage().data_ptr() for weight in module.parameters()}
    seen: dict[int, int] = {}

    def keep(x: Tensor) -> Tensor:
        storage = x.untyped_storage()
        if storage.data_ptr() not in weights:
            seen[storage.data_ptr()] = storage.nbytes()
        return x

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
        trainable.loss(batch).loss.backward()
    return sum(seen.values())


@pytest.mark.parametrize("name", CASES)
def test_a_planned_step_keeps_what_a_real_one_keeps(name: str, tmp_path: Path) -> None:
    recipe, step = planned(name, tmp_path)
    task = find_task(recipe)
    prepared = task.prepare(recipe, tmp_path / "data", Silence())
    module = task.build(recipe, prepared).train()
    with torch.device("meta"):
        built = step.build(step.num_rows)
    assert sum(weight.numel() for weight in built.parameters()) == sum(
        weight.numel() for weight in module.parameters()
    )
    trial = task.trial(recipe, prepared, module)
    batch = trial.batch_of(trial.num_rows)
    kept = count_kept(module, trial.trainable, batch)
    traced = trace_step(step.step(step.num_rows, bf16=False)).activations
    # A batch of lines holds as many as the small text has; the others have the planned shape.
    tokens = batch.tokens.numel() if hasattr(batch, "fresh") else step.num_rows * step.row
    ratio = (traced / (step.num_rows * step.row)) / (kept / tokens)
    assert ratio == pytest.approx(1, abs=CASES[name][2])


@pytest.mark.parametrize("name", [name for name in CASES if name != "translation"])
def test_parts_add_up_to_the_model(name: str, tmp_path: Path) -> None:
    recipe = make_case(name, tmp_path)
    step = find_task(recipe).planned_step(recipe)
    parts = count_parts(step, length=13)
    module = step.build(1).eval()
    assert sum(part.parameters for part in parts) == sum(
        weight.numel() for weight in module.parameters()
    )
    make_contentless(module)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        step.trainable(module, step.chunk_size(1, cuda=False)).loss(step.batch(1, 13))
    # torch's counter leaves out the attention kernel of a CPU: q·k and weights·v of 8 numbers each.
    layers = [part for part in module.modules() if isinstance(part, MultiHeadAttention)]
    remembered = module.states.shape[2] if isinstance(module, Remembering) else 0
    attention = len(layers) * 4 * 13 * (remembered + 13) * 8
    assert sum(part.flops for part in parts) == counter.get_total_flops() + attention


def test_layers_are_one_part() -> None:
    assert name_part("encoder.3.self_attention.query") == "encoder.*.self_attention"
    assert name_part("filters.0") == "filters.*"
    assert name_part("output") == "output"
