import numpy as np
import pytest

from headwise.data.pairs.segmentation import alternatives
from headwise.data.pairs.segmentation.alternatives import (
    FEWEST,
    MOST,
    Alternatives,
    draw_alternatives,
)
from headwise.data.pairs.segmentation.units import UnitBorders, Units, collect_units, cut_store
from headwise.data.shards import Ragged
from headwise.text.piece_table import PieceTable

from .pocket_pairs import SETTINGS, Algorithm, prepared


def units_of(algorithm: Algorithm) -> tuple[PieceTable, Units]:
    data = prepared(algorithm)
    table = PieceTable.of(data.tokenizers.source.model)  # type: ignore[attr-defined]
    borders = UnitBorders.of(table)
    return table, collect_units(cut_store(data.train, "source", borders, backwards=False))


def of_unit(found: Alternatives, unit: int) -> list[list[int]]:
    return [
        found.tokens[found.starts[i] : found.starts[i] + found.lengths[i]].tolist()
        for i in range(found.first[unit], found.first[unit + 1])
    ]


@pytest.mark.parametrize("algorithm", ["bpe", "unigram"])
def test_a_unit_has_its_best_segmentation_and_others_of_the_same_text(
    algorithm: Algorithm,
) -> None:
    table, units = units_of(algorithm)
    found = draw_alternatives(units, table, SETTINGS[algorithm])
    several = 0
    for number, best in enumerate(units.tokens.split()):
        each = of_unit(found, number)
        assert each[0] == best.tolist()
        text = "".join(table.texts[token] for token in each[0])
        if len(text) < 2:
            assert len(each) == 1, "a character, a byte and a tag have no other segmentation"
            continue
        assert len(each) == 1 + np.clip(units.counts[number], FEWEST, MOST)
        assert {"".join(table.texts[token] for token in one) for one in each} == {text}
        several += len({tuple(one) for one in each}) > 1
    assert several > 50


@pytest.mark.parametrize("algorithm", ["bpe", "unigram"])
def test_draws_depend_on_the_unit_alone(
    algorithm: Algorithm, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, units = units_of(algorithm)
    whole = draw_alternatives(units, table, SETTINGS[algorithm])
    monkeypatch.setattr(alternatives, "_BLOCK_CHARACTERS", 99)
    tokens = units.tokens.split()
    chosen = np.arange(len(tokens))[::-3]
    lengths = units.tokens.lengths[chosen]
    some = Units(
        Ragged(np.concatenate([tokens[i] for i in chosen]), lengths),
        units.counts[chosen],
        units.hashes[chosen],
    )
    part = draw_alternatives(some, table, SETTINGS[algorithm])
    for place, number in enumerate(chosen.tolist()):
        assert of_unit(part, place) == of_unit(whole, number)


def test_units_that_others_cut_by_other_rules_are_left_alone() -> None:
    """The best segmentation of a model that merges in another order is not ours to change."""
    table = PieceTable(("a", "b", "c", "ab", "bc"), np.array([0.0, 0, 0, -1, -2]))
    ours, other = [3, 2], [0, 4]
    units = Units(
        Ragged(np.array(ours + other), np.array([2, 2])),
        np.array([9, 9]),
        np.array([1, 2], dtype=np.uint64),
    )
    found = draw_alternatives(units, table, SETTINGS["bpe"])
    assert len(of_unit(found, 0)) == 10
    assert of_unit(found, 1) == [other]


def test_a_unit_that_cannot_be_drawn_keeps_its_best_segmentation() -> None:
    table = PieceTable(("", "ab", "b"), np.array([0.0, -1.0, -1.0]))
    units = Units(
        Ragged(np.array([2, 1, 1, 2]), np.array([2, 2])),
        np.array([3, 3]),
        np.array([1, 2], dtype=np.uint64),
    )
    found = draw_alternatives(units, table, SETTINGS["unigram"])
    assert of_unit(found, 0) == [[2, 1]] * (1 + FEWEST)
    assert of_unit(found, 1) == [[1, 2]] * (1 + FEWEST)


def test_long_units_keep_their_best_segmentation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alternatives, "LONGEST", 4)
    table, units = units_of("bpe")
    found = draw_alternatives(units, table, SETTINGS["bpe"])
    for number, best in enumerate(units.tokens.split()):
        size = int(table.lengths[best].sum())
        assert (len(of_unit(found, number)) == 1) == (size > 4 or size < 2)
