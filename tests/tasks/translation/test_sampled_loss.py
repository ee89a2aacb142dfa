"""Scheduled sampling: teacher forcing at share 1, the model's own words at share 0, packed rows.

Single sentences are computed by hand: a loop over positions that reads what it predicted.
"""

from typing import Any

import pytest
import torch

from headwise.data.packing import PackedBatch, build_rows
from headwise.data.shards import as_ragged
from headwise.errors import SettingsError
from headwise.models.choices import build_model
from headwise.models.encoder_decoder import EncoderDecoder
from headwise.models.recurrent.translator import RecurrentTranslator
from headwise.models.steppers import make_stepper
from headwise.models.translation_model import TranslationModel
from headwise.settings import check_settings
from headwise.tasks.translation.losses import loss_of
from headwise.tasks.translation.objective import TranslationLoss
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.text.tokenizer import BOS, EOS, PAD

VOCAB = 23
PAIRS = [([4, 5, 6], [7, 8, 9, 9]), ([7], [4, 4]), ([8, 9, 10, 4, 5], [6, 16, 6, 5, 10, 8, 19])]
TRANSFORMER: dict[str, Any] = {
    "kind": "encoder_decoder",
    "dim": 12,
    "encoder": {"layers": 1, "heads": 2},
    "decoder": {"layers": 2, "heads": 2},
    "feed_forward": {"kind": "relu", "hidden": 17},
    "dropout": {"residual": 0.0, "embedding": 0.0},
}
RECURRENT: dict[str, Any] = {
    "kind": "recurrent",
    "dim": 14,
    "layers": 1,
    "dropout": {"embedding": 0.0, "hidden": 0.0},
}
BAHDANAU = RECURRENT | {"attention": {"kind": "bahdanau"}}
FIXED = RECURRENT | {"attention": {"kind": "none"}, "cell": "gru"}
MODELS = {"transformer": TRANSFORMER, "luong": RECURRENT, "bahdanau": BAHDANAU, "fixed": FIXED}
ONLY_OWN = {"kind": "linear", "start": 0.0, "end": 0.0}
ONLY_GOLD = {"kind": "linear", "start": 1.0, "end": 1.0}
HALF = {"kind": "linear", "start": 0.5, "end": 0.5}
IN_STEPS = {"kind": "sequential"}
PREDICTIONS: list[dict[str, Any]] = [{"kind": "argmax"}, {"kind": "sampled"}, {"kind": "top_k"}]


def recipe_of(model: dict[str, Any], **objective: Any) -> TranslationRecipe:
    """A recipe whose data are never read."""
    return check_settings(
        TranslationRecipe,
        {
            "data": {"source": "en", "target": "de", "train": "nowhere"},
            "model": model,
            "training": {"objective": {"kind": "scheduled_sampling", **objective}, "steps": 10},
        },
    )


def build(recipe: TranslationRecipe) -> TranslationModel:
    generator = torch.Generator().manual_seed(5)
    model = build_model(recipe.model, source_size=VOCAB, target_size=VOCAB, generator=generator)
    for parameter in model.parameters():  # far from uniform, so that predictions differ
        parameter.data *= 3
    return model.double()


def batch_of(pairs: list[tuple[list[int], list[int]]], *, width: int = 24) -> PackedBatch:
    source, target = (as_ragged([pair[side] for pair in pairs]) for side in (0, 1))
    return build_rows(source, target, source_row=width, target_row=width).batch()


def loss_and_gradients(loss: Any, batch: PackedBatch) -> tuple[torch.Tensor, list[torch.Tensor]]:
    loss.module.zero_grad()
    torch.manual_seed(11)
    value = loss.loss(batch).loss
    value.backward()
    return value.detach(), [weight.grad.clone() for weight in loss.module.parameters()]


@torch.no_grad()
def states(model: TranslationModel, source: list[int], tokens: list[int]) -> torch.Tensor:
    """Hidden states of one unpacked sentence."""
    x, y = torch.tensor([[*source, EOS]]), torch.tensor([tokens])
    return model(
        x,
        y,
        source_segment=torch.ones_like(x),
        target_segment=torch.ones_like(y),
        source_position=torch.arange(x.shape[1])[None],
        target_position=torch.arange(y.shape[1])[None],
    )


def best_token(logits: torch.Tensor) -> int:
    return int(logits.index_fill(0, torch.tensor([PAD, BOS, EOS]), -torch.inf).argmax())


@torch.no_grad()
def loss_along(model: TranslationModel, pairs: Any, inputs: list[list[int]], eps: float) -> float:
    total = 0.0
    for (source, target), tokens in zip(pairs, inputs, strict=True):
        scores = model.logits(states(model, source, tokens)[0]).log_softmax(-1)
        gold = scores.gather(1, torch.tensor([*target, EOS])[:, None]).sum()
        total -= float((1 - eps) * gold + eps * scores.mean(-1).sum())
    return total


@pytest.mark.parametrize("prediction", PREDICTIONS, ids=lambda one: one["kind"])
@pytest.mark.parametrize("kind", ["transformer", "luong", "bahdanau", "fixed"])
def test_only_gold_tokens_are_teacher_forcing_to_the_bit(
    kind: str, prediction: dict[str, Any]
) -> None:
    recipe = recipe_of(MODELS[kind], gold=ONLY_GOLD, prediction=prediction)
    model = build(recipe).train()
    batch = batch_of(PAIRS)
    found, gradients = loss_and_gradients(loss_of(recipe, model), batch)
    expected, wanted = loss_and_gradients(TranslationLoss(model, 0.1), batch)
    assert torch.equal(found, expected)
    assert all(torch.equal(one, other) for one, other in zip(gradients, wanted, strict=True))


@pytest.mark.parametrize("kind", ["luong", "bahdanau"])
def test_steps_that_read_gold_tokens_are_teacher_forcing(kind: str) -> None:
    """Without the short cut of recurrent models: a share just below 1, so that all coins are gold
    here."""
    almost = {"kind": "linear", "start": 1 - 1e-7, "end": 1 - 1e-7}
    recipe = recipe_of(MODELS[kind], gold=almost, mixing=IN_STEPS)
    model = build(recipe).train()
    found, gradients = loss_and_gradients(loss_of(recipe, model), batch_of(PAIRS))
    expected, wanted = loss_and_gradients(TranslationLoss(model, 0.1), batch_of(PAIRS))
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(gradients, wanted)


@pytest.mark.parametrize("kind", ["transformer", "luong"])
def test_one_pass_reads_the_predictions_of_the_right_tokens(kind: str) -> None:
    recipe = recipe_of(MODELS[kind], gold=ONLY_OWN)
    model = build(recipe)
    inputs = []
    for source, target in PAIRS:
        logits = model.logits(states(model.eval(), source, [BOS, *target])[0])
        inputs.append([BOS, *[best_token(row) for row in logits[:-1]]])
    assert inputs != [[BOS, *target] for _, target in PAIRS]
    found, _ = loss_and_gradients(loss_of(recipe, model.train()), batch_of(PAIRS))
    assert float(found) == pytest.approx(loss_along(model, PAIRS, inputs, 0.1), rel=1e-6)


@torch.no_grad()
def mixture_loss(model: EncoderDecoder) -> float:
    total = 0.0
    for source, target in PAIRS:
        logits = model.logits(states(model, source, [BOS, *target])[0])
        logits[:, :3] = -torch.inf
        best, token = logits.softmax(-1).topk(3)
        table = model.target_embedding.table.weight
        mean = (best[..., None] * table[token]).sum(1) / best.sum(1, keepdim=True)
        vectors = torch.cat([table[BOS][None], mean[:-1]])
        position = torch.arange(len(vectors))[None]
        x = model.target_embedding._place(vectors[None], position, length=len(vectors))
        read = torch.tensor([[*source, EOS]])
        ones = torch.ones_like(read)
        memory = model.encode(read, segment=ones, position=torch.arange(read.shape[1])[None])
        hidden = model.decode_embedded(
            x,
            memory,
            source_segment=ones,
            target_segment=torch.ones_like(position),
            target_position=position,
        )
        scores = model.logits(hidden[0]).log_softmax(-1)
        gold = scores.gather(1, torch.tensor([*target, EOS])[:, None]).sum()
        total -= float(0.9 * gold + 0.1 * scores.mean(-1).sum())
    return total


def test_a_mixture_is_the_weighted_mean_of_the_likely_embeddings() -> None:
    recipe = recipe_of(TRANSFORMER, gold=ONLY_OWN, prediction={"kind": "top_k", "k": 3})
    model = build(recipe)
    assert isinstance(model, EncoderDecoder)
    total = mixture_loss(model.eval())
    found, _ = loss_and_gradients(loss_of(recipe, model.train()), batch_of(PAIRS))
    assert float(found) == pytest.approx(total, rel=1e-6)


def greedy_inputs(model: TranslationModel) -> list[list[int]]:
    """What a search reads that may not end before the reference does."""
    stepper, inputs = make_stepper(model), []
    for source, target in PAIRS:
        state = stepper.start([source], width=1, max_length=20)
        tokens = [BOS]
        for _ in target:
            scores, state = stepper.step(state, torch.tensor(tokens[-1:]))
            tokens.append(best_token(scores[0]))
        inputs.append(tokens)
    return inputs


@pytest.mark.parametrize("kind", ["luong", "bahdanau", "fixed"])
def test_own_steps_read_the_greedy_output(kind: str) -> None:
    recipe = recipe_of(MODELS[kind], gold=ONLY_OWN, mixing=IN_STEPS)
    model = build(recipe)
    expected = loss_along(model, PAIRS, greedy_inputs(model), 0.1)
    found, _ = loss_and_gradients(loss_of(recipe, model.train()), batch_of(PAIRS))
    assert float(found) == pytest.approx(expected, rel=1e-6)


def test_as_many_passes_as_tokens_read_the_greedy_output_of_a_transformer() -> None:
    recipe = recipe_of(TRANSFORMER, gold=ONLY_OWN, mixing={"kind": "passes", "count": 7})
    model = build(recipe)
    expected = loss_along(model, PAIRS, greedy_inputs(model), 0.1)
    found, _ = loss_and_gradients(loss_of(recipe, model.train()), batch_of(PAIRS))
    assert float(found) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("prediction", PREDICTIONS, ids=lambda one: one["kind"])
def test_passes_end_with_the_inputs_of_single_steps(prediction: dict[str, Any]) -> None:
    """The same random numbers, half of the tokens gold."""
    found = []
    for mixing in (IN_STEPS, {"kind": "passes", "count": 7}):
        recipe = recipe_of(BAHDANAU, gold=HALF, mixing=mixing, prediction=prediction)
        found.append(loss_and_gradients(loss_of(recipe, build(recipe).train()), batch_of(PAIRS)))
    torch.testing.assert_close(found[0], found[1])
    forced = TranslationLoss(build(recipe), 0.1).loss(batch_of(PAIRS)).loss
    assert float(found[0][0]) != pytest.approx(forced.item(), rel=1e-4)


def test_neighbours_in_a_row_do_not_matter() -> None:
    recipe = recipe_of(TRANSFORMER, gold=ONLY_OWN, mixing={"kind": "passes", "count": 2})
    loss = loss_of(recipe, build(recipe).train())
    together, _ = loss_and_gradients(loss, batch_of(PAIRS))
    alone = [loss_and_gradients(loss, batch_of([pair], width=9))[0] for pair in PAIRS]
    assert float(together) == pytest.approx(sum(map(float, alone)), rel=1e-6)


@pytest.mark.parametrize("kind", ["transformer", "luong"])
def test_a_validation_reads_the_right_tokens(kind: str) -> None:
    recipe = recipe_of(MODELS[kind], gold=ONLY_OWN)
    model = build(recipe).eval()
    found = loss_of(recipe, model).loss(batch_of(PAIRS))
    assert torch.equal(found.loss, TranslationLoss(model, 0.1).loss(batch_of(PAIRS)).loss)
    assert not model.training


@pytest.mark.parametrize("kind", ["transformer", "luong"])
def test_the_share_follows_the_number_of_the_update(kind: str) -> None:
    """From teacher forcing in the first update to own tokens alone after ten."""
    recipe = recipe_of(MODELS[kind], gold={"kind": "linear", "end": 0.0})
    model = build(recipe).train()
    assert isinstance(model, EncoderDecoder | RecurrentTranslator)
    loss, batch = loss_of(recipe, model), batch_of(PAIRS)
    model.training_step.before_step(1, key="")
    first, _ = loss_and_gradients(loss, batch)
    assert torch.equal(first, TranslationLoss(model, 0.1).loss(batch).loss)
    model.training_step.before_step(11, key="")
    last, _ = loss_and_gradients(loss, batch)
    own = recipe_of(MODELS[kind], gold=ONLY_OWN)
    assert torch.equal(last, loss_and_gradients(loss_of(own, model), batch)[0])


def test_the_same_seed_gives_the_same_inputs() -> None:
    recipe = recipe_of(TRANSFORMER, gold=HALF, prediction={"kind": "sampled"})
    loss = loss_of(recipe, build(recipe).train())
    once, again = (loss_and_gradients(loss, batch_of(PAIRS)) for _ in range(2))
    assert torch.equal(once[0], again[0])
    torch.manual_seed(12)
    assert not torch.equal(once[0], loss.loss(batch_of(PAIRS)).loss)


@pytest.mark.parametrize(
    ("model", "objective", "message"),
    [
        ({"kind": "parallel"}, {}, "predicts all tokens at once; set model.kind=encoder_decoder"),
        (TRANSFORMER, {"mixing": IN_STEPS}, "only model.kind=recurrent does"),
        (TRANSFORMER | {"draft_heads": {"count": 2}}, {}, "draft heads and draft decoders learn"),
        (RECURRENT, {"gold": {"kind": "exponential", "base": 1.5}}, "less than 1"),
    ],
)
def test_what_cannot_learn_so_is_refused(
    model: dict[str, Any], objective: dict[str, Any], message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        recipe_of(model, **objective)


def test_sharded_weights_are_refused() -> None:
    data = recipe_of(TRANSFORMER).model_dump(mode="json")
    data["training"]["parallel"] = {"kind": "sharded"}
    with pytest.raises(SettingsError, match=r"set training\.parallel\.kind=replicated"):
        check_settings(TranslationRecipe, data)
