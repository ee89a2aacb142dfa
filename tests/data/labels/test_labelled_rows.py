"""Rows of labelled sentences: each sentence once an epoch, and the same stream from every cursor
and for every share.
"""

from itertools import islice

import numpy as np
import pytest
import torch

from headwise.data.batching import Share
from headwise.data.labels.labelled_rows import (
    LabelledRows,
    LabelledTokens,
    pack_rows,
    rows_in_order,
)
from headwise.errors import CheckpointError

LENGTHS = np.random.default_rng(3).integers(1, 11, size=31)


def _store() -> LabelledTokens:
    total = int(LENGTHS.sum())
    offsets = np.concatenate([[0], np.cumsum(LENGTHS)])
    return LabelledTokens(
        np.arange(4, 4 + total),
        np.arange(total) % 3,
        offsets,
        np.arange(2 * total).reshape(total, 2),
    )


def _rows(share: Share = Share()) -> LabelledRows:
    return LabelledRows(_store(), rows=2, row_tokens=11, seed=5, fingerprint="f", share=share)


def test_every_sentence_once_an_epoch() -> None:
    store, seen = _store(), []
    for batch, cursor in _rows().stream(None):
        assert batch.tokens.shape == (2, 11)
        seen += batch.tokens[batch.segment != 0].tolist()
        if cursor["epoch"] == 1:
            break
    assert sorted(seen[: len(store.tokens)]) == store.tokens.tolist()


def test_a_row_tells_its_sentences_apart() -> None:
    store = _store()
    tokens = []
    for batch, rows in rows_in_order(store, rows=3, row_tokens=11):
        assert batch.affixes is not None
        for row, sentences in enumerate(rows):
            for number, sentence in enumerate(sentences, start=1):
                here = batch.segment[row] == number
                cut = slice(store.offsets[sentence], store.offsets[sentence + 1])
                assert batch.tokens[row][here].tolist() == store.tokens[cut].tolist()
                assert batch.targets[row][here].tolist() == store.targets[cut].tolist()
                assert batch.position[row][here].tolist() == list(range(LENGTHS[sentence]))
                assert store.affixes is not None
                assert batch.affixes[row][here].tolist() == store.affixes[cut].tolist()
        tokens += batch.tokens[batch.segment != 0].tolist()
    assert tokens == store.tokens.tolist()


def test_resumed_is_uninterrupted() -> None:
    whole = list(islice(_rows().stream(None), 40))
    for number in (0, 7, 19, 33):
        batch, _ = next(_rows().stream(whole[number][1]))
        assert torch.equal(batch.tokens, whole[number + 1][0].tokens)


def test_processes_put_together_are_one() -> None:
    alone = list(islice(_rows(Share(0, 1, 2)).stream(None), 12))
    shares = [list(islice(_rows(Share(number, 2, 2)).stream(None), 6)) for number in range(2)]
    for update in range(6):
        together = torch.cat([share[update][0].tokens for share in shares])
        assert torch.equal(
            together, torch.cat([batch.tokens for batch, _ in alone[2 * update : 2 * update + 2]])
        )


def test_a_cursor_of_something_else() -> None:
    with pytest.raises(
        CheckpointError, match="is not a position in the data; epoch and row are needed"
    ):
        next(_rows().stream({"epoch": 0, "chunk": 0}))


def test_sentences_without_words_fill_a_row_of_nothing() -> None:
    assert pack_rows(np.array([0, 0]), np.arange(2), 7) == [[0, 1]]
