"""The recorded engine against the plain one, with fake buffers: equal results, fewer and fewer
rows."""

from collections.abc import Callable, Hashable, Sequence

import numpy as np
import pytest
import torch
from torch import Tensor

from headwise.decoding.choices import (
    BeamSettings,
    DecodingSettings,
    GreedySettings,
    SamplingSettings,
    decode,
)
from headwise.decoding.engines import recorded
from headwise.decoding.engines.recorded import LateAnswers, narrow_to
from headwise.decoding.rules.constraints import SentenceRules
from tests.decoding.conftest import phrases_of_tokens

VOCAB = 11


class FakeBuffers:
    """Buffers whose rows are (source, prefix); they note how many sentences each step had."""

    def __init__(self, model, *, num_sentences: int, width: int, max_length: int) -> None:
        self.model, self.device, self.vocab = model, torch.device("cpu"), VOCAB
        self.num_sentences, self.width, self.max_length = num_sentences, width, max_length
        self.time = torch.zeros(1, dtype=torch.long)
        self.kept: dict[Hashable, object] = {}
        self.played: list[int] = []

    def fill(self, sources: Sequence[tuple[int, ...]]) -> None:
        filled = [*sources, *[(9,)] * (self.num_sentences - len(sources))]
        self.rows = [(source, ()) for source in filled for _ in range(self.width)]
        self.time.zero_()

    def step(self, tokens: Tensor) -> Tensor:
        if int(self.time):
            self.rows = [
                (source, (*prefix, token))
                for (source, prefix), token in zip(self.rows, tokens.tolist(), strict=True)
            ]
        self.time += 1
        self.played.append(self.num_sentences)
        # Logits that are not normalised: buffers may leave that to the search.
        return torch.tensor(np.array([self.model(*row) for row in self.rows])) + 3.7

    def follow(self, index: Tensor) -> None:
        assert (index // self.width == torch.arange(len(index)) // self.width).all(), (
            "a row left its sentence"
        )
        self.rows = [self.rows[i] for i in index.tolist()]

    def narrow(self, num_sentences: int, index: Tensor) -> "FakeBuffers":
        buffers = FakeBuffers(
            self.model, num_sentences=num_sentences, width=self.width, max_length=self.max_length
        )
        buffers = self.recall(num_sentences, lambda: buffers)
        buffers.time, buffers.played, buffers.rows = (
            self.time,
            self.played,
            [self.rows[i] for i in index.tolist()],
        )
        return buffers

    def recall(self, key: Hashable, make: Callable[[], object]):
        return self.kept.setdefault(key, make()) if key not in self.kept else self.kept[key]

    def record(self, function: Callable[[], None]) -> Callable[[], None]:
        return function


def make_static(fake: type, model, *, extra: int = 3):
    class Static(fake):
        """A fake that also has static buffers, with places to spare."""

        has_static_buffers = True

        def fill_buffers(self, sources, *, width: int, max_length: int):
            key = (len(sources), width)
            if not hasattr(self, "buffers"):
                self.buffers = {}
            if key not in self.buffers:
                self.buffers[key] = FakeBuffers(
                    model, num_sentences=len(sources) + extra, width=width, max_length=max_length
                )
            self.buffers[key].fill([tuple(source) for source in sources])
            return self.buffers[key]

    return Static(model)


SEARCHES: dict[str, DecodingSettings] = {
    "greedy": GreedySettings(max_length=9),
    "greedy, ended": GreedySettings(
        max_length={"factor": 1, "extra": 2}, at_limit="end", min_length=2
    ),
    "beam": BeamSettings(size=4, num_best=4, max_length={"factor": 2.0, "extra": 5, "limit": 17}),
    "filled": BeamSettings(
        size=3, stop="filled", max_length=9, length_penalty={"kind": "wu", "alpha": 0.6}
    ),
    "proven": BeamSettings(
        size=3,
        num_best=2,
        stop="proven",
        max_length={"factor": 1, "extra": 3},
        min_length=2,
        at_limit="end",
    ),
    "samples": SamplingSettings(
        num_samples=3, temperature=0.7, max_length={"factor": 2.0, "extra": 5, "limit": 17}
    ),
    "samples, ended": SamplingSettings(max_length=9, min_length=2, at_limit="end"),
    "no unknown": BeamSettings(
        size=2, max_length=9, allow_unknown=False, length_penalty={"kind": "none"}
    ),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_it_equals_the_plain_engine_batch_after_batch(
    fake, improvise, sources, monkeypatch, name: str
) -> None:
    monkeypatch.setattr(recorded, "FEW_ROWS", 4)
    settings, static = SEARCHES[name], make_static(fake, improvise)
    for batch in (sources, sources[::-1], sources):
        expected = decode(fake(improvise, torch.float32), batch, settings)
        for found, plain in zip(decode(static, batch, settings), expected, strict=True):
            assert [h.tokens for h in found.hypotheses] == [h.tokens for h in plain.hypotheses]
            assert [h.finished for h in found.hypotheses] == [h.finished for h in plain.hypotheses]
            for one, other in zip(found.hypotheses, plain.hypotheses, strict=True):
                assert one.score == pytest.approx(other.score, abs=1e-5)
                assert one.token_log_probabilities == pytest.approx(
                    other.token_log_probabilities, abs=1e-5
                )
    assert static.num_steps == 0, "the plain engine was taken"
    buffers = next(iter(static.buffers.values()))
    assert min(buffers.played) < buffers.num_sentences, "no smaller buffers were used"


def test_spells_every_source(fake, spell, sources) -> None:
    def model(source, prefix):
        return spell(source, prefix, vocab=VOCAB)

    for settings in (GreedySettings(), BeamSettings(size=3)):
        results = decode(make_static(fake, model), sources, settings)
        assert [result.best.tokens for result in results] == sources


@pytest.mark.parametrize(
    ("settings", "phrases", "traced"),
    [
        (GreedySettings(no_repeat_ngrams=2), SentenceRules(), False),
        (GreedySettings(), phrases_of_tokens(forbidden=((5,),)), False),
        (GreedySettings(), SentenceRules(prefix=(5, 6)), False),
        (BeamSettings(size=2), phrases_of_tokens(required=((5,),)), False),
        (BeamSettings(size=2), SentenceRules(), True),
        (SamplingSettings(top_p=0.9), SentenceRules(), False),
        (SamplingSettings(top_k=3), SentenceRules(), False),
    ],
)
def test_what_looks_at_histories_takes_the_plain_engine(
    fake, improvise, sources, settings, phrases, traced
) -> None:
    static = make_static(fake, improvise)
    results = decode(static, sources, settings, phrases=phrases, traced=traced)
    assert results == decode(fake(improvise), sources, settings, phrases=phrases, traced=traced)
    assert static.num_steps > 0


def test_smaller_buffers_are_halves_with_rows_enough(improvise) -> None:
    buffers = FakeBuffers(improvise, num_sentences=512, width=5, max_length=9)
    assert [narrow_to(alive, buffers) for alive in (257, 256, 129, 40, 1)] == [512, 256, 256, 64, 8]
    assert narrow_to(1, FakeBuffers(improvise, num_sentences=24, width=1, max_length=9)) == 24


def test_answers_of_a_cpu_come_at_once() -> None:
    assert LateAnswers(torch.device("cpu")).ask(torch.tensor([7])) == 7
