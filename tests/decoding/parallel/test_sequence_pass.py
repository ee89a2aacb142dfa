"""One pass over chains and copies, with fake models; and a judge that chooses among candidates."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from headwise.decoding.choices import make_generator
from headwise.decoding.generator import Watcher
from headwise.decoding.parallel.noisy_pass import NoisyParallelSettings, NoisyPass
from headwise.decoding.parallel.one_pass import OnePassSettings
from headwise.decoding.parallel.protocol import PartialTargets
from headwise.decoding.parallel.sequence_pass import SequencePass
from headwise.decoding.records import FertilityRecord
from headwise.decoding.results import SearchResult
from headwise.errors import SettingsError, UsageError
from headwise.text.tokenizer import BOS, EOS, PAD, UNKNOWN

VOCABULARY = 11
SOURCES = [[5, 6, 7], [8], [], [9, 10, 4, 5], [7, 4]]


@dataclass(frozen=True)
class FakeCopies:
    sentence: Tensor
    tokens: Tensor
    log_probability: Tensor
    fertility: Tensor
    fertility_log_probability: Tensor


@dataclass(frozen=True)
class FakeChain:
    tokens: Tensor
    emissions: Tensor
    transitions: Tensor


class Fake:
    """Scores are functions of the sentence, the length and the position alone. Its lengths are the
    source's, with others less probable; copied are the source tokens themselves."""

    device = torch.device("cpu")
    num_begins = None
    vocabulary_size = VOCABULARY

    def __init__(self, *, is_chain: bool = False, copies: bool = False) -> None:
        self.is_chain, self.copies_by_fertility = is_chain, copies
        self.output_form = "copies" if copies else "chain" if is_chain else "positions"

    def read_sources(self, sources: Sequence[Sequence[int]]) -> list[list[int]]:
        return [list(source) for source in sources]

    def length_scores(self, memory: list[list[int]], *, longest: int) -> Tensor:
        lengths = torch.arange(1, longest + 1)
        rows = [-(lengths - len(source) - 1).abs().float() for source in memory]
        return torch.stack(rows).log_softmax(-1)

    def likely_copies(
        self, memory: list[list[int]], *, least: Sequence[int], most: Sequence[int]
    ) -> FakeCopies:
        rows = [self._lay(source, a, b) for source, a, b in zip(memory, least, most, strict=True)]
        return self._copies(memory, range(len(memory)), rows)

    def sampled_copies(
        self,
        memory: list[list[int]],
        *,
        least: Sequence[int],
        most: Sequence[int],
        count: int,
        temperature: float,
        generators: Sequence[torch.Generator],
    ) -> FakeCopies:
        rows, names = [], []
        for number, source in enumerate(memory):
            for extra in range(count):
                drawn = int(torch.randint(3, (1,), generator=generators[number])) if extra else 0
                longer = [*source, *source[-1:] * drawn]
                rows.append(self._lay(longer, least[number], most[number]))
                names.append(number)
        return self._copies(memory, names, rows)

    def _lay(self, words: list[int], least: int, most: int) -> list[int]:
        words = words[: most - 1]
        return [*words, *words[-1:] * (least - 1 - len(words)), EOS]

    def _copies(self, memory: list[list[int]], names: Any, rows: list[list[int]]) -> FakeCopies:
        width = max(map(len, rows))
        tokens = torch.tensor([[*row, *[PAD] * (width - len(row))] for row in rows])
        # Each word is copied once; what a sample copies more is all of the last word.
        fertility = torch.zeros(len(rows), width + 1, dtype=torch.int64)
        for number, (name, row) in enumerate(zip(names, rows, strict=True)):
            num_words = min(len(memory[name]), len(row) - 1)
            fertility[number, : num_words + 1] = 1
            fertility[number, num_words - 1] += len(row) - 1 - num_words
        chosen = torch.where(fertility > 0, -0.3, 0.0)
        return FakeCopies(
            torch.tensor(list(names)), tokens, torch.full((len(rows),), -1.5), fertility, chosen
        )

    def predict(self, memory: list[list[int]], candidates: PartialTargets) -> Tensor:
        scores = torch.zeros(*candidates.known.shape, VOCABULARY, dtype=torch.float64)
        for row, number in enumerate(candidates.sentence.tolist()):
            for place in range(scores.shape[1]):
                key = 7 * sum(memory[number]) + int(candidates.length[row])
                if candidates.copied is not None:
                    key = 13 * key + int(candidates.copied[row, place])
                draw = torch.Generator().manual_seed(101 * key + place)
                scores[row, place] = torch.randn(VOCABULARY, generator=draw).double() * 2
        return scores.log_softmax(-1)

    def predict_chain(
        self,
        memory: list[list[int]],
        candidates: PartialTargets,
        *,
        excluded: Sequence[int],
        wanted: Sequence[int] = (),
    ) -> FakeChain:
        kept = torch.tensor([one for one in range(VOCABULARY) if one not in excluded])
        scores = self.predict(memory, candidates)[..., kept]
        tokens = kept.expand(*scores.shape[:2], -1)
        table = torch.randn(VOCABULARY, VOCABULARY, generator=torch.Generator().manual_seed(9))
        transitions = 2 * table.double()[kept][:, kept]
        shape = (len(scores), scores.shape[1] - 1, -1, -1)
        return FakeChain(tokens, scores, transitions.expand(*shape))


def generate(fake: Fake, sources: list[list[int]], **changes: Any) -> list[SearchResult]:
    return SequencePass(fake).generate(sources, OnePassSettings(**changes))


@pytest.mark.parametrize("copies", [True, False])
def test_no_sequence_of_a_chain_is_better(copies: bool) -> None:
    fake, source = Fake(is_chain=True, copies=copies), [5, 6, 7]
    (found,) = generate(fake, [source], lengths=1)
    assert len(found.best.tokens) == 3
    length = torch.tensor([4])
    copied = torch.tensor([[*source, EOS]]) if copies else None
    known = torch.tensor([[PAD, PAD, PAD, EOS]])
    chain = fake.predict_chain(
        [source],
        PartialTargets(torch.tensor([0]), length, known, copied),
        excluded=(PAD, BOS, EOS),
    )
    scores = {}
    for path in itertools.product(range(VOCABULARY - 3), repeat=3):
        total = sum(float(chain.emissions[0, t, i]) for t, i in enumerate(path))
        pairs = enumerate(itertools.pairwise(path))
        total += sum(float(chain.transitions[0, t, i, j]) for t, (i, j) in pairs)
        scores[tuple(int(chain.tokens[0, t, i]) for t, i in enumerate(path))] = total
    assert found.best.tokens == max(scores, key=lambda one: scores[one])
    norm = math.log(sum(math.exp(one) for one in scores.values()))
    words = found.best.token_log_probabilities[:-1]
    assert sum(words) == pytest.approx(scores[found.best.tokens] - norm, rel=1e-6)
    assert found.best.score == pytest.approx(sum(words) / 3)
    assert found.best.log_probability == pytest.approx(sum(found.best.token_log_probabilities))


@pytest.mark.parametrize("fake", [Fake(is_chain=True), Fake(copies=True), Fake()])
def test_what_is_read_of_the_result_is_what_it_says(fake: Fake) -> None:
    (found,) = generate(fake, [[5, 6, 7]], lengths=1)
    rows = list(SequencePass(fake).read([[5, 6, 7]], found.best.tokens))
    assert len(rows) == len(found.best.tokens) + 1
    for row, token, value in zip(
        rows, found.best.tokens, found.best.token_log_probabilities, strict=False
    ):
        assert float(row[0].exp().sum()) == pytest.approx(1, abs=1e-6)
        assert float(row[0, token]) == pytest.approx(value, rel=1e-6)
    assert int(rows[-1][0].argmax()) == EOS


@pytest.mark.parametrize("fake", [Fake(is_chain=True), Fake(copies=True), Fake()])
def test_reading_an_empty_target_gives_its_end(fake: Fake) -> None:
    (end,) = SequencePass(fake).read([[5, 6, 7]], [])
    assert int(end[0].argmax()) == EOS


@pytest.mark.parametrize("fake", [Fake(is_chain=True), Fake(copies=True)])
def test_a_sentence_alone_equals_the_sentence_in_a_batch(fake: Fake) -> None:
    together = generate(fake, SOURCES, lengths=3)
    assert [len(one.best.tokens) > 0 for one in together] == [bool(one) for one in SOURCES]
    for source, found in zip(SOURCES, together, strict=True):
        (alone,) = generate(fake, [source], lengths=3)
        assert alone.best.tokens == found.best.tokens
        assert alone.best.score == pytest.approx(found.best.score)


@pytest.mark.parametrize("fake", [Fake(is_chain=True), Fake(copies=True)])
def test_limits_are_kept(fake: Fake) -> None:
    for found in generate(fake, [[5, 6, 7, 8]], max_length=3):
        assert 1 <= len(found.best.tokens) <= 2
    for found in generate(fake, [[5, 6]], min_length=5, lengths=1):
        assert len(found.best.tokens) >= 5


def test_special_and_unknown_tokens_are_not_written() -> None:
    for fake in (Fake(is_chain=True), Fake(copies=True)):
        for found in generate(fake, SOURCES, allow_unknown=False):
            assert not {PAD, BOS, EOS, UNKNOWN} & set(found.best.tokens)


def test_groups_of_candidates_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Fake(is_chain=True)
    together = generate(fake, SOURCES, lengths=3)
    monkeypatch.setattr("headwise.decoding.parallel.sequence_pass.MOST_POSITIONS", 7)
    apart = generate(fake, SOURCES, lengths=3)
    assert [one.best.tokens for one in apart] == [one.best.tokens for one in together]


class Reverence:
    """A judge to whom a translation is the better the closer its length is to `length`."""

    def __init__(self, length: int) -> None:
        self.length, self.asked = length, 0

    def log_probabilities(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> list[float]:
        self.asked += len(targets)
        return [-(len(one) + 1.0) * (1 + abs(len(one) - self.length)) for one in targets]


@pytest.mark.parametrize("fake", [Fake(), Fake(is_chain=True), Fake(copies=True)])
def test_a_judge_chooses_among_candidates(fake: Fake) -> None:
    judge = Reverence(5)
    settings = NoisyParallelSettings(samples=8, judge="a path")
    found = NoisyPass(fake, judge).generate([[5, 6, 7], [], [4, 9, 8]], settings)
    assert [len(one.best.tokens) for one in found] == [5, 0, 5]
    assert found[0].best.score == pytest.approx(-1.0)  # the mean per token, the end counted
    assert judge.asked > 2


@pytest.mark.parametrize("fake", [Fake(is_chain=True), Fake(copies=True)])
def test_with_one_candidate_it_is_one_pass(fake: Fake) -> None:
    noisy = NoisyPass(fake, Reverence(3)).generate(SOURCES, NoisyParallelSettings(samples=1))
    single = generate(fake, SOURCES, lengths=1)
    assert [one.best.tokens for one in noisy] == [one.best.tokens for one in single]


def test_samples_follow_from_seed_and_number() -> None:
    fake, judge = Fake(copies=True), Reverence(30)
    settings = NoisyParallelSettings(samples=4, seed=3)
    together = NoisyPass(fake, judge).generate(SOURCES, settings, numbers=range(20, 25))
    (alone,) = NoisyPass(fake, judge).generate([SOURCES[3]], settings, numbers=[23])
    assert alone.best.tokens == together[3].best.tokens


def test_results_are_reported_one_by_one() -> None:
    seen: dict[int, SearchResult] = {}
    steps: list[int] = []
    watcher = Watcher(lambda: steps.append(1), on_result=lambda at, one: seen.update({at: one}))
    found = SequencePass(Fake(copies=True)).generate(SOURCES, OnePassSettings(), watcher=watcher)
    assert seen == {i: found[i] for i, source in enumerate(SOURCES) if source}
    assert steps == [1]


def test_settings_choose_the_generator() -> None:
    for fake in (Fake(is_chain=True), Fake(copies=True)):
        assert type(make_generator(OnePassSettings(), fake)) is SequencePass
    noisy = NoisyParallelSettings(judge="a path")
    assert type(make_generator(noisy, Fake(), find_judge=lambda path: Reverence(3))) is NoisyPass


def test_a_missing_judge_is_said() -> None:
    with pytest.raises(UsageError, match=r"has no judge.*decoding\.judge=runs/teacher/model"):
        make_generator(NoisyParallelSettings(), Fake())


def test_a_fixed_number_of_positions_has_nothing_to_choose_from() -> None:
    fake = Fake()
    fake.output_form = "cut_positions"
    with pytest.raises(SettingsError, match=r"cut at the first end; use decoding\.kind=one_pass"):
        make_generator(
            NoisyParallelSettings(judge="a path"), fake, find_judge=lambda path: Reverence(3)
        )


@pytest.mark.parametrize("samples", [None, 4])
def test_fertilities_that_are_told_are_those_of_the_candidate_that_won(
    samples: int | None,
) -> None:
    model = Fake(copies=True)
    settings: Any = OnePassSettings()
    generator: Any = SequencePass(model)
    if samples is not None:
        settings = NoisyParallelSettings(samples=samples, judge="judge")
        generator = NoisyPass(model, Longest())
    found = generator.generate(SOURCES, settings, traced=True)
    for source, one in zip(SOURCES, found, strict=True):
        if not source:
            assert one.record is None
            continue
        assert isinstance(one.record, FertilityRecord)
        assert len(one.record.fertilities) == len(source) + 1
        assert sum(one.record.fertilities) == len(one.best.tokens) + 1
        assert one.record.fertilities[-1] == 1, "the end of the sentence is copied once"


class Longest:
    """A judge to which long translations are more probable."""

    def log_probabilities(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> list[float]:
        return [float(len(target)) ** 3 for target in targets]
