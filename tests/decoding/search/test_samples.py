"""Samples of a training: the recorded engine draws those of the plain one, batch after batch."""

import pytest
import torch

from headwise.decoding.engines import recorded
from headwise.decoding.search.samples import draw_samples as draw_tables
from headwise.models.training_stepper import TrainingStepper
from headwise.models.transformer_stepper import TransformerStepper
from tests.models.test_encoder_decoder import VOCAB, make


def draw_samples(*given, **settings):
    return draw_tables(*given, **settings).hypotheses()


def same(found, expected) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        assert [one.tokens for one in ours] == [one.tokens for one in theirs]
        assert [one.finished for one in ours] == [one.finished for one in theirs]
        for one, other in zip(ours, theirs, strict=True):
            assert one.token_log_probabilities == pytest.approx(
                other.token_log_probabilities, abs=1e-4
            )


def sources_of(count: int, generator: torch.Generator) -> list[list[int]]:
    return [
        torch.randint(4, VOCAB, (1 + i % 9,), generator=generator).tolist() for i in range(count)
    ]


def test_engines_draw_the_same_through_smaller_buffers_and_prefixes(
    generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded, "FEW_ROWS", 4)
    model = make("pre_norm", generator)
    model.output.weight.data[2] += 0.5  # ends come early
    sources = sources_of(23, generator)
    steppers = TransformerStepper(model), TransformerStepper(model, static=True)
    narrowed = []
    narrow = recorded.RecordedSearch.narrow
    monkeypatch.setattr(
        recorded.RecordedSearch, "narrow", lambda own: narrowed.append(own) or narrow(own)
    )
    for seed, batch in enumerate((sources, sources[::-1], sources[:7], sources)):
        prefixes = [source[: seed % 3] for source in batch] if seed else None
        limits = [4 + 2 * len(source) for source in batch]
        settings = {"count": 3, "temperature": 0.8, "seed": seed, "prefixes": prefixes}
        plain, static = (
            draw_samples(stepper, batch, limits=limits, **settings) for stepper in steppers
        )
        same(static, plain)
        for one, prefix in zip(static, prefixes or [], strict=False):
            assert {sample.tokens[: len(prefix)] for sample in one} == {tuple(prefix)}
    assert narrowed
    assert len({sample.tokens for sample in static[0]}) > 1


def test_batches_of_all_sizes_use_one_memory(generator: torch.Generator) -> None:
    """Sizes in turn, with what the others left there, and a larger one that needs more."""
    model = make("pre_norm", generator).train()
    kept = TrainingStepper(model, static=True)
    batches = [sources_of(count, generator) for count in (9, 3, 9, 17, 4, 9, 17, 3)]
    places = []
    for seed, sources in enumerate(batches):
        settings = {"count": 2, "temperature": 1.0, "seed": seed, "limits": [9] * len(sources)}
        with kept.at_present() as stepper:
            found = draw_samples(stepper, sources, **settings)
            places.append({one.caches[0].keys.data_ptr() for one in stepper._buffers.values()})
        same(found, draw_samples(TransformerStepper(model), sources, **settings))
    assert all(len(one) == 1 for one in places)
    assert len(stepper._buffers) == 4


@pytest.mark.parametrize("variant", ["pre_norm", "learned_gelu"])
def test_recorded_steps_draw_with_the_weights_of_the_moment(
    variant: str, generator: torch.Generator
) -> None:
    """Updates in place, tensors that were exchanged, and gradients that lie there meanwhile."""
    model = make(variant, generator).train()
    sources, kept = sources_of(9, generator), TrainingStepper(model, static=True)
    settings = {"count": 4, "temperature": 1.0, "limits": [8] * len(sources)}
    buffers, drawn = [], []
    for update in range(4):
        with kept.at_present() as stepper:
            found = draw_samples(stepper, sources, seed=3, **settings)
        with TrainingStepper(model, static=False).at_present() as stepper:
            same(found, draw_samples(stepper, sources, seed=3, **settings))
        assert model.training
        drawn.append([one.tokens for here in found for one in here])
        buffers.append(list(kept._copies[torch.float32]._buffers.values()))
        with torch.no_grad():
            for weight in model.parameters():
                step = 0.1 * torch.randn(weight.shape, generator=generator)
                weight.grad = step
                if update == 2:
                    weight.data = weight + step
                else:
                    weight.add_(step)
    assert buffers[0] == buffers[1] == buffers[3]
    assert len(buffers[0]) == 1
    assert drawn[0] != drawn[1] != drawn[2] != drawn[3]


def test_under_autocast_the_copy_has_its_dtype(generator: torch.Generator) -> None:
    model = make("pre_norm", generator).train()
    sources, kept = sources_of(5, generator), TrainingStepper(model, static=True)
    settings = {"count": 6, "temperature": 1.0, "seed": 1, "limits": [6] * 5}
    with torch.autocast("cpu", torch.bfloat16), kept.at_present() as stepper:
        assert not torch.is_autocast_enabled("cpu")
        rough = draw_samples(stepper, sources, **settings)
    with kept.at_present() as stepper:
        exact = draw_samples(stepper, sources, **settings)
    assert {one.output.weight.dtype for one in (s.model for s in kept._copies.values())} == {
        torch.float32,
        torch.bfloat16,
    }
    pairs = [
        (ours.token_log_probabilities[0], theirs.token_log_probabilities[0])
        for one, other in zip(rough, exact, strict=True)
        for ours, theirs in zip(one, other, strict=True)
        if ours.tokens == theirs.tokens
    ]
    assert len(pairs) > 20
    assert max(abs(a - b) for a, b in pairs) < 0.05
