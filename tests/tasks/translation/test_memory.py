"""A translator with a memory: greedy and beam search against brute force, the model alone at λ = 0,
stored pairs that come back, the votes, and what is refused."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from headwise.decoding.choices import DecodingSettings
from headwise.errors import SettingsError, UsageError
from headwise.neighbours.store import NeighbourStore
from headwise.pocket import sentences
from headwise.tasks.memory_building import build, tune_store
from headwise.tasks.translation.preflight import check_helpers
from headwise.tasks.translation.translator import Translator
from headwise.text.tokenizer import BOS, EOS
from tests.tasks.tiny import tiny_recipe, train_tiny
from tests.tasks.translation.test_parallel_recipes import CTC
from tests.tasks.translation.test_recurrent import train_recurrent

PAIRS = [(one.text("en"), one.text("de")) for one in sentences("train", 40)]
TEXTS = [source for source, _ in PAIRS[:7]]
CORPUS = "{kind: pocket, split: train, count: 40}"


@pytest.fixture(name="runs", scope="module")
def _runs(tiny_run: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    recurrent = tmp_path_factory.mktemp("recurrent") / "run"
    train_recurrent(recurrent)
    return {"encoder_decoder": tiny_run, "recurrent": recurrent}


@pytest.fixture(name="stores", scope="module")
def _stores(runs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("stores")
    for kind, run in runs.items():
        header = build(run, folder / kind, [CORPUS], key_type="float32")
        assert header.num_lines == 40
    return {kind: folder / kind for kind in runs}


def asked(translator: Translator, store: Path, *changes: str) -> DecodingSettings:
    return translator.settings([f"memory.store={store}", "max_length=30", *changes])


def brute_force(translator: Translator, store: Path, text: str, *, length: int) -> list[int]:
    """Greedy search, every state computed from scratch and compared with every entry."""
    opened = NeighbourStore.open(store)
    keys = np.concatenate([block for _, block in opened.key_blocks(1 << 20)]).astype(np.float64)
    written: list[int] = []
    while len(written) < length and EOS not in written:
        (batch,) = translator.forced_reading.read([translator.encode(text)], [written])
        query = batch.keys[0, len(written)].double().numpy()
        with torch.no_grad():
            logits = translator.model.logits(batch.hidden[0, len(written)]).double()
        distances = ((keys - query) ** 2).sum(1)
        near = np.argsort(distances, kind="stable")[:5]
        votes = np.exp(-(distances[near] - distances[near[0]]) / 3.0)
        share = np.zeros(len(logits))
        np.add.at(share, opened.values[near], votes / votes.sum())
        mixed = 0.6 * share + 0.4 * logits.softmax(-1).numpy()
        mixed[[0, BOS]] = 0
        written.append(int(mixed.argmax()))
    return written[:-1] if written[-1] == EOS else written


@pytest.mark.parametrize("kind", ["encoder_decoder", "recurrent"])
def test_greedy_search_is_that_of_brute_force(
    kind: str, runs: dict[str, Path], stores: dict[str, Path]
) -> None:
    translator = Translator.load(runs[kind])
    changes = ("kind=greedy", "memory.neighbours=5", "memory.temperature=3", "memory.weight=0.6")
    settings = asked(translator, stores[kind], *changes)
    found = [one.text for one in translator(TEXTS, settings)]
    wanted = [
        translator.tokenizers.target.decode(brute_force(translator, stores[kind], text, length=30))
        for text in TEXTS
    ]
    assert found == wanted
    assert found != [one.text for one in translator(TEXTS)]


@pytest.mark.parametrize("kind", ["encoder_decoder", "recurrent"])
@pytest.mark.parametrize("search", ["greedy", "beam", "sampling"])
def test_a_weight_of_zero_is_the_translator_to_the_bit(
    search: str, kind: str, runs: dict[str, Path], stores: dict[str, Path]
) -> None:
    translator = Translator.load(runs[kind])
    plain = translator.settings([f"kind={search}", "max_length=30"])
    silent = asked(translator, stores[kind], f"kind={search}", "memory.weight=0")
    assert [one.n_best for one in translator(TEXTS, silent)] == [
        one.n_best for one in translator(TEXTS, plain)
    ]
    assert silent.unaided == plain


@pytest.mark.parametrize("search", ["kind=greedy", "kind=beam"])
def test_stored_pairs_come_back(
    search: str, runs: dict[str, Path], stores: dict[str, Path]
) -> None:
    translator = Translator.load(runs["encoder_decoder"])
    store = stores["encoder_decoder"]
    tuning = tune_store(store, [CORPUS])
    assert tuning.mixed < 0.1 * tuning.alone
    changes = ("memory.neighbours=1", "memory.weight=0.98", "max_length=60")
    found = translator(TEXTS, asked(translator, store, search, *changes))
    right = sum(one.text == target for one, (_, target) in zip(found, PAIRS, strict=False))
    assert right >= 5


def test_votes_name_the_stored_example(runs: dict[str, Path], stores: dict[str, Path]) -> None:
    translator = Translator.load(runs["encoder_decoder"])
    changes = ("kind=greedy", "memory.neighbours=9", "memory.temperature=3", "memory.weight=0.7")
    settings = asked(translator, stores["encoder_decoder"], *changes)
    given = [translator._prepare(text, 1) for text in TEXTS]
    for one in translator.stream_sentences(given, settings, votes=True):
        assert one.votes is not None
        best = one.n_best[0]
        total = sum(np.log(word.mixed) for word in one.votes)
        assert total == pytest.approx(best.log_probability, abs=1e-3)
        for word in one.votes:
            agreeing = sum(v.share for v in word.votes if v.piece == word.piece)
            assert word.weight == 0.7
            assert word.mixed >= 0.7 * agreeing + 0.3 * word.alone - 1e-5
            for vote in word.votes:
                pair = (vote.entry.source, vote.entry.target)
                assert pair == PAIRS[vote.entry.line - 1]
        assert one.as_dict()["memory"][0]["votes"][0]["line"] >= 1
    (empty,) = translator.stream_sentences([translator._prepare("", 1)], settings, votes=True)
    assert empty.votes == ()


def test_a_bundle_may_go_when_its_fingerprint_is_known(
    runs: dict[str, Path], stores: dict[str, Path], tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(runs["encoder_decoder"] / "model", copy)
    translator = Translator.load(copy)
    assert translator.asked_models.fingerprint
    shutil.rmtree(copy)
    assert translator(TEXTS[:1], asked(translator, stores["encoder_decoder"]))[0].text


def test_what_cannot_ask_a_memory_is_refused(
    runs: dict[str, Path], stores: dict[str, Path], tmp_path: Path
) -> None:
    translator = Translator.load(runs["encoder_decoder"])
    with pytest.raises(UsageError, match="another model"):
        translator(TEXTS, asked(translator, stores["recurrent"]))
    with pytest.raises(SettingsError, match="memory"):
        asked(translator, stores["encoder_decoder"], "kind=drafted")
    with pytest.raises(SettingsError, match="finished model"):
        check_helpers(tiny_recipe(f"decoding.memory.store={stores['recurrent']}"))
    train_tiny(tmp_path / "parallel", CTC)
    with pytest.raises(UsageError, match="all words at once"):
        build(tmp_path / "parallel", tmp_path / "none", [CORPUS])
    parallel = Translator.load(tmp_path / "parallel")
    with pytest.raises(SettingsError, match="memory"):
        asked(parallel, stores["encoder_decoder"])
