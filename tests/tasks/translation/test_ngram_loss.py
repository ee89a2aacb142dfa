"""n-grams as an objective: what is counted, what is refused, and a run that goes on with it."""

import json
from itertools import combinations, pairwise, product
from pathlib import Path

import pytest
import torch

from headwise.decoding.parallel.ctc import collapse
from headwise.errors import CheckpointError, SettingsError
from headwise.models.parallel.inference import ParallelInference
from headwise.models.parallel.translator import ParallelTranslator
from headwise.tasks.run import train
from headwise.tasks.translation.alignment_loss import AlignmentLoss
from headwise.tasks.translation.losses import loss_of
from headwise.tasks.translation.ngram_loss import NgramLoss
from headwise.text.tokenizer import BOS, EOS
from tests.tasks.tiny import tiny_recipe, train_tiny
from tests.tasks.translation.test_parallel_losses import (
    CTC,
    GRAPH,
    PAIRS,
    batch_of,
    build,
    recipe_of,
)
from tests.tasks.translation.test_parallel_recipes import CTC as CTC_RUN
from tests.tasks.translation.test_parallel_recipes import GRAPH as GRAPH_RUN

SOURCE, TARGET = [4, 5], [7, 7, 8]
VOCAB = 11


def trained_loss(model: ParallelTranslator, structure: dict, pairs: list, **objective: int):
    recipe = recipe_of(structure)
    training = recipe.training.model_copy(update={"objective": tiny_ngrams(**objective)})
    loss = loss_of(recipe.model_copy(update={"training": training}), model)
    assert isinstance(loss, NgramLoss)
    return loss.loss(batch_of(pairs))


def tiny_ngrams(**objective: int):
    words = [f"training.objective.{key}={value}" for key, value in objective.items()]
    recipe = tiny_recipe(*CTC_RUN, "training.objective=null", NGRAMS, *words)
    return recipe.training.objective


NGRAMS = "training.objective={kind: ngrams}"


def test_ctc_counts_pairs_over_all_alignments() -> None:
    model = build(recipe_of(CTC))
    model.train()
    found = trained_loss(model, CTC, [([4], TARGET)])
    inference = ParallelInference(model)
    scores, count = inference.predict_upsampled(inference.read_sources([[4]]))
    table = scores[0].double()
    model.train()
    hits = dict.fromkeys(pairwise(TARGET), 0.0)
    total = 0.0
    assert int(count) == 4
    for symbols in product(range(VOCAB), repeat=4):
        written = collapse(symbols)
        probability = float(table[range(len(symbols)), list(symbols)].sum().exp())
        total += probability * max(len(written) - 1, 0)
        for pair in pairwise(written):
            if pair in hits:
                hits[pair] += probability
    f1 = 2 * sum(min(one, 1.0) for one in hits.values()) / (total + len(TARGET) - 1)
    assert int(found.num_tokens) == len(TARGET) + 1
    assert found.loss.item() == pytest.approx(-f1 * (len(TARGET) + 1), rel=1e-4)


def test_a_graph_counts_pairs_over_all_paths() -> None:
    model = build(recipe_of(GRAPH))
    model.train()
    found = trained_loss(model, GRAPH, [(SOURCE, TARGET)])
    inference = ParallelInference(model)
    scores, links, count = inference.predict_graph(inference.read_sources([SOURCE]))
    wanted = list(pairwise([BOS, *TARGET, EOS]))
    hits, total, length = dict.fromkeys(wanted, 0.0), 0.0, 0.0
    last = int(count) - 1
    for number in range(last):
        for inner in combinations(range(1, last), number):
            path = [0, *inner, last]
            probability = float(sum(links[0, a, b] for a, b in pairwise(path)).exp())
            total += probability * (len(path) - 1)
            length += probability * len(path)
            for (a, b), (v, w) in product(pairwise(path), set(wanted)):
                hits[v, w] += probability * float((scores[0, a, v] + scores[0, b, w]).exp())
    precision = sum(min(one, wanted.count(pair)) for pair, one in hits.items()) / total
    brevity = min(1.0, float(torch.tensor(1 - (len(TARGET) + 2) / length).exp()))
    assert found.loss.item() == pytest.approx(-precision * brevity * (len(TARGET) + 1), rel=1e-4)


@pytest.mark.parametrize("structure", [CTC, GRAPH], ids=["ctc", "graph"])
def test_rows_equal_sentences_and_validations_know_the_likelihood(structure: dict) -> None:
    recipe = recipe_of(structure)
    model = build(recipe)
    model.train()
    packed = trained_loss(model, structure, PAIRS)
    alone = [trained_loss(model, structure, [pair]) for pair in PAIRS]
    assert packed.loss.item() == pytest.approx(sum(one.loss.item() for one in alone), rel=1e-5)
    assert int(packed.num_tokens) == sum(int(one.num_tokens) for one in alone)
    packed.loss.backward()
    assert all(
        parameter.grad is None or parameter.grad.isfinite().all()
        for parameter in model.parameters()
    )
    plain = AlignmentLoss(model, recipe)
    expected = plain.loss(batch_of(PAIRS)).loss.item()
    assert float(packed.negative_log_likelihood) == pytest.approx(expected)
    model.eval()
    measured = trained_loss(model, structure, PAIRS)
    assert measured.loss.item() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], r"ngrams counts n-grams over all alignments .* only model\.kind=parallel with"),
        (
            ["model.kind=parallel", "decoding=null", "decoding.kind=one_pass"],
            r"model\.structure\.kind=ctc or graph has",
        ),
        ([*CTC_RUN, "training.objective.order=3"], r"order=3, but .*structure\.kind=ctc"),
    ],
)
def test_what_has_no_alignments_is_refused(words: list[str], message: str) -> None:
    kept = [word for word in words if not word.startswith("training.objective={")]
    with pytest.raises(SettingsError, match=message):
        tiny_recipe("training.objective=null", "training.objective.kind=ngrams", *kept)


@pytest.mark.parametrize("words", [CTC_RUN, GRAPH_RUN], ids=["ctc", "graph"])
def test_a_run_goes_on_with_it(words: tuple[str, ...], tmp_path: Path) -> None:
    train_tiny(tmp_path / "first", words)
    kept = [word for word in words if not word.startswith("training.objective")]
    tuned = [*kept, "training.objective=null", NGRAMS, f"model.start_from={tmp_path / 'first'}"]
    train(tiny_recipe(*tuned), run=tmp_path / "second")
    log = (tmp_path / "second/log.jsonl").read_text("utf-8")
    lines = [json.loads(line) for line in log.splitlines()]
    losses = [line["loss"] for line in lines if line.get("loss") is not None and "nll" in line]
    assert losses
    assert all(-1 <= loss <= 0 for loss in losses)
    wider = [*tuned, "model.dim=32"]
    with pytest.raises(CheckpointError, match=r"another model \(model\.dim=16 there, 32 here\)"):
        train(tiny_recipe(*wider), run=tmp_path / "third")
