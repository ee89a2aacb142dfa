"""The parallel translator: packed rows = sentences one by one, and what depends on what."""

from typing import Any

import pytest
import torch
from torch import Tensor

from headwise.errors import SettingsError
from headwise.models.choices import build_model
from headwise.models.parallel.choices import ParallelSettings
from headwise.models.parallel.inference import ParallelInference
from headwise.models.parallel.translator import ParallelTranslator
from headwise.settings import check_settings
from headwise.text.tokenizer import EOS, PAD
from tests.reference.sentences import Batch, Pair, draw_pairs, packed_row

VOCAB = 23
SMALL = {
    "kind": "parallel",
    "dim": 12,
    "encoder": {"layers": 1, "heads": 2},
    "decoder": {"layers": 2, "heads": 2},
    "feed_forward": {"kind": "relu", "hidden": 29},
}
VARIANTS: dict[str, dict[str, Any]] = {
    "classifier": {},
    "absolute": {"length": {"kind": "classifier", "relative": False, "classes": 31}},
    "copy": {"input": {"kind": "copy"}},
    "many_begin": {"length": {"kind": "many_begin", "positions": 17}},
    "rotary": {"position": {"kind": "rotary"}},
    "relative": {
        "position": {"kind": "relative", "limit": 3},
        "encoder": {"layers": 1, "heads": 2, "attention": {"kind": "full"}},
        "decoder": {"layers": 2, "heads": 2, "attention": {"kind": "full"}},
    },
    "window": {
        "decoder": {
            "layers": 1,
            "heads": 2,
            "attention": {"kind": "window", "left": 2, "right": 1},
        },
    },
}


def build(**changes: Any) -> ParallelTranslator:
    settings = check_settings(ParallelSettings, SMALL | changes)
    model = build_model(
        settings,
        source_size=VOCAB,
        target_size=VOCAB,
        generator=torch.Generator().manual_seed(3),
    )
    assert isinstance(model, ParallelTranslator)
    return model.double().eval()


def run(model: ParallelTranslator, source: Tensor, known: Tensor, **spans: Tensor) -> Tensor:
    tokens = model.read_target(
        known,
        source,
        source_segment=spans["source_segment"],
        target_segment=spans["target_segment"],
        target_position=spans["target_position"],
    )
    hidden: Tensor = model(source, tokens, **spans)
    return hidden


def draw(lengths: list[tuple[int, int]], *, seed: int) -> tuple[list[Pair], Batch]:
    """Pairs, and the row that packs them; a target has one more position than it has words."""
    pairs = draw_pairs(lengths, VOCAB, torch.Generator().manual_seed(seed))
    return pairs, packed_row(pairs)


def known_ends(segment: Tensor) -> Tensor:
    """The end at the last position of each sentence; nothing else is known."""
    after = torch.cat([segment[:, 1:], torch.zeros_like(segment[:, :1])], dim=1)
    return torch.where((segment > 0) & (segment != after), EOS, PAD)


def alone(source: list[int], known: list[int]) -> dict[str, Tensor]:
    source_row, target_row = torch.tensor([source]), torch.tensor([known])
    return {
        "source": source_row,
        "known": target_row,
        "source_segment": torch.ones_like(source_row),
        "target_segment": torch.ones_like(target_row),
        "source_position": torch.arange(len(source))[None],
        "target_position": torch.arange(len(known))[None],
    }


@pytest.mark.parametrize("name", VARIANTS)
def test_packed_rows_equal_sentences_one_by_one(name: str) -> None:
    model = build(**VARIANTS[name])
    pairs, row = draw([(3, 4), (6, 2), (2, 5)], seed=5)
    known = known_ends(row.target_segment)
    spans = {
        "source_segment": row.source_segment,
        "target_segment": row.target_segment,
        "source_position": row.source_position,
        "target_position": row.target_position,
    }
    packed = run(model, row.source, known, **spans)
    for number, (source, target) in enumerate(pairs, start=1):
        one = alone(source, [*[PAD] * (len(target) - 1), EOS])
        expected = run(model, **one)[0]
        here = packed[0][row.target_segment[0] == number]
        torch.testing.assert_close(here, expected, rtol=1e-9, atol=1e-9)


def test_every_position_depends_on_every_known_token() -> None:
    model = build()
    one = alone([5, 6, 7, EOS], [PAD, 9, PAD, PAD, EOS])
    before = run(model, **one)
    one["known"] = torch.tensor([[PAD, 9, PAD, 11, EOS]])
    changed = (run(model, **one) - before).abs().amax(-1)[0]
    assert (changed > 1e-6).all()


def test_without_positions_all_unknown_tokens_of_a_sentence_are_equal() -> None:
    model = build(length={"kind": "many_begin", "positions": 11})
    one = alone([5, 6, 7, EOS], [PAD] * 11)
    one["target_position"] = torch.zeros_like(one["target_position"])
    hidden = run(model, **one)[0]
    torch.testing.assert_close(hidden, hidden[:1].expand_as(hidden))


@pytest.mark.parametrize("relative", [True, False])
def test_length_probabilities_are_those_of_the_loss(relative: bool) -> None:
    length = {"kind": "classifier", "relative": relative, "classes": 41}
    model = build(length=length)
    pairs, row = draw([(3, 4), (6, 2), (2, 5), (7, 7), (1, 3)], seed=7)
    assert model.length is not None
    memory = model.encode(row.source, segment=row.source_segment, position=row.source_position)
    loss, count = model.length.loss(
        memory,
        source_segment=row.source_segment,
        source_position=row.source_position,
        target_segment=row.target_segment,
    )
    inference = ParallelInference(model)
    read = inference.read_sources([source[:-1] for source, _ in pairs])
    scores = inference.length_scores(read, longest=41)
    expected = -sum(scores[i, len(target) - 1] for i, (_, target) in enumerate(pairs))
    assert int(count) == len(pairs)
    torch.testing.assert_close(loss.float(), torch.as_tensor(expected).float())
    assert (scores.exp().sum(1) <= 1 + 1e-5).all()


def test_lengths_without_a_class_belong_to_the_nearest_one() -> None:
    model = build(length={"kind": "classifier", "classes": 4})
    assert model.length is not None
    found = model.length.classes(torch.tensor([1, 9, 10, 40]), torch.tensor([10, 10, 10, 10]))
    assert found.tolist() == [0, 1, 2, 3]


def test_a_copy_needs_one_embedding() -> None:
    with pytest.raises(SettingsError, match=r"needs one embedding .* set embedding\.tied=all"):
        build(input={"kind": "copy"}, embedding={"tied": "output"})
