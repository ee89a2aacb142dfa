"""Both policies' losses: against a program for one pair, an expert in the model's place, counts."""

from collections import Counter
from itertools import combinations
from math import comb

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headwise.data.token_edits import delete_tokens, is_word
from headwise.initialization import initialize
from headwise.models.parallel.edit_heads import EditHeads
from headwise.randomness import torch_generator
from headwise.text.tokenizer import BOS, EOS, PAD
from headwise.training.parallel.edit_losses import (
    best_words,
    class_loss,
    draw_deletions,
    edit_losses,
)
from headwise.training.parallel.expert_edits import expert_edits
from tests.data.test_token_edits import drawn, padded

VOCAB, DIM = 13, 11


class MixingModel(nn.Module):
    """A state is made of the token, the one before and the mean: no padding is read."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.placeholder = nn.Embedding(VOCAB, DIM), nn.Parameter(torch.zeros(DIM))
        self.output, self.heads = nn.Linear(DIM, VOCAB), EditHeads(DIM, max_insertions=5)
        initialize(self.heads, torch_generator("heads"))
        with torch.no_grad():
            for parameter in (self.table.weight, self.placeholder, *self.output.parameters()):
                parameter.normal_(generator=torch_generator("mixing", parameter.numel()))
        self.double()
        self.calls: list[tuple[Tensor, Tensor]] = []

    def states(self, tokens: Tensor, known: Tensor) -> Tensor:
        self.calls.append((tokens, known))
        x = torch.where(known[..., None], self.table(tokens), self.placeholder)
        real = tokens.ne(PAD)[..., None]
        mean = (x * real).sum(1, keepdim=True) / real.sum(1, keepdim=True)
        return torch.tanh(x + mean + F.pad(x, (0, 0, 1, 0))[:, :-1])

    def deletion_logits(self, hidden: Tensor, may_go: Tensor) -> Tensor:
        return self.heads.deletion_logits(hidden, may_go)

    def insertion_logits(self, hidden: Tensor) -> Tensor:
        return self.heads.insertion_logits(hidden)


def smoothed(scores: Tensor, wanted: int, smoothing: float) -> Tensor:
    return -(1 - smoothing) * scores[wanted] - smoothing * scores.mean()


def losses_of_one(model: MixingModel, target: list[int], start: list[int]) -> Tensor:
    """The three losses, smoothed, with lists and loops."""
    goal, begin = [1, *target, 2], [1, *start, 2]
    edits = expert_edits(torch.tensor([begin]), torch.tensor([goal]))
    everything = torch.ones(1, len(begin), dtype=torch.bool)
    gaps = model.insertion_logits(model.states(torch.tensor([begin]), everything))[0]
    counts = sum(
        smoothed(gap.float().log_softmax(-1), min(wanted, 5), 0.01)
        for gap, wanted in zip(gaps, edits.inserted[0].tolist(), strict=True)
    )
    lacks = edits.filled[0].tolist()
    shown = torch.tensor([[7 if lack else word for word, lack in zip(goal, lacks, strict=True)]])
    hidden = model.states(shown, ~edits.filled)[0]
    words, written = torch.zeros(()), list(goal)
    for place, lack in enumerate(lacks):
        if lack:
            scores = model.output(hidden[place]).log_softmax(-1)
            words = words + smoothed(scores, goal[place], 0.1)
            written[place] = 3 + int(scores[3:].argmax())
    going = expert_edits(torch.tensor([written]), torch.tensor([goal])).deleted[0].tolist()
    inside = torch.tensor([[token > EOS for token in written]])
    hidden = model.states(torch.tensor([written]), torch.ones_like(inside))
    table = model.deletion_logits(hidden, inside).float().log_softmax(-1)[0]
    deletions = sum(-table[place, int(going[place])] for place in range(1, len(written) - 1))
    return torch.stack([torch.as_tensor(one).double() for one in (counts, words, deletions)])


def test_a_batch_is_the_sum_of_its_pairs() -> None:
    targets = [words for words in drawn(19, 11, vocab=10) if words]
    target = padded(targets)
    chosen = draw_deletions(target, generator=torch_generator("chosen"))
    model = MixingModel()
    sums = edit_losses(model, target, chosen)
    model_calls = len(model.calls)
    starts = [[w for w in row.tolist() if w > EOS] for row in delete_tokens(target, chosen)]
    expected = sum(
        losses_of_one(model, words, start) for words, start in zip(targets, starts, strict=True)
    )
    found = torch.stack([one.loss.double() for one in sums])
    # Counts and deletions are summed in fp32 over a few hundred items of size one.
    assert found.allclose(torch.as_tensor(expected), rtol=1e-5)
    assert model_calls == 3, "one call of the decoder for each head"
    assert sums.total.loss.double().allclose(found.sum(), rtol=1e-6)
    assert sums.words.num_tokens == chosen.sum() == sums.total.num_tokens
    assert sums.counts.num_tokens == sum(len(start) + 1 for start in starts)
    assert sums.deletions.num_tokens == sum(map(len, targets))


def test_the_words_that_lack_are_not_shown() -> None:
    target, model = padded(drawn(17, 7)), MixingModel()
    edit_losses(model, target, draw_deletions(target, generator=torch_generator("shown")))
    (start, _), (shown, known), (written, written_known) = model.calls
    assert shown[known].equal(target[known])
    assert shown[~known].eq(3).all()
    assert (~known).sum() == is_word(target).sum() - is_word(start).sum()
    assert written_known.all()
    assert is_word(written).equal(is_word(target)), "no </s> is written in the place of a word"


def test_gradients_reach_every_weight() -> None:
    model, target = MixingModel(), padded(drawn(17, 7))
    deleted = draw_deletions(target, generator=torch_generator("grad"))
    edit_losses(model, target, deleted).total.loss.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().sum() > 0, name


class Expert:
    """It knows the target: its states say what the expert would do, and it fills in words that are
    wrong at every third position."""

    def __init__(self, target: Tensor, num_counts: int) -> None:
        self.target, self.num_counts = target, num_counts
        self.output = nn.Linear(VOCAB, VOCAB, bias=False)
        nn.init.eye_(self.output.weight)

    def states(self, tokens: Tensor, known: Tensor) -> Tensor:
        self.tokens, self.known = tokens, known
        wrong = torch.arange(tokens.shape[1]) % 3 == 1
        words = torch.where(wrong, 3 + (self.target - 2) % (VOCAB - 3), self.target)
        return 1e3 * F.one_hot(words, VOCAB).float()

    def deletion_logits(self, hidden: Tensor, may_go: Tensor) -> Tensor:
        going = expert_edits(self.tokens, self.target).deleted
        self.num_going = int(going.sum())
        return 1e3 * F.one_hot(going.long(), 2).float()

    def insertion_logits(self, hidden: Tensor) -> Tensor:
        counts = expert_edits(self.tokens, self.target).inserted
        return 1e3 * F.one_hot(counts, self.num_counts).float()


def test_the_expert_itself_has_no_loss_but_that_of_its_wrong_words() -> None:
    target = padded([words for words in drawn(29, 11, vocab=10) if len(words) > 3])
    model = Expert(target, num_counts=12)
    deleted = draw_deletions(target, generator=torch_generator("expert"))
    sums = edit_losses(model, target, deleted, count_smoothing=0.0)
    assert sums.counts.loss == 0
    assert sums.deletions.loss == 0
    assert sums.words.loss > 0
    assert sums.deletions.num_correct == sums.deletions.num_tokens
    assert model.num_going > 5, "the model's own mistakes are what is deleted"


def test_each_number_of_deletions_and_each_set_is_as_likely() -> None:
    num_words, count = 4, 20_000
    target = padded([[5, 6, 7, 8]] * count)
    deleted = draw_deletions(target, generator=torch_generator("draw"))
    assert not deleted[:, [0, -1]].any()
    sets = Counter(tuple(row) for row in deleted[:, 1:-1].int().tolist())
    all_sets = [
        tuple(int(i in chosen) for i in range(num_words))
        for size in range(num_words + 1)
        for chosen in combinations(range(num_words), size)
    ]
    assert set(sets) == set(all_sets)
    expected = {one: count / (num_words + 1) / comb(num_words, sum(one)) for one in all_sets}
    statistic = sum((sets[one] - expected[one]) ** 2 / expected[one] for one in all_sets)
    assert statistic < 37.7, "chi-square with 15 degrees of freedom, p = 0.001"


def test_the_number_of_deletions_of_a_sentence_is_its_own_in_a_shared_row() -> None:
    count = 6_000
    sentences = [[5], [], [6, 7, 8]]
    row = [token for words in sentences for token in (BOS, *words, EOS)]
    deleted = draw_deletions(torch.tensor([[*row, PAD]] * count), generator=torch_generator("row"))
    assert not deleted[:, [0, 2, 3, 4, 5, 9, 10]].any()
    found = Counter(zip(deleted[:, 1].int().tolist(), deleted[:, 6:9].sum(1).tolist(), strict=True))
    statistic = sum((found[one, three] - count / 8) ** 2 for one in range(2) for three in range(4))
    assert statistic / (count / 8) < 24.3, "chi-square with 7 degrees of freedom, p = 0.001"
    places = deleted[:, 6:9][deleted[:, 6:9].sum(1) == 1].float().mean(0)
    assert places.allclose(torch.full((3,), 1 / 3), atol=0.05)


def test_a_batch_of_empty_targets_has_no_words() -> None:
    model, target = MixingModel(), padded([[], []])
    sums = edit_losses(model, target, draw_deletions(target, generator=None))
    assert sums.words.num_tokens == 0
    assert sums.words.loss == 0
    assert sums.counts.num_tokens == 2
    assert sums.total.num_tokens == 1
    assert sums.total.loss.isfinite()


def test_the_seed_alone_decides() -> None:
    target = padded(drawn(13, 11))
    first, again, other = (
        draw_deletions(target, generator=torch_generator("seed", number)) for number in (1, 1, 2)
    )
    assert first.equal(again)
    assert not first.equal(other)


def test_best_words_do_not_depend_on_chunks_and_are_words() -> None:
    model = MixingModel()
    hidden = torch.randn(37, DIM, generator=torch_generator("best"), dtype=torch.float64)
    whole = best_words(hidden, model.output)
    assert best_words(hidden, model.output, chunk_size=5).equal(whole)
    assert whole.equal(model.output(hidden)[:, 3:].argmax(-1) + 3)
    assert len(best_words(hidden[:0], model.output)) == 0


def test_counts_above_the_last_class_are_taken_as_it() -> None:
    logits = torch.randn(1, 3, 4, generator=torch_generator("classes"))
    counted = torch.tensor([[True, True, False]])
    sums = class_loss(logits, torch.tensor([[9, 1, 2]]), counted, smoothing=0.0)
    scores = logits.log_softmax(-1)[0]
    assert sums.loss.allclose(-scores[0, 3] - scores[1, 1])
    assert sums.num_tokens == 2
