"""Blocks encoded by other processes are the same as blocks encoded here."""

import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from headwise.data.pairs import encoding_workers as workers
from headwise.data.pairs.encoding import NAMES, BlockEncoder, Gate
from headwise.data.pairs.encoding_workers import encode_blocks
from headwise.data.pairs.filtering import FilterSettings, LengthLimits, check_lengths, check_text
from headwise.data.pairs.held_out import HeldOut
from headwise.data.pairs.parallel_files import Pair
from headwise.errors import HeadwiseError
from headwise.text.choices import CharacterSettings, TokenizerPair, learn_tokenizers
from tests.text.corpus import chinese, english

LIMITS = LengthLimits(61, 47)


def made_pairs() -> list[Pair]:
    """Good pairs and one of every defect; a lone carriage return and a line separator stay inside
    their lines.
    """
    both = [
        *zip(english()[:97], chinese()[:97], strict=True),
        ("", "空"),
        ("same", "same"),
        ("a\x00", "b"),
    ]
    both += [
        ("  spaced \u2028 out ", "外\r面"),
        ("x" * 2001, "长"),
        ("a", "猫" * 46),
        ("y" * 62, "长"),
        *both[:5],
    ]
    pairs = [Pair(source, target, "file", line) for line, (source, target) in enumerate(both, 1)]
    return [
        *pairs,
        Pair("one column", "", "file", 1000, "missing_column"),
        Pair("", "", "file", 1001, "long_line"),
    ]


@pytest.fixture
def tokenizers(tmp_path: Path) -> TokenizerPair:
    found = learn_tokenizers(CharacterSettings(), english(), chinese())
    (tmp_path / "tokenizers").mkdir()
    found.save(tmp_path / "tokenizers")
    return found


def cut(pairs: Sequence[Pair], size: int) -> Iterator[Sequence[Pair]]:
    return (pairs[first : first + size] for first in range(0, len(pairs), size))


def held_out() -> HeldOut:
    return HeldOut.of([Pair(english()[3].upper(), "nothing", "valid", 1)])


def test_one_pair_at_a_time_gives_the_same(tokenizers: TokenizerPair) -> None:
    pairs, settings = made_pairs(), FilterSettings()
    gate, seen, expected = Gate(drop_duplicates=True), set(), []
    source, target = gate.admit(
        pairs, BlockEncoder(tokenizers, settings, LIMITS, held_out())(pairs)
    )
    for pair in pairs:
        reason, clean = check_text(pair, settings)
        if reason is not None or clean[:2] in seen:
            continue
        seen.add(clean[:2])
        ids = [tokenizers.source.encode(clean.source), tokenizers.target.encode(clean.target)]
        lengths = [len(side) for side in ids]
        if check_lengths(
            *lengths, limits=LIMITS, max_ratio=settings.max_ratio
        ) is None and not held_out().holds(clean):
            expected.append(ids)
    assert [
        [s.tolist(), t.tolist()] for s, t in zip(source.split(), target.split(), strict=True)
    ] == expected
    assert gate.report.read == len(pairs) == gate.report.kept + sum(gate.report.dropped.values())
    names = {
        "empty",
        "identical",
        "control_characters",
        "max_characters",
        "max_tokens",
        "max_ratio",
        "duplicate",
    }
    assert (
        set(gate.report.dropped)
        == names | {"leaked", "missing_column", "long_line"}
        == set(NAMES.values())
    )


def test_other_processes_give_the_same(tokenizers: TokenizerPair, tmp_path: Path) -> None:
    encoder = BlockEncoder(tokenizers, FilterSettings(), LIMITS, held_out())
    pairs = made_pairs()
    found = encode_blocks(
        encoder, cut(pairs, 7), tokenizers=tmp_path / "tokenizers", num_processes=2, alone=1
    )
    blocks = list(found)
    assert [pair for block, _ in blocks for pair in block] == pairs
    for block, encoded in blocks:
        expected = encoder(block)
        assert encoded.reasons.tolist() == expected.reasons.tolist()
        assert np.array_equal(encoded.hashes, expected.hashes)
        for side in ("source", "target"):
            assert [s.tolist() for s in getattr(encoded, side).split()] == [
                s.tolist() for s in getattr(expected, side).split()
            ]


def test_a_worker_that_is_killed_is_named(
    tokenizers: TokenizerPair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = BlockEncoder(tokenizers, FilterSettings(), LIMITS, HeldOut())
    started = []
    start = workers.subprocess.Popen

    def remember(*arguments: object, **options: object) -> object:
        started.append(start(*arguments, **options))
        return started[-1]

    monkeypatch.setattr(workers.subprocess, "Popen", remember)
    found = encode_blocks(
        encoder, cut(made_pairs(), 3), tokenizers=tmp_path / "tokenizers", num_processes=2, alone=0
    )
    next(found)
    for process in started:
        os.kill(process.pid, signal.SIGKILL)
    with pytest.raises(HeadwiseError, match=r"tokenises text ended by itself \(status -9\)"):
        list(found)
    assert all(process.poll() is not None for process in started)
