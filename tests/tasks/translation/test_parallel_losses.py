"""The losses of parallel translators: packed rows = sentences one by one, and both objectives."""

from itertools import combinations, pairwise, product
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from headwise.data.packing import PackedBatch, build_rows
from headwise.data.shards import as_ragged
from headwise.decoding.parallel.ctc import collapse
from headwise.models.choices import build_model
from headwise.models.parallel.inference import ParallelInference
from headwise.models.parallel.segment_spans import upsample
from headwise.models.parallel.translator import ParallelTranslator
from headwise.settings import check_settings
from headwise.tasks.translation.alignment_loss import AlignmentLoss, Rows
from headwise.tasks.translation.losses import loss_of
from headwise.tasks.translation.parallel_loss import ParallelLoss
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.text.tokenizer import BOS, EOS, PAD
from headwise.training.parallel.token_scores import BestTokens

VOCAB = 11
PAIRS = [([4, 5, 6], [7, 8, 9, 9]), ([7], [4, 4]), ([8, 9, 10, 4, 5], [6, 6, 6, 5, 10, 8, 9])]
CTC = {"length": {"kind": "upsampled", "factor": 2}, "structure": {"kind": "ctc"}}
GRAPH = {
    "length": {"kind": "upsampled", "factor": 3},
    "structure": {"kind": "graph", "link_heads": 2},
}
KINDS: dict[str, dict[str, Any]] = {
    "classifier": {},
    "copy": {"input": {"kind": "copy"}},
    "ctc": CTC,
    "graph": GRAPH,
}


def recipe_of(model: dict[str, Any], **objective: Any) -> TranslationRecipe:
    """A recipe whose data are never read."""
    smoothing = {} if "structure" not in model else {"label_smoothing": 0.0}
    return check_settings(
        TranslationRecipe,
        {
            "data": {"source": "en", "target": "de", "train": "nowhere"},
            "model": {
                "kind": "parallel",
                "dim": 12,
                "encoder": {"layers": 1, "heads": 2},
                "decoder": {"layers": 1, "heads": 2},
                "feed_forward": {"kind": "relu", "hidden": 17},
                "dropout": {"residual": 0.0, "embedding": 0.0},
                **model,
            },
            "training": {"objective": {**smoothing, **objective}, "steps": 10},
        },
    )


def build(recipe: TranslationRecipe) -> ParallelTranslator:
    generator = torch.Generator().manual_seed(5)
    model = build_model(recipe.model, source_size=VOCAB, target_size=VOCAB, generator=generator)
    assert isinstance(model, ParallelTranslator)
    return model.double()


def batch_of(pairs: list[tuple[list[int], list[int]]], *, width: int = 24) -> PackedBatch:
    table = build_rows(
        as_ragged([source for source, _ in pairs]),
        as_ragged([target for _, target in pairs]),
        source_row=width,
        target_row=width,
    )
    return table.batch()


@pytest.mark.parametrize("kind", KINDS)
def test_packed_rows_equal_sentences_one_by_one(kind: str) -> None:
    recipe = recipe_of(KINDS[kind])
    model = build(recipe)
    model.eval()
    loss = loss_of(recipe, model)
    packed = loss.loss(batch_of(PAIRS))
    alone = [loss.loss(batch_of([pair], width=8)) for pair in PAIRS]
    assert int(packed.num_tokens) == sum(int(one.num_tokens) for one in alone)
    total = sum(float(one.negative_log_likelihood) for one in alone)
    assert float(packed.negative_log_likelihood) == pytest.approx(total, rel=1e-6)


def test_the_end_is_given_and_costs_nothing() -> None:
    recipe = recipe_of({"length": {"kind": "classifier", "weight": 0.0}}, label_smoothing=0.0)
    model = build(recipe)
    model.eval()
    sums = ParallelLoss(model, recipe).loss(batch_of(PAIRS))
    assert int(sums.num_tokens) == sum(len(target) for _, target in PAIRS)
    torch.testing.assert_close(sums.loss, sums.negative_log_likelihood)


def test_the_length_costs_its_weight_for_each_sentence() -> None:
    sums = []
    for weight in (0.0, 0.5):
        recipe = recipe_of({"length": {"kind": "classifier", "weight": weight}})
        model = build(recipe)
        model.eval()
        sums.append(ParallelLoss(model, recipe).loss(batch_of(PAIRS)))
    assert model.length is not None
    batch = batch_of(PAIRS)
    memory = model.encode(
        batch.source, segment=batch.source_segment, position=batch.source_position
    )
    of_length, count = model.length.loss(
        memory,
        source_segment=batch.source_segment,
        source_position=batch.source_position,
        target_segment=batch.target_segment,
    )
    expected = 0.5 * float(of_length.detach()) * float(sums[0].num_tokens) / int(count)
    assert float((sums[1].loss - sums[0].loss).detach()) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("objective", ["masked", "glancing"])
def test_what_is_shown_is_not_predicted(objective: str) -> None:
    recipe = recipe_of({}, kind=objective)
    model = build(recipe)
    model.train()
    loss, batch = ParallelLoss(model, recipe), batch_of(PAIRS)
    everything = int((batch.target_segment > 0).sum()) - len(PAIRS)
    counts = set()
    for seed in range(20):
        torch.manual_seed(seed)
        sums = loss.loss(batch)
        counts.add(int(sums.num_tokens))
        assert sums.loss.requires_grad
        assert model.training
    assert max(counts) <= everything
    assert min(counts) < everything


def test_glancing_shows_less_as_training_goes_on() -> None:
    recipe = recipe_of({}, kind="glancing", start=1.0, end=0.0)
    model = build(recipe)
    model.train()
    loss, batch = ParallelLoss(model, recipe), batch_of(PAIRS)
    predicted = []
    for step in (0, 5, 10):
        model.training_step.before_step(step, key="")
        torch.manual_seed(1)
        predicted.append(int(loss.loss(batch).num_tokens))
    assert predicted[0] < predicted[1] < predicted[2]
    assert predicted[2] == sum(len(target) for _, target in PAIRS)


def all_alignments(table: Tensor, target: list[int]) -> float:
    """-log of the sum over the alignments that collapse to the target, by enumeration."""
    total = 0.0
    for alignment in product({PAD, *target}, repeat=len(table)):
        if list(collapse(alignment)) == target:
            total += float(table[range(len(table)), list(alignment)].sum().exp())
    return -float(np.log(total))


def test_ctc_sums_over_all_alignments() -> None:
    recipe = recipe_of(CTC)
    model = build(recipe)
    model.eval()
    source, target = [4, 5], [7, 7, 8]
    batch = batch_of([(source, target)], width=8)
    loss = AlignmentLoss(model, recipe)
    found = loss.loss(batch)
    memory = model.encode(
        batch.source, segment=batch.source_segment, position=batch.source_position
    )
    inference = ParallelInference(model)
    scores, count = inference.predict_upsampled(inference.read_sources([source]))
    assert memory.shape[0] == 1
    assert int(count) == 6
    assert float(found.loss.detach()) == pytest.approx(all_alignments(scores[0], target), rel=1e-5)


def test_the_graph_sums_over_all_paths() -> None:
    recipe = recipe_of(GRAPH)
    model = build(recipe)
    model.eval()
    source, target = [4, 5], [7, 7, 8]
    found = AlignmentLoss(model, recipe).loss(batch_of([(source, target)], width=8))
    inference = ParallelInference(model)
    scores, links, count = inference.predict_graph(inference.read_sources([source]))
    labels, last, total = [BOS, *target, EOS], int(count) - 1, 0.0
    for inner in combinations(range(1, last), len(target)):
        path = [0, *inner, last]
        value = sum(float(scores[0, v, w]) for v, w in zip(path, labels, strict=True))
        value += sum(float(links[0, a, b]) for a, b in pairwise(path))
        total += float(np.exp(value))
    assert float(found.loss.detach()) == pytest.approx(-float(np.log(total)), rel=1e-5)


@pytest.mark.parametrize("kind", ["ctc", "graph"])
def test_glancing_along_an_alignment_shows_right_tokens_in_order(kind: str) -> None:
    recipe = recipe_of(KINDS[kind], kind="glancing", start=1.0, end=1.0)
    model = build(recipe)
    model.train()
    loss, batch = AlignmentLoss(model, recipe), batch_of(PAIRS)
    assert model.factor is not None
    rows = Rows(*upsample(batch.source_segment, batch.source_position, factor=model.factor))
    memory = model.encode(
        batch.source, segment=batch.source_segment, position=batch.source_position
    )
    known = loss.glance(batch, rows, memory.detach())
    assert model.training
    num_shown = 0
    for row in range(batch.num_rows):
        for number in range(1, int(batch.source_segment[row].max()) + 1):
            target = batch.target_output[row][batch.target_segment[row] == number].tolist()
            shown = [t for t in known[row][rows.segment[row] == number].tolist() if t != PAD]
            num_shown += len(shown)
            labels = [BOS, *target] if kind == "graph" else target[:-1]
            rest = iter(labels)
            merged = shown if kind == "graph" else list(collapse(shown))
            assert all(token in rest for token in merged), "a subsequence of the target"
    assert num_shown > 0
    sums = loss.loss(batch)
    assert torch.isfinite(sums.loss)
    sums.loss.backward()
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    assert all(torch.isfinite(gradient).all() for gradient in gradients)


def test_glancing_draws_among_blanks_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of all wrong positions is half of the tokens, although there are as many blanks."""
    recipe = recipe_of(KINDS["ctc"], kind="glancing", start=0.5, end=0.5)
    model = build(recipe)
    pairs = [PAIRS[0], PAIRS[2]]  # those that fit
    loss, batch = AlignmentLoss(model.train(), recipe), batch_of(pairs)
    assert model.factor is not None
    rows = Rows(*upsample(batch.source_segment, batch.source_position, factor=model.factor))
    memory = model.encode(
        batch.source, segment=batch.source_segment, position=batch.source_position
    )
    monkeypatch.setattr(  # a first pass that predicts nothing rightly, not even a blank
        "headwise.tasks.translation.alignment_loss.best_tokens",
        lambda hidden, weight, bias: BestTokens(
            torch.full((len(hidden),), BOS), torch.zeros(len(hidden))
        ),
    )
    torch.manual_seed(1)
    drawn = [loss.glance(batch, rows, memory.detach()).ne(PAD).sum() for _ in range(60)]
    num_labels = sum(len(target) for _, target in pairs)
    assert 0.4 < float(torch.stack(drawn).double().mean()) / num_labels < 0.6


@pytest.mark.parametrize("kind", ["ctc", "graph"])
def test_a_target_that_does_not_fit_counts_nothing(kind: str) -> None:
    recipe = recipe_of(KINDS[kind])
    model = build(recipe)
    model.eval()
    loss = AlignmentLoss(model, recipe)
    too_long = ([4], [5, 6, 7, 8, 9, 10, 4])
    sums = loss.loss(batch_of([too_long, PAIRS[0]]))
    expected = loss.loss(batch_of([PAIRS[0]]))
    assert int(sums.num_tokens) == int(expected.num_tokens)
    assert float(sums.loss.detach()) == pytest.approx(float(expected.loss.detach()), rel=1e-6)
