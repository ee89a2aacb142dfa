"""Whatever is drafted, the output is greedy search's: with every rule, alone and in a batch."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from headwise.decoding.choices import DraftedSettings, GreedySettings, decode, make_generator
from headwise.decoding.drafting import generator as module
from headwise.decoding.drafting.protocol import Drafter
from headwise.decoding.generator import Watcher
from headwise.decoding.results import SearchResult
from headwise.decoding.rules.constraints import SentenceRules
from headwise.decoding.rules.length_limit import LengthLimit
from headwise.errors import UsageError
from headwise.text.tokenizer import EOS
from tests.decoding.conftest import improvise, phrases_of_tokens
from tests.decoding.drafting.fakes import FakeVerifyingStepper, KnowingDrafter, RandomDrafter

LIMIT = LengthLimit(factor=1.5, extra=4, limit=12)
RULES: dict[str, tuple[dict[str, Any], SentenceRules]] = {
    "none": ({}, SentenceRules()),
    "long enough": ({"min_length": 3}, SentenceRules()),
    "ended at the limit": ({"at_limit": "end"}, SentenceRules()),
    "nothing unknown": ({"allow_unknown": False}, SentenceRules()),
    "a prefix": ({}, SentenceRules(prefix=(5, 9))),
    "a long prefix": ({"min_length": 4}, SentenceRules(prefix=(5, 9, 4, 4))),
    "no repeats": ({"no_repeat_ngrams": 2}, SentenceRules()),
    "forbidden": ({}, phrases_of_tokens(forbidden=[[4, 5], [7]])),
    "all": (
        {"no_repeat_ngrams": 1, "min_length": 2, "at_limit": "end"},
        phrases_of_tokens(forbidden=[[6], [8, 9]], prefix=(4, 10)),
    ),
}
DRAFTERS: dict[str, Callable[[Sequence[Sequence[int]]], Drafter] | None] = {
    "random": lambda outputs: RandomDrafter(11),
    "knowing": KnowingDrafter,
    "often wrong": lambda outputs: KnowingDrafter(outputs, wrong=3),
    "jacobi": None,
    "ngram": None,
}


def use_drafter(monkeypatch: pytest.MonkeyPatch, drafter: Drafter) -> None:
    monkeypatch.setattr(module, "make_drafter", lambda settings, verifier: drafter)


def run(
    sources: Sequence[Sequence[int]],
    settings: DraftedSettings,
    rules: SentenceRules | Sequence[SentenceRules] = SentenceRules(),
    watcher: Watcher = Watcher(),
) -> tuple[list[SearchResult], FakeVerifyingStepper]:
    stepper = FakeVerifyingStepper(improvise)
    return make_generator(settings, stepper).generate(
        sources, settings, rules, watcher=watcher
    ), stepper


def written(result: SearchResult) -> list[int]:
    return [*result.best.tokens, *[EOS] * result.best.finished]


@pytest.mark.parametrize("drafter", DRAFTERS)
@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("block", [1, 4])
def test_the_output_is_that_of_greedy_search(
    name: str,
    drafter: str,
    block: int,
    sources: list[tuple[int, ...]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options, rules = RULES[name]
    greedy = GreedySettings(max_length=LIMIT, **options)
    expected = decode(FakeVerifyingStepper(improvise), sources, greedy, phrases=rules)
    make = DRAFTERS[drafter]
    if make is not None:
        use_drafter(monkeypatch, make([written(one) for one in expected]))
    kind = "ngram" if drafter == "ngram" else "jacobi"
    settings = DraftedSettings(max_length=LIMIT, block=block, drafter={"kind": kind}, **options)  # type: ignore[arg-type]
    found, _ = run(sources, settings, rules)
    for one, other in zip(found, expected, strict=True):
        assert one.best.tokens == other.best.tokens
        assert one.best.finished == other.best.finished
        assert one.best.token_log_probabilities == pytest.approx(
            other.best.token_log_probabilities, abs=1e-12
        )
        assert one.best.score == pytest.approx(other.best.score, abs=1e-12)


def test_who_knows_the_output_has_all_drafts_accepted(
    sources: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    greedy = decode(
        FakeVerifyingStepper(improvise),
        sources,
        GreedySettings(max_length=LIMIT),
        phrases=SentenceRules(),
    )
    use_drafter(monkeypatch, KnowingDrafter([written(one) for one in greedy]))
    for block in (1, 2, 5):
        found, _ = run(sources, DraftedSettings(max_length=LIMIT, block=block))
        for result in found:
            assert result.num_steps == -(-len(written(result)) // (block + 1))


def test_a_batch_takes_the_rounds_of_each_sentence_alone(sources: list[tuple[int, ...]]) -> None:
    settings = DraftedSettings(max_length=LIMIT)
    together, _ = run(sources, settings)
    for source, result in zip(sources, together, strict=True):
        assert run([source], settings)[0] == [result]


def test_tokens_of_a_prefix_take_the_place_of_drafts() -> None:
    settings = DraftedSettings(max_length=7, block=3, drafter={"kind": "ngram"})  # type: ignore[arg-type]
    (found,), stepper = run([(4, 5)], settings, SentenceRules(prefix=(6, 7, 8)))
    assert found.best.tokens[:3] == (6, 7, 8)
    assert stepper.verifier.widths[0] == 4
    assert found.num_steps is not None
    assert found.num_steps <= len(written(found)) - 3


def test_the_block_shrinks_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    use_drafter(monkeypatch, KnowingDrafter([[4] * 20]))
    settings = DraftedSettings(max_length=6, block=3, at_limit="cut")
    stepper = FakeVerifyingStepper(lambda source, prefix: [-9.0] * 4 + [-0.1] + [-9.0] * 6)
    (found,) = make_generator(settings, stepper).generate([(5,)], settings, SentenceRules())
    assert found.best.tokens == (4,) * 6
    assert not found.best.finished
    assert stepper.verifier.widths == [4, 2]


def test_finished_rows_leave_and_are_reported_at_once(sources: list[tuple[int, ...]]) -> None:
    told: dict[int, SearchResult] = {}
    shown: list[Sequence[int]] = []
    steps: list[int] = []
    watcher = Watcher(lambda: steps.append(1), shown.append, told.__setitem__)
    here = [(), *sources]
    found, stepper = run(here, DraftedSettings(max_length=LIMIT), watcher=watcher)
    assert len(steps) == len(stepper.verifier.widths)
    assert told
    assert all(found[number] == result for number, result in told.items())
    assert 0 not in told
    assert len(stepper.verifier.rows) < len(sources)
    final = found[1].best.tokens
    assert shown[0] == ()
    assert all(tuple(one) == final[: len(one)] for one in shown)


def test_a_watcher_stops_the_work() -> None:
    def stop() -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        run([(4, 5)], DraftedSettings(), watcher=Watcher(before_step=stop))


def test_required_phrases_and_rules_that_cannot_be_met_are_refused() -> None:
    with pytest.raises(UsageError, match="drafted decoding does not follow the rule required"):
        run([(4,)], DraftedSettings(), phrases_of_tokens(required=[[5]]))
    with pytest.raises(UsageError, match="take 4 tokens, but max_length is 3 here"):
        run([(4,)], DraftedSettings(max_length=3), SentenceRules(prefix=(5, 6, 7)))
