"""The loss of a translator that edits: packed rows = sentences one by one, and what it draws."""

import pytest
import torch

from headwise.data.token_edits import is_word
from headwise.errors import SettingsError
from headwise.models.parallel.inference import ParallelInference
from headwise.tasks.translation import edit_loss
from headwise.tasks.translation.edit_loss import EditLoss, lay_targets
from headwise.tasks.translation.losses import loss_of
from headwise.text.tokenizer import BOS, EOS, PAD, UNKNOWN
from tests.tasks.translation.test_parallel_losses import PAIRS, batch_of, build, recipe_of

EDITED = {"length": {"kind": "edited", "insertions": 12}}
TARGETS = [target for _, target in PAIRS]


def test_targets_are_laid_out_with_both_ends() -> None:
    """As many rows of the batch as there are, and the shortest targets fill them."""
    for pairs in (PAIRS, [([5], [6])] * 25):
        rows = lay_targets(batch_of(pairs))
        assert rows.shape[1] == 36
        found = [token for row in rows.tolist() for token in row if token != PAD]
        text = ",".join(map(str, found)).removeprefix(f"{BOS},").removesuffix(f",{EOS}")
        sentences = sorted(text.split(f",{EOS},{BOS},"))
        assert sentences == sorted(",".join(map(str, words)) for _, words in pairs)
        assert all(row == sorted(row, key=lambda token: token == PAD) for row in rows.tolist())


@pytest.mark.parametrize("training", [False, True])
def test_packed_rows_equal_sentences_one_by_one(
    training: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In training the same words are deleted of a sentence, wherever it stands."""
    monkeypatch.setattr(
        edit_loss, "draw_deletions", lambda target, generator: is_word(target) & (target % 2 == 0)
    )
    recipe = recipe_of(EDITED)
    model = build(recipe).train(training)
    loss = loss_of(recipe, model)
    assert isinstance(loss, EditLoss)
    packed = loss.loss(batch_of(PAIRS))
    alone = [loss.loss(batch_of([pair], width=8)) for pair in PAIRS]
    assert int(packed.num_tokens) == sum(int(one.num_tokens) for one in alone)
    for sums in ("loss", "negative_log_likelihood"):
        total = sum(float(getattr(one, sums).detach()) for one in alone)
        assert float(getattr(packed, sums).detach()) == pytest.approx(total, rel=1e-5)


def test_a_validation_knows_the_number_of_words_alone() -> None:
    recipe = recipe_of(EDITED)
    model = build(recipe).eval()
    sums = loss_of(recipe, model).loss(batch_of(PAIRS))
    assert int(sums.num_tokens) == sum(map(len, TARGETS))
    inference = ParallelInference(model)
    decoder = inference.policies(inference.read_sources([source for source, _ in PAIRS]))
    total = 0.0
    for number, words in enumerate(TARGETS):
        row = torch.tensor([[BOS, *[UNKNOWN] * len(words), EOS]])
        scores = decoder.fill(row, row.ne(UNKNOWN), torch.tensor([number]))[0, 1:-1]
        total -= float(scores[range(len(words)), words].detach().sum())
    assert float(sums.negative_log_likelihood) == pytest.approx(total, rel=1e-5)
    again = loss_of(recipe, model).loss(batch_of(PAIRS))
    assert sums.loss == again.loss, "no random numbers"


def test_the_words_to_delete_follow_the_seed_and_all_weights_learn() -> None:
    recipe = recipe_of(EDITED)
    model = build(recipe).train()
    loss, batch = loss_of(recipe, model), batch_of(PAIRS * 5, width=128)
    found = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        found.append(loss.loss(batch).loss)
    assert found[0] == found[1] != found[2]
    found[2].backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().sum() > 0, name


def test_label_smoothing_is_that_of_the_words() -> None:
    losses = []
    for smoothing in (0.0, 0.3):
        recipe = recipe_of(EDITED, label_smoothing=smoothing)
        model = build(recipe).eval()
        losses.append(loss_of(recipe, model).loss(batch_of(PAIRS)))
    assert losses[0].negative_log_likelihood == losses[1].negative_log_likelihood
    assert losses[0].loss != losses[1].loss


@pytest.mark.parametrize("kind", ["masked", "glancing"])
def test_an_objective_that_shows_the_target_is_refused(kind: str) -> None:
    refusal = f"{kind} chooses what is shown .* deletes some .* set training.objective.kind=cross_e"
    with pytest.raises(SettingsError, match=refusal):
        recipe_of(EDITED, kind=kind)
