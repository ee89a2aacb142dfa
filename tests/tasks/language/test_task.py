"""Neural language models from recipe to answers: every kind, both ways of reading, resumed bit for
bit, learning to the entropy."""

import math
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from headwise.data.text.text_batches import pad_lines
from headwise.decoding.choices import GreedySettings, SamplingSettings
from headwise.errors import SettingsError, UsageError
from headwise.exporting.export import export_arpa
from headwise.models.recurrent.language_model import (
    RecurrentLanguageModel,
    RecurrentPenalty,
    RecurrentSettings,
)
from headwise.randomness import numpy_generator
from headwise.tasks.any_recipe import AnyRecipe
from headwise.tasks.language.continuation import write_on
from headwise.tasks.language.language_model import LanguageModel
from headwise.tasks.language.objective import LanguageLoss
from headwise.tasks.recipe import recipe_from
from headwise.tasks.run import check_run, train
from headwise.text.tokenizer import BOS, PAD
from headwise.weights import read_tensors

TEXT = [
    "the dog sleeps",
    "the cat sleeps",
    "the dog eats",
    "a cat eats the fish",
    "the fish sleeps",
] * 4
MODELS = {
    "neural_ngram": {"kind": "neural_ngram", "order": 3, "dim": 5, "hidden": 7, "direct": True},
    "rnn": {"kind": "recurrent", "cell": "rnn", "dim": 5, "hidden": 7},
    "lstm": {
        "kind": "recurrent",
        "cell": "lstm",
        "dim": 5,
        "hidden": 7,
        "tied": True,
        "dropout": {"layer": 0.2},
    },
    "gru": {"kind": "recurrent", "cell": "gru", "dim": 11, "hidden": 17},
    "gpt": {"kind": "decoder_only", "dim": 8, "layers": 1, "heads": 2},
}
STREAM = {"kind": "stream", "length": 7}


def _recipe(path: Path, model: str, reading: dict | None = None, **training: object) -> AnyRecipe:
    data = {"language": "en", "train": str(path), "valid": str(path), "test": str(path)}
    learning = {
        "objective": {"label_smoothing": 0},
        "batch_tokens": 48,
        "steps": 6,
        "schedule": {"kind": "constant", "peak": 0.02},
        "device": "cpu",
        "precision": "fp32",
        "log_every": 2,
        **training,
    }
    return recipe_from(
        {
            "task": "language_modeling",
            "data": data,
            "model": MODELS[model],
            "reading": reading or {"kind": "sentences", "row_tokens": 16},
            "training": learning,
        }
    )


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("\n".join(TEXT) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("kind", "reading"),
    [*((kind, None) for kind in MODELS), ("lstm", STREAM), ("gpt", STREAM)],
    ids=lambda value: value if isinstance(value, str) else "stream" if value else "sentences",
)
def test_every_kind_answers_the_two_questions(
    kind: str, reading: dict | None, text: Path, tmp_path: Path
) -> None:
    summary = train(_recipe(text, kind, reading), run=tmp_path / "run")
    assert summary.results["test"]["predictions"] == sum(len(line.split()) + 1 for line in TEXT)
    model = LanguageModel.load(tmp_path / "run")
    probabilities = np.exp(model.model.next_words([[], [4], [5, 6, 7, 4]]).astype(np.float64))
    assert probabilities.sum(axis=1) == pytest.approx(1.0, abs=1e-5)
    assert not probabilities[:, :2].any()  # <pad> and <s> stand in no text
    assert all(one.text for one in model.predict("the cat", count=100))
    together = model.score([*TEXT[:4], "zebras"])
    alone = [model.score([line])[0] for line in TEXT[:4]]
    assert [one.total for one in together[:4]] == pytest.approx(
        [one.total for one in alone], abs=1e-4
    )
    assert together[4].num_unknown == 1
    assert math.isfinite(together[4].total)
    (best,) = model.predict("the cat ____", count=1)
    word = model.score([f"the cat {best.text}"])[0].tokens[2] if best.text.isalpha() else None
    assert word is None or word.log_probability == pytest.approx(best.log_probability, abs=1e-4)
    with pytest.raises(UsageError, match="only n-grams can be written as ARPA"):
        export_arpa(tmp_path / "run", tmp_path / "model.arpa")


@pytest.mark.parametrize("reading", [STREAM, None])
def test_resumed_is_uninterrupted_bit_for_bit(
    reading: dict | None, text: Path, tmp_path: Path
) -> None:
    """The carried state is part of what is saved."""
    train(_recipe(text, "lstm", reading, checkpoint_every=2), run=tmp_path / "whole")
    short = _recipe(text, "lstm", reading, checkpoint_every=2, time_limit=1e-9)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headwise.training.session.Session.reason_to_stop", _after_three)
        train(short, run=tmp_path / "halves")
    shutil.rmtree(tmp_path / "halves" / "model")
    train(_recipe(text, "lstm", reading, checkpoint_every=2), run=tmp_path / "halves", resume=True)
    whole, halves = (
        read_tensors(tmp_path / run / "checkpoints" / "step-6" / "model.safetensors")
        for run in ("whole", "halves")
    )
    assert whole.keys() == halves.keys()
    assert any("state_" in name for name in whole) == (reading is not None)
    for name, tensor in whole.items():
        assert np.array_equal(tensor.numpy(), halves[name].numpy()), name


def _after_three(session: object) -> str | None:
    step = session.step  # type: ignore[attr-defined]
    return "time_limit" if step >= 3 else None


@pytest.mark.parametrize("kind", ["neural_ngram", "gru", "gpt"])
def test_a_small_grammar_is_learnt_to_its_entropy(kind: str, tmp_path: Path) -> None:
    """Subject, verb and object, the verb fixed by the subject: 2 · log 4 per sentence is all that
    is uncertain."""
    generator = numpy_generator("grammar")
    lines = [f"s{s} v{s} o{o}" for s, o in generator.integers(4, size=(400, 2))]
    (tmp_path / "text.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    recipe = _recipe(tmp_path / "text.txt", kind, batch_tokens=256, steps=120)
    summary = train(recipe, run=tmp_path / "run")
    entropy = 2 * math.log(4) / 4  # four predictions a line
    assert math.log(summary.results["test"]["perplexity"]) == pytest.approx(entropy, abs=0.04)


@pytest.mark.parametrize("row_tokens", [5, 16])
def test_a_sentence_longer_than_the_context_is_read_in_windows(
    row_tokens: int, text: Path, tmp_path: Path
) -> None:
    """Whatever follows, a token has one probability: the one that is predicted."""
    train(
        _recipe(text, "gpt", {"kind": "sentences", "row_tokens": row_tokens}, steps=2),
        run=tmp_path / "run",
    )
    model = LanguageModel.load(tmp_path / "run").model
    tokens = (numpy_generator("long").integers(4, 11, size=47)).tolist()
    (whole,) = model.score([tokens])
    rows = model.next_words([tokens[:place] for place in range(48)])
    assert whole == pytest.approx(
        [row[token] for row, token in zip(rows, [*tokens, 2], strict=True)], abs=1e-5
    )
    for length in range(40, 47):
        assert model.score([tokens[:length]])[0][:-1] == pytest.approx(whole[:length], abs=1e-5)


def _words(model: LanguageModel, text: str) -> list[tuple[int, str]]:
    """Tokens and their text, an end of sentence for every end of a line."""
    words = text.replace("\n", " \n ").split(" ")
    return [
        (2 if word == "\n" else model.tokenizer.encode(word)[0], word) for word in words if word
    ]


def test_settings_that_do_not_go_together(text: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="neural_ngram sees 2 words and reads sentences"):
        _recipe(text, "neural_ngram", STREAM)
    with pytest.raises(SettingsError, match=r"training.keep.best is 'bleu'"):
        _recipe(text, "gpt", keep={"best": "bleu"})
    with pytest.raises(
        SettingsError, match=r"model\.position\.max_length is 8, but rows have 16 tokens"
    ):
        recipe_from(
            _recipe(text, "gpt").model_dump(mode="json"),
            ["model.position={kind: learned, max_length: 8}"],
        )
    assert check_run(_recipe(text, "gpt"), directory=tmp_path).results["vocabulary"] == 11


@pytest.mark.parametrize("reading", [None, STREAM])
@pytest.mark.parametrize("kind", MODELS)
def test_check_tells_parameters_time_and_memory(
    text: Path, tmp_path: Path, kind: str, reading: dict | None
) -> None:
    if kind == "neural_ngram" and reading is not None:
        return
    results = check_run(_recipe(text, kind, reading), directory=tmp_path).results
    trained = train(_recipe(text, kind, reading, steps=1), run=tmp_path / "run").results
    assert results["parameters"] == trained["parameters"]
    assert 0 <= results["expected_seconds"] < 60
    assert results["expected_memory_mib"] >= 1


def test_counting_by_several_processes_is_refused(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launched = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}
    for name, value in launched.items():
        monkeypatch.setenv(name, value)
    data = {"language": "en", "train": str(text)}
    recipe = recipe_from({"task": "language_modeling", "data": data})
    with pytest.raises(
        UsageError, match="2 processes were started, but this model is learnt in a single pass"
    ):
        train(recipe, run=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_sentences_cannot_be_read_as_a_stream_by_counting(text: Path, tmp_path: Path) -> None:
    data = {"language": "en", "train": str(text)}
    train(recipe_from({"task": "language_modeling", "data": data}), run=tmp_path / "run")
    with pytest.raises(UsageError, match="reads sentences one by one"):
        LanguageModel.load(tmp_path / "run").score_text(TEXT, continuous=True)


@pytest.mark.parametrize("kind", ["gpt", "lstm", "neural_ngram"])
def test_greedy_writing_is_asking_for_the_best_next_word(
    kind: str, text: Path, tmp_path: Path
) -> None:
    reading = None if kind == "neural_ngram" else STREAM
    train(_recipe(text, kind, reading, steps=3), run=tmp_path / "run")
    model = LanguageModel.load(tmp_path / "run")
    written = write_on(model, "the dog", GreedySettings(), length=30)
    ids = model.tokenizer.encode("the dog")
    for _ in range(30):
        ids.append(int(model.model.next_words([ids])[0].argmax()))
        if ids[-1] == 2 and reading is None:
            break
    lines = " ".join("\n" if number == 2 else model.tokenizer.decode([number]) for number in ids)
    assert written.text.split() == lines.split()
    long = write_on(model, "the dog", SamplingSettings(seed=3), length=40)
    assert long.num_tokens == 40 or reading is None
    predicted = [3 if word == "⁇" else number for number, word in _words(model, long.text)]
    # Ends of lines at the end of the text are not shown.
    predicted += [2] * (long.num_tokens + 2 - len(predicted))
    rows = model.model.next_words([predicted[:place] for place in range(2, len(predicted))])
    assert long.log_probability == pytest.approx(
        rows[range(len(rows)), predicted[2:]].sum(), abs=1e-3
    )
    with pytest.raises(UsageError, match="0 tokens were asked for"):
        write_on(model, "the dog", GreedySettings(), length=0)


def test_a_penalty_is_paid_for_every_word_and_counted_as_no_word() -> None:
    settings = RecurrentSettings(dim=5, hidden=7, penalty=RecurrentPenalty(size=2.0))
    network = RecurrentLanguageModel(settings, size=13).eval()
    batch = pad_lines([[4, 5, 6], [7]], first=BOS)
    plain, with_penalty = (
        LanguageLoss(network, network, 0.0, penalty).loss(batch)
        for penalty in (None, settings.penalty)
    )
    expected = settings.penalty.of(network(batch.tokens)[0], batch.targets != PAD)
    torch.testing.assert_close(with_penalty.loss - plain.loss, 6 * expected, rtol=1e-4, atol=1e-4)
    assert torch.equal(with_penalty.negative_log_likelihood, plain.negative_log_likelihood)
