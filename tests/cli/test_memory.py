"""`headwise memory` and the options `--memory` as they are typed: output, exit status, refusals."""

import json
import shutil
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from headwise.pocket import sentences
from headwise.tasks.memory_reader import ReadBlock
from headwise.tasks.run import train
from headwise.tasks.translation import pair_reader
from headwise.tasks.translation.pair_reader import PairReader
from tests.cli.conftest import Headwise
from tests.tasks.language.test_language_start import MODELS, recipe_of


@pytest.fixture(scope="module", name="language_run")
def _language_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("language")
    train(recipe_of(folder, MODELS["decoder_only"]), run=folder / "run")
    return folder / "run"


@pytest.fixture(name="store")
def _store(tiny_run: Path, headwise: Headwise) -> Path:
    pairs = [(one.text("en"), one.text("de")) for one in sentences("train", 20)]
    for side, ending in enumerate(("en", "de")):
        text = "".join(f"{pair[side]}\n" for pair in pairs)
        Path(f"my.{ending}").write_text(text, encoding="utf-8")
    answer = headwise("memory", "build", tiny_run, "--output", "store", "my", "--json")
    assert (answer.status, json.loads(answer.out)["lines"]) == (0, 20)
    return Path("store")


def test_a_store_is_built_tuned_described_and_asked(
    tiny_run: Path, store: Path, headwise: Headwise
) -> None:
    answer = headwise("memory", "describe", store)
    assert "not tuned" in answer.out
    assert "my.en" in answer.out
    answer = headwise("memory", "tune", store, "my")
    assert "without the memory" in answer.out
    tuned = json.loads(headwise("memory", "describe", store, "--json").out)
    assert tuned["tuning"]["perplexity"] < tuned["tuning"]["perplexity_alone"]
    assert json.loads(headwise("memory", "add", store, "my", "--json").out)["lines"] == 40
    assert "记忆" in headwise("--lang", "zh", "memory", "describe", store).out
    text = Path("my.en").read_text(encoding="utf-8").splitlines()[0]
    words = ["translate", "--model", tiny_run, "--memory", store, "--text", text, "--json"]
    answer = headwise(*words, "--set", "memory.neighbours=2")
    vote = json.loads(answer.out)["memory"][0]["votes"][0]
    assert {"source", "target", "corpus", "line", "share"} <= vote.keys()
    words = ["evaluate", "--model", tiny_run, "--source", "my.en", "--reference", "my.de", "--json"]
    with_memory = json.loads(headwise(*words, "--memory", store, "--set", "max_length=40").out)
    assert with_memory["bleu"] > json.loads(headwise(*words).out)["bleu"]


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["--set", "memory.weight=1.5"], 2, "- decoding.memory.weight: must be at most 1"),
        (["--set", "memory.neighbours=0"], 2, "- decoding.memory.neighbours: must be at least 1"),
        (["--set", "kind=drafted"], 2, "kind=drafted takes no memory"),
    ],
)
def test_settings_that_cannot_be_are_refused(
    words: list[str], status: int, said: str, tiny_run: Path, store: Path, headwise: Headwise
) -> None:
    answer = headwise("translate", "--model", tiny_run, "--memory", store, "--text", "a", *words)
    assert (answer.status, answer.out) == (status, "")
    assert said in answer.err


def test_an_interrupted_build_goes_on(
    tiny_run: Path, headwise: Headwise, monkeypatch: pytest.MonkeyPatch
) -> None:
    for ending in ("en", "de"):
        lines = [one.text(ending) for one in sentences("train", 8)]
        Path(f"my.{ending}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    monkeypatch.setattr(pair_reader, "BLOCK_PAIRS", 2)
    monkeypatch.setattr("headwise.neighbours.writing.SHARD_BYTES", 64)
    assert headwise("memory", "build", tiny_run, "--output", "whole", "my").status == 0
    reads = PairReader.read

    def break_off(self: PairReader, texts: list[str], *, skip: int) -> Iterator[ReadBlock]:
        yield from islice(reads(self, texts, skip=skip), 2)
        raise KeyboardInterrupt

    monkeypatch.setattr(PairReader, "read", break_off)
    assert headwise("memory", "build", tiny_run, "--output", "cut", "my").status == 130
    monkeypatch.setattr(PairReader, "read", reads)
    answer = headwise("translate", "--model", tiny_run, "--memory", "cut", "--text", "a")
    assert (answer.status, "is not finished" in answer.err) == (2, True)
    answer = headwise("memory", "build", tiny_run, "--output", "cut", "my")
    assert (answer.status, "going on after line 4" in answer.err) == (0, True)
    whole, cut = (
        {one.name: one.read_bytes() for one in Path(name).iterdir()} for name in ("whole", "cut")
    )
    assert whole == cut


def test_the_commands_of_language_models_ask_a_store(
    language_run: Path, headwise: Headwise
) -> None:
    Path("text").write_text("the cat eats\na dog sleeps\n", encoding="utf-8")
    assert headwise("memory", "build", language_run, "--output", "words", "text").status == 0
    options = ["--model", language_run, "--memory", "words", "--set", "memory.weight=0.9"]
    for words in (
        ["score", "--json", "the cat eats", "a dog sleeps"],
        ["predict", "--json", "the cat"],
        ["generate", "--json", "the cat"],
    ):
        answer = headwise(*words, *options)
        assert (answer.status, bool(answer.out)) == (0, True), answer.err
        assert answer.out != headwise(*words, *options[:2]).out


def test_a_setting_is_named_as_it_was_given(language_run: Path, headwise: Headwise) -> None:
    Path("text").write_text("the cat eats\n", encoding="utf-8")
    assert headwise("memory", "build", language_run, "--output", "words", "text").status == 0
    words = ["generate", "--model", language_run, "--memory", "words"]
    answer = headwise(*words, "--set", "memory.weight=2")
    assert (answer.status, "- memory.weight: must be at most 1" in answer.err) == (2, True)
    answer = headwise(*words, "--set", "memory.neighbors=2")
    assert (answer.status, "- memory.neighbors: unknown key" in answer.err) == (2, True)


@pytest.mark.parametrize("command", ["translate", "evaluate", "score", "predict", "generate"])
def test_an_unfinished_model_has_no_memory(
    command: str, tiny_run: Path, language_run: Path, store: Path, headwise: Headwise
) -> None:
    translates = command in ("translate", "evaluate")
    words = ["--model", tiny_run if translates else language_run, "--checkpoint", "best"]
    words += ["--source", "my.en", "--reference", "my.de"] if command == "evaluate" else []
    answer = headwise(command, *words, "--memory", store)
    assert (answer.status, answer.out) == (2, "")
    assert "a store belongs to a finished model" in answer.err
    if translates:
        answer = headwise(command, *words, "--set", f"memory.store={store}")
        assert (answer.status, "a finished model" in answer.err) == (2, True)


def test_a_store_is_no_place_for_another(tiny_run: Path, store: Path, headwise: Headwise) -> None:
    answer = headwise("memory", "build", tiny_run, "--output", store, "my")
    assert (answer.status, "headwise memory add" in answer.err) == (2, True)
    inside = headwise("memory", "build", tiny_run, "--output", store / "other", "my")
    assert (inside.status, "lies inside" in inside.err) == (2, True)
    link = Path("link")
    link.symlink_to(store / "other")
    assert headwise("memory", "build", tiny_run, "--output", link, "my").status == 2
    shutil.copytree(tiny_run / "model", "bundle")
    answer = headwise("memory", "build", tiny_run, "--output", "bundle", "my")
    assert (answer.status, "no store of neighbours" in answer.err) == (2, True)


def test_damage_is_status_3_and_a_wrong_command_2(
    tiny_run: Path, store: Path, headwise: Headwise
) -> None:
    assert headwise("memory", "build", tiny_run, "--output", store, "my").status == 2
    assert headwise("memory", "describe", "my.en").status == 3
    assert headwise("memory", "build", tiny_run, "--output", "new", "none").status == 3
    for ending in ("en", "de"):
        Path(f"empty.{ending}").touch()
    answer = headwise("memory", "build", tiny_run, "--output", "new", "empty")
    assert (answer.status, Path("new").exists()) == (3, False)
    answer = headwise("score", "--model", tiny_run, "--memory", store, "a")
    assert answer.status == 3
    keys = bytearray((store / "00000.keys").read_bytes())
    keys[9] ^= 1
    (store / "00000.keys").write_bytes(keys)
    answer = headwise("translate", "--model", tiny_run, "--memory", store, "--text", "a")
    assert answer.status == 3
    assert "SHA-256" in answer.err
