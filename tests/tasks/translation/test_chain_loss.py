"""The loss of a chain through a recipe: enumeration of all targets, packed = one by one."""

import itertools

import pytest
import torch

from headwise.tasks.translation.parallel_loss import ParallelLoss
from tests.tasks.translation.parallel_models import Pair, draw_pairs, make_loss, pack

VOCABULARY = 7
ONLY_CHAIN = ("model.length.weight=0",)
LENGTHS = [(3, 3), (5, 2), (2, 1), (4, 3)]


def structure(**changes: object) -> str:
    words = {"kind": "crf", "rank": 3, "candidates": VOCABULARY, "token_weight": 0, **changes}
    return "model.structure={" + ", ".join(f"{k}: {v}" for k, v in words.items()) + "}"


def enumerate_loss(learner: ParallelLoss, pair: Pair) -> torch.Tensor:
    """-log p of a target: the scores of every sequence of its length, one after the other."""
    module, (_, target) = learner.module, pair
    batch = pack([pair], row=16)
    memory = module.encode(
        batch.source, segment=batch.source_segment, position=batch.source_position
    )
    hidden = learner.decode(batch, memory, torch.zeros_like(batch.target_output).bool())
    hidden = hidden[:, : len(target)]
    emissions = module.logits(hidden)[0].log_softmax(-1)
    assert module.chain is not None
    every = torch.arange(VOCABULARY).expand(1, len(target), -1)
    transitions = module.chain.transitions(every, hidden)[0]
    scores = {
        words: sum(emissions[t, word] for t, word in enumerate(words))
        + sum(transitions[t, a, b] for t, (a, b) in enumerate(itertools.pairwise(words)))
        for words in itertools.product(range(VOCABULARY), repeat=len(target))
    }
    total = torch.stack([torch.as_tensor(score) for score in scores.values()]).logsumexp(0)
    return total - scores[tuple(target)]


@pytest.mark.parametrize("transitions", ["static", "dynamic"])
def test_with_the_whole_vocabulary_the_loss_is_exact(transitions: str) -> None:
    learner = make_loss(structure(transitions=transitions), *ONLY_CHAIN, vocabulary=VOCABULARY)
    assert learner.module.chain is not None
    for weight in learner.module.chain.parameters():  # also those that start at zero
        torch.nn.init.normal_(weight, std=0.7, generator=torch.Generator().manual_seed(5))
    learner.module.eval()
    pairs = draw_pairs(LENGTHS, vocabulary=VOCABULARY, seed=11)
    expected = sum(enumerate_loss(learner, pair) for pair in pairs)
    sums = learner.loss(pack(pairs, row=12))
    torch.testing.assert_close(sums.loss, torch.as_tensor(expected), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(sums.negative_log_likelihood, sums.loss.detach())
    assert int(sums.num_tokens) == sum(len(target) for _, target in pairs)


@pytest.mark.parametrize("transitions", ["static", "dynamic"])
@pytest.mark.parametrize("length", ["{kind: classifier, weight: 0}", "{kind: classifier}"])
def test_packed_rows_equal_pairs_one_by_one(transitions: str, length: str) -> None:
    vocabulary = 29
    learner = make_loss(
        structure(transitions=transitions, candidates=5, token_weight=0.5),
        f"model.length={length}",
        vocabulary=vocabulary,
    )
    learner.module.eval()
    pairs = draw_pairs([(3, 4), (6, 2), (2, 5), (7, 7), (1, 3)], vocabulary=vocabulary, seed=7)
    together = learner.loss(pack(pairs, row=16))
    alone = [learner.loss(pack([pair], row=16)) for pair in pairs]
    torch.testing.assert_close(
        together.negative_log_likelihood, sum(one.negative_log_likelihood for one in alone)
    )
    if "weight" in length:  # the loss of lengths is a mean over the sentences of a batch
        torch.testing.assert_close(together.loss, sum(one.loss for one in alone))
    assert together.loss > together.negative_log_likelihood


def test_without_transitions_the_chain_is_the_loss_of_its_tokens() -> None:
    chained = make_loss(structure(), *ONLY_CHAIN, vocabulary=VOCABULARY)
    plain = make_loss(*ONLY_CHAIN, vocabulary=VOCABULARY)
    assert chained.module.chain is not None
    for weight in chained.module.chain.parameters():
        torch.nn.init.zeros_(weight)
    plain.module.load_state_dict(chained.module.state_dict(), strict=False)
    batch = pack(draw_pairs(LENGTHS, vocabulary=VOCABULARY, seed=13), row=12)
    chained.module.eval(), plain.module.eval()
    torch.testing.assert_close(chained.loss(batch).loss, plain.loss(batch).loss)


def test_gradients_reach_both_tables_and_the_decoder() -> None:
    learner = make_loss(structure(transitions="dynamic"), *ONLY_CHAIN, vocabulary=VOCABULARY)
    pairs = draw_pairs(LENGTHS, vocabulary=VOCABULARY, seed=17)
    learner.loss(pack(pairs, row=12)).loss.backward()
    assert learner.module.chain is not None
    gradients = dict(learner.module.named_parameters())
    for name in ("chain.transitions.static.left", "chain.transitions.matrix.weight"):
        gradient = gradients[name].grad
        assert gradient is not None
        assert gradient.isfinite().all()
        assert gradient.abs().max() > 0
