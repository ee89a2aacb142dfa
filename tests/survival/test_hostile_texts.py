"""R12: drawn hostile lines through every way a text takes: read as a corpus, cleaned, cut,
translated, aligned.

Never a traceback, as many lines out as in, time that grows with the length. Short: 100 lines each
way; whole: 5,000.
"""

import json
import random
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from headwise.cli.main import main
from headwise.data.pairs.choices import DataSettings, read_corpus
from headwise.data.pairs.encoding import BlockEncoder, Gate
from headwise.data.pairs.filtering import FilterSettings, LengthLimits, check_text
from headwise.data.pairs.held_out import HeldOut
from headwise.data.pairs.parallel_files import Pair
from headwise.errors import DataError
from headwise.tasks.translation.translator import Translator
from headwise.text.choices import CharacterSettings, WordSettings, learn_tokenizers
from headwise.text.tokenizer_pair import TokenizerPair
from tests.attacks.hostile_texts import RUNS, draw_file, draw_line
from tests.explorer.conftest import BUNDLE
from tests.text.corpus import chinese, english

FEW, MANY = 100, 5_000
counts = pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.prove)])
SLOWEST_CHARACTER = 200e-6
"""Seconds of this thread; far more than a slow machine needs, far less than anything quadratic
takes."""


@cache
def model() -> Translator:
    return Translator.load(BUNDLE)


@cache
def tokenizers() -> dict[str, TokenizerPair]:
    return {
        "pieces": model().tokenizers,
        "words": learn_tokenizers(WordSettings(), english(), chinese()),
        "characters": learn_tokenizers(CharacterSettings(), english(), chinese()),
    }


@counts
def test_as_a_corpus(count: int, tmp_path: Path, record: Callable[..., None]) -> None:
    """Every file is read, each of its pairs kept or dropped for a reason, or it is refused with the
    line."""
    draw, places, kept, dropped, pairs_read = random.Random(1), list[str](), 0, 0, 0
    encoders = {
        name: BlockEncoder(pair, FilterSettings(), LengthLimits(99, 99), HeldOut())
        for name, pair in tokenizers().items()
    }
    for number in range(count // 10):
        sides = [draw_file(draw, lines=10, longest=300) for _ in range(2)]
        if number % 2:  # as many lines on both sides, or it is refused for that alone
            sides[1] = sides[0].replace(b"\n", b" x\n")
        for side, content in zip(("en", "de"), sides, strict=True):
            (tmp_path / f"corpus.{side}").write_bytes(content)
        corpus = DataSettings(source="en", target="de", train=str(tmp_path / "corpus")).train[0]
        try:
            pairs = list(read_corpus(corpus, source="en", target="de"))
        except DataError as error:
            places.append(str(error.file))
            continue
        pairs_read += len(pairs)
        for name, encoder in encoders.items():
            gate = Gate(drop_duplicates=True)
            gate.admit(pairs, encoder(pairs))
            assert (
                gate.report.read
                == len(pairs)
                == gate.report.kept + sum(gate.report.dropped.values())
            ), name
            kept, dropped = kept + gate.report.kept, dropped + sum(gate.report.dropped.values())
    assert places
    assert "None" not in places
    assert kept
    assert dropped
    if count == MANY:
        done = f"{count // 10:,} files of 10 drawn hostile lines as a corpus, 3 tokenizers"
        record(
            "R12",
            done,
            f"{len(places)} refused with the line; of {pairs_read:,} pairs each kept or "
            "dropped for a reason",
        )


@counts
def test_cut_and_put_together(count: int) -> None:
    """What promises to come back does; time grows with the length."""
    draw = random.Random(2)
    for number in range(count):
        line = draw_line(draw, longest=400)
        start = time.thread_time()
        reason, pair = check_text(_pair(line), FilterSettings(drop_identical=False))
        if reason is not None:
            continue
        for name, both in tokenizers().items():
            ids = both.source.encode(pair.source)
            assert both.source.encode_batch([pair.source]) == [ids], (name, line)
            text = both.source.decode(ids)
            assert not both.source.reversible or text == pair.source, (name, line)
            assert len(both.source.pieces(ids)) == len(ids), (name, line)
        assert time.thread_time() - start < 1.0, (number, line)


@pytest.mark.parametrize("number", range(len(RUNS)))
@pytest.mark.parametrize("kind", ["pieces", "words", "characters"])
def test_time_grows_with_the_length(kind: str, number: int) -> None:
    length = 20_000
    line = RUNS[number](length)
    tokenizer = tokenizers()[kind].source
    start = time.thread_time()
    check_text(_pair(line), FilterSettings(max_characters=60_000))
    tokenizer.decode(tokenizer.encode(line))
    assert time.thread_time() - start < length * SLOWEST_CHARACTER


@counts
def test_translated_and_aligned(
    count: int, tmp_path: Path, capfd: pytest.CaptureFixture[str], record: Callable[..., None]
) -> None:
    """As many lines out as in, none of them a traceback; the links of an alignment lie inside both
    sentences."""
    draw = random.Random(3)
    lines = [draw_line(draw, longest=120).rstrip("\r") for _ in range(count)]
    (tmp_path / "text").write_text(
        "".join(f"{line}\n" for line in lines), encoding="utf-8", newline=""
    )
    words = ["translate", "--model", str(BUNDLE), "--set", "kind=greedy", "--set", "max_length=7"]
    assert main([*words, str(tmp_path / "text")]) == 0
    plain = capfd.readouterr()
    assert plain.out.count("\n") == count
    assert plain.out.endswith("\n")
    assert "Traceback" not in plain.err
    assert main([*words, "--json", str(tmp_path / "text")]) == 0
    told = [json.loads(line) for line in capfd.readouterr().out.split("\n")[:-1]]
    assert len(told) == count
    num_links = 0
    for line, one in zip(lines, told, strict=True):
        for source, target in one.get("alignment") or []:
            assert 0 <= source < len(one["source_pieces"]), line
            assert 0 <= target < len(one["target_pieces"]), line
            num_links += 1
    assert num_links
    if count == MANY:
        record(
            "R12",
            f"{count:,} drawn hostile lines translated and aligned",
            f"{count:,} lines, {num_links:,} links",
        )


@counts
def test_a_file_that_is_no_text_is_refused_with_the_line(
    count: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    draw, statuses = random.Random(4), set[int]()
    for _ in range(count // 20):
        content = draw_file(draw, lines=3, longest=40)
        (tmp_path / "text").write_bytes(content)
        status = main(
            ["translate", "--model", str(BUNDLE), "--set", "max_length=3", str(tmp_path / "text")]
        )
        said = capfd.readouterr()
        statuses.add(status)
        assert "Traceback" not in said.err
        if status == 0:
            content.decode()
        else:
            assert status == 3, said.err
            assert f"{tmp_path / 'text'}:" in said.err
    assert statuses <= {0, 3}


def _pair(line: str) -> Pair:
    return Pair(line, line, "file", 1)
