"""S7 and R11: parsers meet generated and mutated input. Each gives a value or one of our errors;
none crashes, hangs or guesses.

Half of the input is drawn from nothing, half is a good file with a few bytes changed, which gets
much further in. Tokenizer files are read in a forked child: sentencepiece is C++, and what kills it
must not kill the test.
"""

import contextlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headwise.data.pairs.filtering import KEEP_ALL, check_text
from headwise.data.pairs.parallel_files import Pair
from headwise.data.text_lines import read_lines
from headwise.errors import CheckpointError, DataError, HeadwiseError, SettingsError
from headwise.randomness import numpy_generator
from headwise.settings import apply_overrides, check_settings, read_yaml
from headwise.storage import MANIFEST, verify_directory, write_manifest
from headwise.tasks.recipe_files import recipes_directory
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.text.tokenizer_pair import TokenizerPair, load_tokenizers
from headwise.training.checkpoints import KIND, read_checkpoint
from headwise.weights import read_tensors

FORMAT_1 = Path(__file__).parents[1] / "fixtures" / "format-1"
FEW = 60
MANY = pytest.mark.prove
counts = pytest.mark.parametrize("count", [FEW, pytest.param(10_000, marks=MANY)])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9)
JSON = st.recursive(
    SCALARS,
    lambda some: (
        st.lists(some, max_size=4) | st.dictionaries(st.text(max_size=9), some, max_size=4)
    ),
)


def fuzz(strategy: st.SearchStrategy, check: Callable[[Any], None], count: int) -> None:
    """`check` on that many values; five seconds for one of them, even on a busy machine, is a
    hang."""

    @settings(
        max_examples=count,
        deadline=5000,
        derandomize=count == FEW,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def run(value: Any) -> None:
        check(value)

    run()


def mutated(content: bytes) -> st.SearchStrategy[bytes]:
    """The content with some bytes replaced, a piece cut out or doubled."""
    place = st.integers(0, len(content) - 1)
    edits = st.lists(st.tuples(place, st.integers(0, 255)), min_size=1, max_size=4)

    def edit(drawn: tuple[list[tuple[int, int]], int, int, str]) -> bytes:
        changes, start, length, way = drawn
        changed = bytearray(content)
        for index, byte in changes:
            changed[index] = byte
        piece = changed[start : start + length]
        match way:
            case "cut":
                del changed[start : start + length]
            case "double":
                changed[start:start] = piece
        return bytes(changed)

    return st.tuples(
        edits, place, st.integers(1, 40), st.sampled_from(["edit", "cut", "double"])
    ).map(edit)


@counts
def test_recipes(count: int, record: Callable[..., None]) -> None:
    longest = [0]
    shipped = [path.read_bytes() for path in sorted(recipes_directory().glob("*.yaml"))]

    def check(content: bytes) -> None:
        try:
            check_settings(TranslationRecipe, read_yaml(content.decode("utf-8", errors="replace")))
        except SettingsError as error:
            longest[0] = max(longest[0], len(str(error)))

    fuzz(st.binary(max_size=200) | st.sampled_from(shipped).flatmap(mutated), check, count)
    assert longest[0] < 10_000
    if count > FEW:
        parsers = "recipes, overrides, manifests, checkpoints, safetensors, tokenizers"
        record(
            "S7",
            f"{count:,} generated or mutated inputs for each of: {parsers}",
            "a value or one of our errors",
        )


@counts
def test_overrides(count: int) -> None:
    base = read_yaml((recipes_directory() / "base.yaml").read_text(encoding="utf-8"))
    keys = st.sampled_from(
        ["training.steps", "model", "data.train.0", "decoding.kind", "text.size.x", ""]
    )

    def check(drawn: tuple[str, str, str]) -> None:
        with contextlib.suppress(SettingsError):
            check_settings(
                TranslationRecipe, apply_overrides(base, [f"{drawn[0]}{drawn[1]}{drawn[2]}"])
            )

    fuzz(
        st.tuples(
            keys | st.text(max_size=9), st.sampled_from(["=", "", ".x="]), st.text(max_size=20)
        ),
        check,
        count,
    )


@counts
def test_manifests(count: int, tmp_path: Path) -> None:
    bundle = Path(shutil.copytree(FORMAT_1 / "bundle", tmp_path / "bundle"))
    good = (bundle / MANIFEST).read_bytes()

    def check(content: bytes) -> None:
        (bundle / MANIFEST).write_bytes(content)
        try:
            verify_directory(bundle, kind="bundle")
        except CheckpointError:
            return
        assert json.loads(content) == json.loads(good), "accepted, though it says something else"

    generated = JSON.map(lambda value: json.dumps(value).encode())
    fuzz(generated | st.binary(max_size=99) | mutated(good), check, count)


@counts
def test_checkpoint_states(count: int, tmp_path: Path) -> None:
    """With a manifest that fits: somebody who changes a file can also write its hash."""
    checkpoint = Path(shutil.copytree(FORMAT_1 / "run/checkpoints/step-6", tmp_path / "step-6"))
    good = (checkpoint / "state.json").read_bytes()

    def check(content: bytes) -> None:
        (checkpoint / "state.json").write_bytes(content)
        write_manifest(checkpoint, kind=KIND)
        with contextlib.suppress(CheckpointError):
            read_checkpoint(checkpoint)

    fuzz(JSON.map(lambda value: json.dumps(value).encode()) | mutated(good), check, count)


@counts
def test_safetensors(count: int, tmp_path: Path) -> None:
    good = (FORMAT_1 / "run/best/step-6/model.safetensors").read_bytes()
    header_end = 8 + int.from_bytes(good[:8], "little")

    def check(content: bytes) -> None:
        (tmp_path / "file").write_bytes(content)
        with contextlib.suppress(CheckpointError):
            read_tensors(tmp_path / "file")

    headers = mutated(good[:header_end]).map(lambda start: start + good[header_end:])
    fuzz(st.binary(max_size=99) | headers | mutated(good), check, count)


def read_mutated_tokenizers(directory: Path, count: int) -> str:
    """In a child: what was wrong, if anything."""
    generator = numpy_generator("tokenizers", count)
    files = [path for path in sorted(directory.rglob("*")) if path.is_file()]
    for number in range(count):
        file = files[number % len(files)]
        good = file.read_bytes()
        file.write_bytes(change_bytes(good, generator))
        try:
            load_tokenizers(directory).source.encode("The cat sleeps.")
        except HeadwiseError:
            pass
        except Exception as error:
            return f"{file.name}, change {number}: {type(error).__name__}: {error}"
        file.write_bytes(good)
    return "good"


def change_bytes(content: bytes, generator: np.random.Generator) -> bytes:
    changed = bytearray(content)
    for _ in range(int(generator.integers(1, 4))):
        changed[int(generator.integers(len(changed)))] = int(generator.integers(256))
    return bytes(
        changed[: int(generator.integers(len(changed)))] if generator.random() < 0.2 else changed
    )


@counts
def test_tokenizers(count: int, tmp_path: Path) -> None:
    directory = Path(shutil.copytree(FORMAT_1 / "bundle/tokenizer", tmp_path / "tokenizer"))
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, read_mutated_tokenizers(directory, count).encode()[:4000])
        os._exit(0)
    os.close(writer)
    with open(reader, "rb") as stream:
        said = stream.read().decode()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert (status, said) == (0, "good")


@counts
def test_lines_of_text(count: int, tmp_path: Path, record: Callable[..., None]) -> None:
    """Any bytes as a corpus: read, cleaned, cut into pieces and put together again, or refused with
    the line."""
    tokenizers: TokenizerPair = load_tokenizers(FORMAT_1 / "bundle/tokenizer")
    path = tmp_path / "text"
    places: list[int | None] = []

    def check(content: bytes) -> None:
        path.write_bytes(content)
        try:
            lines = list(read_lines(path))
        except DataError as error:
            lines = []
            places.append(error.line)
        for line in lines:
            if line is not None:
                reason, pair = check_text(Pair(line, line, str(path), 1), KEEP_ALL)
                if reason is None:
                    tokenizers.target.decode(tokenizers.source.encode(pair.source))

    fuzz(
        st.binary(max_size=60)
        | st.text(max_size=60).map(lambda t: t.encode("utf-8", "surrogatepass")),
        check,
        count,
    )
    assert places
    assert None not in places
    if count > FEW:
        record("R11", f"{count:,} generated texts as a corpus", "read or refused with the line")
