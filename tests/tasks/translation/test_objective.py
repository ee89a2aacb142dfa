from pathlib import Path

import pytest
import torch

from headwise.data.batching import Cursor
from headwise.data.shards import TokenStore
from headwise.tasks.translation.objective import (
    PackedPairs,
    RowShape,
    TranslationLoss,
    validation_loss,
)
from headwise.tasks.translation.translator import Translator


def test_packing_does_not_change_the_loss(translator: Translator, tiny_run: Path) -> None:
    """Many pairs in a row, or one pair in each: the sum over tokens is the same."""
    store = TokenStore(tiny_run / "data" / "valid")
    task = TranslationLoss(translator.model, 0.1)
    losses = [
        validation_loss(task, store, RowShape(rows, source, target))
        for rows, source, target in ((1, 64, 64), (7, 96, 128), (16, 58, 64))
    ]
    for other in losses[1:]:
        assert other["loss"] == pytest.approx(losses[0]["loss"], abs=1e-5)
        assert other["perplexity"] == pytest.approx(losses[0]["perplexity"], rel=1e-5)


def test_the_stream_goes_on_from_any_cursor(tiny_run: Path) -> None:
    pairs = PackedPairs(TokenStore(tiny_run / "data" / "train"), RowShape(4, 58, 64), 7, "x")
    stream = pairs.stream(None)
    seen = [next(stream) for _ in range(5)]
    again = pairs.stream(seen[1][1])
    for batch, cursor in seen[2:]:
        other, place = next(again)
        assert torch.equal(batch.source, other.source)
        assert torch.equal(batch.target_output, other.target_output)
        assert place == cursor == Cursor.from_json(cursor).to_json()
