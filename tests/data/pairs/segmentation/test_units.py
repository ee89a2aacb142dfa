from collections import Counter

import numpy as np
import pytest

from headwise.data.pairs.segmentation.units import (
    UnitBorders,
    collect_units,
    cut_sentences,
    cut_store,
    turn_round,
)
from headwise.data.shards import Ragged, Side
from headwise.text.piece_table import PieceTable
from headwise.text.reversed_tokenizer import as_written

from .pocket_pairs import Algorithm, prepared


def units_by_hand(texts: list[str], pieces: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Pieces are in one unit if their neighbouring characters stand together in some piece; what
    is no text ("") is alone."""
    together = {text[i : i + 2] for text in pieces for i in range(len(text) - 1)}
    units: list[tuple[str, ...]] = []
    for number, text in enumerate(texts):
        before = texts[number - 1] if number else ""
        if before and text and before[-1] + text[0] in together:
            units[-1] = (*units[-1], text)
        else:
            units.append((text,))
    return units


@pytest.mark.parametrize("order", ["written", "reversed"])
@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("algorithm", ["bpe", "unigram"])
def test_sentences_are_cut_where_no_piece_crosses(
    algorithm: Algorithm, side: Side, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwise.data.pairs.segmentation.units.BLOCK_PAIRS", 70)
    data = prepared(algorithm, order)
    tokenizer = data.tokenizers.source if side == "source" else as_written(data.tokenizers.target)
    table = PieceTable.of(tokenizer.model)  # type: ignore[attr-defined]
    backwards = order == "reversed" and side == "target"
    borders = UnitBorders.of(table)
    blocks = list(cut_store(data.train, side, borders, backwards=backwards))
    assert len(blocks) > 2
    units = collect_units(iter(blocks))
    known = [tuple(table.texts[t] for t in one.tolist()) for one in units.tokens.split()]
    found: list[list[tuple[str, ...]]] = []
    for block in blocks:
        names = iter([known[number] for number in units.find(block.hashes).tolist()])
        found += [[next(names) for _ in range(count)] for count in block.per_sentence.tolist()]
    expected = []
    for pair in range(len(data.train)):
        tokens = (data.train.source(pair) if side == "source" else data.train.target(pair)).tolist()
        texts = [table.texts[token] for token in (tokens[::-1] if backwards else tokens)]
        expected.append(units_by_hand(texts, table.texts))
    assert found == expected
    counts = Counter(unit for sentence in expected for unit in sentence if unit != ("",))
    assert units.counts.tolist() == sorted(units.counts.tolist(), reverse=True)
    for name, count in zip(known, units.counts.tolist(), strict=True):
        assert name == ("",) or count == counts[name], "bytes and tags have no text"
    if side == "source":
        assert known[0] != (), "the tag is a unit of its own"
        assert ("",) in known


def test_sentences_without_tokens_have_no_units() -> None:
    borders = UnitBorders.of(PieceTable(("", "a", "b", "ab"), np.zeros(4)))
    sentences = Ragged(np.array([1, 2, 2, 1]), np.array([0, 3, 0, 1]))
    block = cut_sentences(sentences, borders)
    assert block.per_sentence.tolist() == [0, 2, 0, 1]
    assert block.units.lengths.tolist() == [2, 1, 1]
    assert turn_round(sentences).tokens.tolist() == [2, 2, 1, 1]


def test_a_vocabulary_without_text_has_units_of_one_token() -> None:
    borders = UnitBorders.of(PieceTable(("", "", ""), np.zeros(3)))
    block = cut_sentences(Ragged(np.array([1, 2]), np.array([2])), borders)
    assert block.units.lengths.tolist() == [1, 1]
