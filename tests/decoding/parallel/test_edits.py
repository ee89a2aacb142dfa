"""Search by edits: experts, spelling, loops, limits, and a sentence alone = in any batch."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from pydantic import ValidationError
from torch import Tensor

from headwise.data.token_edits import is_word
from headwise.decoding.parallel.edit_round import share_room
from headwise.decoding.parallel.edits import EditResult, EditSettings, search_edits
from headwise.randomness import numpy_generator
from headwise.text.tokenizer import PAD
from headwise.training.parallel.expert_edits import expert_edits
from tests.data.test_token_edits import drawn, padded

VOCAB = 13
SURE = math.log(0.9)


def sure(choice: Tensor, num_classes: int) -> Tensor:
    """0.9 for what was chosen; the other choices share the rest."""
    rest = math.log(0.1 / (num_classes - 1))
    return torch.where(F.one_hot(choice, num_classes).bool(), SURE, rest)


class Policies:
    """What all fakes have; they count how often each policy is asked and for which sentences."""

    device = torch.device("cpu")

    def __init__(self) -> None:
        self.asked: dict[str, list[list[int]]] = {"delete": [], "insert": [], "fill": []}


class Expert(Policies):
    """It knows the target of each sentence and takes the shortest way there.

    At most `step` words are inserted in a gap in one round.
    """

    def __init__(self, targets: list[list[int]], *, step: int = 17) -> None:
        super().__init__()
        self.targets, self.step = padded(targets), step

    def delete(self, tokens: Tensor, sentences: Tensor) -> Tensor:
        self.asked["delete"].append(sentences.tolist())
        return sure(expert_edits(tokens, self.targets[sentences]).deleted.long(), 2)

    def insert(self, tokens: Tensor, sentences: Tensor) -> Tensor:
        self.asked["insert"].append(sentences.tolist())
        counts = expert_edits(tokens, self.targets[sentences]).inserted
        return sure(counts.clamp(max=self.step), 18)

    def fill(self, tokens: Tensor, known: Tensor, sentences: Tensor) -> Tensor:
        """The words that lack in each gap, from the left."""
        self.asked["fill"].append(sentences.tolist())
        wanted = torch.full_like(tokens, 4)
        for row, sentence in enumerate(sentences.tolist()):
            given = tokens[row][known[row] & tokens[row].ne(PAD)][None]
            edits = expert_edits(given, self.targets[[sentence]])
            target, lacks = self.targets[sentence].tolist(), edits.filled[0].tolist()
            place = 0
            for word, lack in zip(target, lacks, strict=True):
                if lack and place < tokens.shape[1] and not known[row, place]:
                    wanted[row, place] = word
                    place += 1
                elif not lack:
                    place = next_known(known[row].tolist(), place) + 1
        return sure(wanted, VOCAB)


def next_known(known: list[bool], place: int) -> int:
    return next((i for i in range(place, len(known)) if known[i]), len(known))


TARGETS = [[5, 6, 7, 7, 8, 9, 4], [6], [], [5, 5, 5, 5], [9, 8, 7, 6, 5]]
LIMITS = [30] * 5


def words_of(results: list[EditResult]) -> list[list[int]]:
    return [list(one.hypothesis.tokens) for one in results]


def test_the_expert_writes_the_target_in_one_round_and_confirms_it() -> None:
    policies = Expert(TARGETS)
    results = search_edits(policies, LIMITS, EditSettings())
    assert words_of(results) == TARGETS
    assert [one.reason for one in results] == ["unchanged"] * 5
    assert [one.num_rounds for one in results] == [2, 2, 1, 2, 2]
    assert policies.asked["delete"] == [[0, 1, 3, 4]], "nothing to delete in empty sentences"
    assert policies.asked["fill"] == [[0, 1, 2, 3, 4]], "nothing to fill in the second round"
    for one, target in zip(results, TARGETS, strict=True):
        values = one.hypothesis.token_log_probabilities
        assert values == pytest.approx([SURE] * len(target) + [0.0], rel=1e-6)
        assert one.hypothesis.score == pytest.approx(SURE if target else 0.0, rel=1e-6)
        assert one.hypothesis.finished


def test_any_draft_becomes_the_target_in_one_round() -> None:
    targets = drawn(29, 11, vocab=9, key="target")
    drafts = drawn(29, 13, vocab=9, key="draft")
    drafts[3] = list(targets[3])
    results = search_edits(Expert(targets), [40] * 29, EditSettings(), drafts=drafts)
    assert words_of(results) == targets
    for one, draft, target in zip(results, drafts, targets, strict=True):
        assert one.num_rounds == (1 if draft == target else 2)
        kept = [value for value in one.hypothesis.token_log_probabilities[:-1] if value == 0]
        common = expert_edits(padded([draft]), padded([target])).filled.logical_not().sum() - 2
        assert len(kept) == common, "words of the draft count as certain"


def test_a_word_is_spelled_from_the_gaps_and_leaves_the_batch() -> None:
    """One word per gap and round: the number of words can double, plus one."""
    policies = Expert(TARGETS, step=1)
    results = search_edits(policies, LIMITS, EditSettings(rounds=20), traced=True)
    assert words_of(results) == TARGETS
    assert policies.asked["insert"][0] == [0, 1, 2, 3, 4]
    assert policies.asked["insert"][1] == [0, 1, 3, 4]
    assert 1 not in policies.asked["insert"][2]
    for one in results:
        assert len(one.rounds) == one.num_rounds
        assert one.rounds[-1].before == one.rounds[-1].tokens
        for before, after in zip(one.rounds, one.rounds[1:], strict=False):
            assert before.tokens == after.before


def test_the_record_of_a_round_worked_by_hand() -> None:
    policies = Expert([[5, 6, 7, 9]])
    (result,) = search_edits(policies, [9], EditSettings(), drafts=[[5, 8, 7]], traced=True)
    first, second = result.rounds
    assert first.before == (5, 8, 7)
    assert first.deleted == (False, True, False)
    assert first.deletion_probabilities == pytest.approx([0.1, 0.9, 0.1])
    assert first.tokens == (5, 6, 7, 9)
    assert first.is_new == (False, True, False, True)
    assert first.log_probabilities == pytest.approx([0.0, SURE, 0.0, SURE])
    assert second.before == second.tokens == first.tokens
    assert not any((*second.deleted, *second.is_new))
    assert second.log_probabilities == first.log_probabilities


class Undoing(Policies):
    """It deletes whatever there is, and writes one word where there is nothing."""

    def delete(self, tokens: Tensor, sentences: Tensor) -> Tensor:
        return sure(is_word(tokens).long(), 2)

    def insert(self, tokens: Tensor, sentences: Tensor) -> Tensor:
        """A sentence that was just emptied stays empty; this one remembers nothing else."""
        self.asked["insert"].append(sentences.tolist())
        is_odd = len(self.asked["insert"]) % 2
        return sure(torch.full_like(tokens[:, 1:], is_odd), 2)

    def fill(self, tokens: Tensor, known: Tensor, sentences: Tensor) -> Tensor:
        return sure(torch.full_like(tokens, 7), VOCAB)


def test_policies_that_undo_their_edits_are_stopped() -> None:
    (result,) = search_edits(Undoing(), [9], EditSettings(rounds=50), traced=True)
    assert result.reason == "loop"
    assert [one.tokens for one in result.rounds] == [(7,), ()]
    assert result.hypothesis.tokens == ()


class Endless(Policies):
    """It never deletes and always wants two more words in every gap."""

    def delete(self, tokens: Tensor, sentences: Tensor) -> Tensor:
        return sure(torch.zeros_like(tokens), 2)

    def insert(self, tokens: Tensor, sentences: Tensor) -> Tensor:
        return sure(torch.full_like(tokens[:, 1:], 2), 3)

    def fill(self, tokens: Tensor, known: Tensor, sentences: Tensor) -> Tensor:
        return sure(torch.arange(tokens.shape[1]).remainder(9).add(4).expand_as(tokens), VOCAB)


def test_no_sentence_is_longer_than_its_limit() -> None:
    limits = [1, 2, 3, 8, 23]
    results = search_edits(Endless(), limits, EditSettings(rounds=7))
    assert [len(one.hypothesis.tokens) for one in results] == [limit - 1 for limit in limits]
    assert not any(one.hypothesis.finished for one in results), "the limit kept words out"
    for one in results:
        assert len(one.hypothesis.token_log_probabilities) == len(one.hypothesis.tokens)
    (cut,) = search_edits(Expert([[5, 6, 7]]), [3], EditSettings(), drafts=[[5, 6, 7]])
    assert cut.hypothesis.tokens == (5, 6)


def test_the_last_round_ends_the_search() -> None:
    (result,) = search_edits(Endless(), [100], EditSettings(rounds=3))
    assert result.reason == "rounds"
    assert result.num_rounds == 3
    assert len(result.hypothesis.tokens) == 26, "n → 3 n + 2"
    assert result.hypothesis.finished


def test_room_is_shared_from_left_to_right() -> None:
    wanted = torch.tensor([[2, 0, 3, 1], [2, 0, 3, 1], [2, 0, 3, 1], [0, 0, 0, 0]])
    found = share_room(wanted, torch.tensor([9, 4, -2, 5]))
    assert found.tolist() == [[2, 0, 3, 1], [2, 0, 2, 0], [0, 0, 0, 0], [0, 0, 0, 0]]


class Hesitant(Endless):
    """Nothing is inserted with probability 0.8, one word otherwise, as long as it is short."""

    def insert(self, tokens: Tensor, sentences: Tensor) -> Tensor:
        is_short = is_word(tokens).sum(1, keepdim=True) < 3
        chance = torch.where(is_short, 0.2, 0.001).expand(tokens[:, 1:].shape)
        return torch.stack([1 - chance, chance], dim=-1).log()


def test_the_penalty_is_on_inserting_nothing() -> None:
    lengths = []
    for penalty in (0.0, math.log(4) - 1e-3, math.log(4) + 1e-3, 3.0):
        settings = EditSettings(insertion_penalty=penalty)
        (result,) = search_edits(Hesitant(), [40], settings)
        lengths.append(len(result.hypothesis.tokens))
    assert lengths == [0, 0, 3, 3]


class Improviser(Policies):
    """Random decisions, a function of the sentence and its tokens; it prefers to leave things."""

    def __init__(self, sources: list[int]) -> None:
        super().__init__()
        self.sources = sources

    def table(self, name: str, shown: list[int], source: int, num_classes: int) -> np.ndarray:
        logits = numpy_generator(name, source, str(shown)).normal(size=(len(shown), num_classes))
        logits[:, 0] += 1.0
        return logits - np.log(np.exp(logits).sum(-1, keepdims=True))

    def decide(self, name: str, shown: Tensor, sentences: Tensor, num_classes: int) -> Tensor:
        found = torch.full((*shown.shape, num_classes), math.nan, dtype=torch.float64)
        for row, number in enumerate(sentences.tolist()):
            own = [token for token in shown[row].tolist() if token != PAD]
            values = self.table(name, own, self.sources[number], num_classes)
            found[row, : len(own)] = torch.from_numpy(values)
        return found

    def delete(self, tokens: Tensor, sentences: Tensor) -> Tensor:
        return self.decide("delete", tokens, sentences, 2)

    def insert(self, tokens: Tensor, sentences: Tensor) -> Tensor:
        return self.decide("insert", tokens, sentences, 4)[:, 1:]

    def fill(self, tokens: Tensor, known: Tensor, sentences: Tensor) -> Tensor:
        return self.decide("fill", torch.where(known, tokens, 99), sentences, VOCAB)


@pytest.mark.parametrize("unknown", [True, False])
def test_a_sentence_alone_is_a_sentence_in_a_batch(unknown: bool) -> None:
    sources, drafts = list(range(19)), drawn(19, 5, vocab=9)
    limits = [3 + number % 11 for number in sources]
    settings = EditSettings(rounds=6, allow_unknown=unknown)
    together = search_edits(Improviser(sources), limits, settings, drafts=drafts, traced=True)
    for number, result in enumerate(together):
        (alone,) = search_edits(
            Improviser([number]), [limits[number]], settings, drafts=[drafts[number]], traced=True
        )
        assert result == alone
        written = {
            token
            for one in result.rounds
            for token, is_new in zip(one.tokens, one.is_new, strict=True)
            if is_new
        }
        for one in result.rounds:
            stay = [t for t, goes in zip(one.before, one.deleted, strict=True) if not goes]
            kept = [t for t, is_new in zip(one.tokens, one.is_new, strict=True) if not is_new]
            assert stay == kept
        assert not written & ({0, 1, 2} if unknown else {0, 1, 2, 3})
        assert len(result.hypothesis.tokens) < limits[number]
    assert len({one.reason for one in together}) > 1


def test_an_empty_batch_has_no_results() -> None:
    assert search_edits(Endless(), [], EditSettings()) == []


def test_the_work_can_be_stopped_before_every_round() -> None:
    class StoppedError(Exception):
        pass

    def stop() -> None:
        raise StoppedError("enough")

    with pytest.raises(StoppedError, match="enough"):
        search_edits(Endless(), [9], EditSettings(), before_round=stop)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("rounds", 0, "greater than or equal to 1"),
        ("insertion_penalty", -0.5, "greater than or equal to 0"),
        ("insertion_penalty", 3.5, "less than or equal to 3"),
    ],
)
def test_settings_have_bounds(field: str, value: float, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        EditSettings(**{field: value})
