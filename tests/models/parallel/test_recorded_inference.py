"""Recorded passes: rounding up changes nothing, in batches of any size and in any order."""

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from headwise.decoding.parallel.protocol import PartialTargets
from headwise.models.parallel import recorded_inference
from headwise.models.parallel.inference import ParallelInference
from headwise.models.parallel.recorded_inference import RecordedInference
from headwise.text.tokenizer import EOS, PAD
from tests.models.parallel.test_translator import VOCAB, build

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
SIZES = [(3,), (7, 2, 5, 5, 9), (3,), (1, 1), (3, 4, 2), (7, 2, 5, 5, 9), (12,)]


def sources(lengths: Sequence[int], seed: int) -> list[list[int]]:
    draw = torch.Generator().manual_seed(seed)
    return [torch.randint(4, VOCAB, (n,), generator=draw).tolist() for n in lengths]


def close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("limit", [4096, 30, 1])
def test_known_lengths(device: str, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded_inference, "MOST_POSITIONS", limit)
    model = build().to(device)
    plain, recorded = ParallelInference(model), RecordedInference(model)
    for seed, lengths in enumerate(SIZES * 2):
        given = sources(lengths, seed)
        found, expected = recorded.read_sources(given), plain.read_sources(given)
        width = expected.tokens.shape[1]
        assert torch.equal(found.tokens[:, :width], expected.tokens)
        close(found.hidden[:, :width], expected.hidden)
        close(recorded.length_scores(found, longest=13), plain.length_scores(expected, longest=13))
        sentence = torch.arange(len(given), device=device).repeat_interleave(2)
        length = torch.tensor([n + i for n in lengths for i in (1, 3)], device=device)
        known = torch.full((len(length), int(length.max())), PAD, device=device)
        known[:, 0] = 5
        known[torch.arange(len(length)), length - 1] = EOS
        candidates = PartialTargets(sentence, length, known)
        scores = [one.predict(read, candidates) for one, read in
                  ((recorded, found), (plain, expected))]  # fmt: skip
        real = torch.arange(known.shape[1], device=device) < length[:, None]
        close(scores[0][real], scores[1][real])
        assert scores[0].shape == scores[1].shape


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("structure", ["ctc", "graph"])
def test_upsampled_sources(device: str, structure: str) -> None:
    model = build(length={"kind": "upsampled", "factor": 3}, structure={"kind": structure}).to(
        device
    )
    plain, recorded = ParallelInference(model), RecordedInference(model)
    for seed, lengths in enumerate(SIZES * 2):
        given = sources(lengths, seed)
        found, expected = recorded.read_sources(given), plain.read_sources(given)
        if structure == "ctc":
            ours, theirs = recorded.predict_upsampled(found), plain.predict_upsampled(expected)
        else:
            ours, theirs = recorded.predict_graph(found), plain.predict_graph(expected)
        assert torch.equal(ours[-1], theirs[-1])
        for row, count in enumerate(theirs[-1].tolist()):
            close(ours[0][row, :count], theirs[0][row, :count])
            if structure == "graph":
                close(ours[1][row, :count, :count], theirs[1][row, :count, :count])


def test_results_are_the_callers_own() -> None:
    """The next pass of the same shape leaves them as they are."""
    recorded = RecordedInference(build())
    first = recorded.read_sources(sources((4,), 1))
    kept = first.hidden.clone()
    recorded.read_sources(sources((4,), 2))
    assert torch.equal(first.hidden, kept)
