"""A language model with a memory: against brute force in numpy, the model alone at λ = 0, the text
itself as memory, and an interrupted build."""

from pathlib import Path

import numpy as np
import pytest
import torch

from headwise.decoding.choices import GreedySettings
from headwise.errors import DataError, UsageError
from headwise.neighbours.settings import MemorySettings
from headwise.neighbours.store import NeighbourStore
from headwise.tasks import memory_building
from headwise.tasks.language import memory as language_memory
from headwise.tasks.language.continuation import write_on
from headwise.tasks.language.language_model import LanguageModel
from headwise.tasks.language.memory import TextReader, load_with_memory
from headwise.tasks.language.neural_token_model import NeuralTokenModel
from headwise.tasks.memory_building import add, build, tune_store
from headwise.tasks.run import train
from tests.tasks.language.test_language_start import MODELS, recipe_of

TEXT = ["the cat eats", "dog sleeps", "", "the dog eats eats cat", "cat the sleeps"]
READINGS = [
    ("decoder_only", {"kind": "sentences", "row_tokens": 8}),
    ("decoder_only", {"kind": "stream", "length": 6}),
    ("recurrent", {"kind": "stream", "length": 6}),
    ("neural_ngram", {"kind": "sentences"}),
]


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text").write_text("\n".join(TEXT) + "\n", encoding="utf-8")


def trained(kind: str, reading: dict[str, object]) -> Path:
    train(recipe_of(Path(), MODELS[kind], reading=reading), run=Path("run"))
    return Path("run")


def alone(given: MemorySettings) -> MemorySettings:
    return given.model_copy(update={"weight": 0.0})


@pytest.mark.parametrize(("kind", "reading"), READINGS)
def test_predictions_are_those_of_brute_force(kind: str, reading: dict[str, object]) -> None:
    run = trained(kind, reading)
    header = build(run, Path("store"), ["text"], key_type="float32")
    assert header.model.key == ("feed_forward" if kind == "decoder_only" else "output")
    assert header.num_lines == 4
    plain = LanguageModel.load(run)
    asked = MemorySettings(store="store", neighbours=4096, temperature=0.5, weight=0.4)
    mixed = load_with_memory(run, asked)
    store = NeighbourStore.open("store")
    assert len(store) == sum(len(line.split()) + 1 for line in TEXT if line)
    keys = np.concatenate([block for _, block in store.key_blocks(1 << 20)]).astype(np.float64)
    prefix = plain.tokenizer.encode("the dog")
    assert isinstance(mixed.model, NeuralTokenModel)
    row = mixed.model.next_words([prefix])[0]
    network = mixed.model
    with torch.no_grad():
        hidden, _ = network._read(torch.tensor([[network.first, *prefix]]))
        query = network.tap.keys_of(hidden)[0, -1].double().numpy()
    distances = ((keys - query) ** 2).sum(1)
    votes = np.exp(-(distances - distances.min()) / 0.5)
    share = np.zeros(len(row))
    np.add.at(share, store.values, votes / votes.sum())
    own = np.exp(plain.model.next_words([prefix])[0].astype(np.float64))
    np.testing.assert_allclose(np.exp(row), 0.4 * share + 0.6 * own, atol=1e-6)
    assert np.exp(row.astype(np.float64)).sum() == pytest.approx(1, abs=1e-5)
    scored = mixed.score(["the dog eats"])[0].tokens
    assert scored[2].log_probability == pytest.approx(
        float(row[plain.tokenizer.encode("eats")[0]]), abs=1e-4
    )


@pytest.mark.parametrize(("kind", "reading"), READINGS)
def test_a_weight_of_zero_is_the_model_to_the_bit(kind: str, reading: dict[str, object]) -> None:
    run = trained(kind, reading)
    build(run, Path("store"), ["text"])
    plain = LanguageModel.load(run)
    silent = load_with_memory(run, MemorySettings(store="store", weight=0.0))
    lines = ["the cat sleeps a lot and a lot", "fish"]
    assert silent.score(lines) == plain.score(lines)
    assert silent.score_text(lines) == plain.score_text(lines)
    assert silent.predict("the", count=3) == plain.predict("the", count=3)
    settings = GreedySettings()
    assert write_on(silent, "the", settings, length=9) == write_on(plain, "the", settings, length=9)


@pytest.mark.parametrize(("kind", "reading"), READINGS)
def test_the_text_itself_is_remembered(kind: str, reading: dict[str, object]) -> None:
    run = trained(kind, reading)
    build(run, Path("store"), ["text"])
    tuning = tune_store(Path("store"), ["text"])
    assert tuning.mixed < 0.5 * tuning.alone
    lines = [line for line in TEXT if line]
    mixed = load_with_memory(run, MemorySettings(store="store"))
    both = [mixed, LanguageModel.load(run)]
    is_stream = reading["kind"] == "stream"
    near, far = (one.score_text(lines, continuous=is_stream).perplexity for one in both)
    assert near < 0.7 * far
    if not is_stream:
        written = write_on(mixed, "the dog", GreedySettings(), length=6)
        assert written.text == "the dog eats eats cat"
        assert (
            write_on(mixed, "the cat", GreedySettings(), length=1).text
            == "the cat " + mixed.predict("the cat")[0].text
        )


def test_an_interrupted_build_gives_the_same_store(monkeypatch: pytest.MonkeyPatch) -> None:
    run = trained("decoder_only", {"kind": "sentences", "row_tokens": 8})
    monkeypatch.setattr(language_memory, "BLOCK_LINES", 2)
    monkeypatch.setattr("headwise.neighbours.writing.SHARD_BYTES", 64)
    build(run, Path("whole"), ["text", "text"])
    reads = TextReader.read

    def break_off(self: TextReader, texts: list[str], *, skip: int) -> object:
        for number, block in enumerate(reads(self, texts, skip=skip)):
            if number == 2:
                raise KeyboardInterrupt
            yield block

    for _ in range(2):
        monkeypatch.setattr(TextReader, "read", break_off)
        with pytest.raises(KeyboardInterrupt):
            build(run, Path("cut"), ["text", "text"])
    with pytest.raises(UsageError, match="exists already"):
        build(run, Path("cut"), ["text"])
    monkeypatch.setattr(TextReader, "read", reads)
    build(run, Path("cut"), ["text", "text"])
    for file in Path("whole").iterdir():
        assert (Path("cut") / file.name).read_bytes() == file.read_bytes()


def test_more_text_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    run = trained("decoder_only", {"kind": "sentences", "row_tokens": 8})
    Path("more").write_text("a cat sleeps\n", encoding="utf-8")
    first = build(run, Path("store"), ["text"])
    both = add(Path("store"), ["more"])
    assert both.num_entries == first.num_entries + 4
    assert both.corpora == ("text", "more")
    entry = NeighbourStore.open("store").show(first.num_entries + 1)
    assert (entry.corpus, entry.line, entry.target) == ("more", 1, "a cat sleeps")
    monkeypatch.setattr(memory_building, "TUNED_PREDICTIONS", 3)
    assert tune_store(Path("store"), ["more"], most=3).predictions == 3
    assert add(Path("store"), ["text"]).tuning is not None


def test_what_cannot_be_remembered_is_refused() -> None:
    run = trained("neural_ngram", {"kind": "sentences"})
    Path("blank").write_text("\n\n", encoding="utf-8")
    with pytest.raises(DataError, match="can be stored"):
        build(run, Path("none"), ["blank"])
    train(recipe_of(Path(), MODELS["neural_ngram"], training={
        "steps": 3, "batch_tokens": 64, "precision": "fp32", "compile": "off", "patience": None
    }), run=Path("other"))  # fmt: skip
    build(run, Path("store"), ["text"])
    with pytest.raises(UsageError, match="another model"):
        load_with_memory(Path("other"), MemorySettings(store="store"))
    with pytest.raises(UsageError, match="another model"):
        add(Path("store"), ["text"], model=Path("other"))
    with pytest.raises(DataError, match="no line to tune"):
        tune_store(Path("store"), ["blank"])
    counted = {"kind": "ngram", "order": 2}
    train(recipe_of(Path(), counted, training={}), run=Path("counted"))
    with pytest.raises(UsageError, match="no state"):
        build(Path("counted"), Path("of-counts"), ["text"])
