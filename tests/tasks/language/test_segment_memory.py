"""Language models with a memory of earlier segments, from recipe to text: resumed bit for bit, by
several processes, scored and written with a carried state."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from headwise.cli.main import main
from headwise.decoding.choices import BeamSettings, GreedySettings
from headwise.errors import SettingsError, UsageError
from headwise.models.segment_memory import Remembering
from headwise.models.text_stepper import ContinuingStepper
from headwise.randomness import numpy_generator
from headwise.tasks.any_recipe import AnyRecipe
from headwise.tasks.language.continuation import write_on
from headwise.tasks.language.language_model import LanguageModel
from headwise.tasks.language.neural_token_model import NeuralTokenModel
from headwise.tasks.language.stored_pairs import check_stored_pairs
from headwise.tasks.recipe import recipe_from
from headwise.tasks.run import train
from headwise.tasks.table import find_task
from headwise.weights import read_tensors
from tests.tasks.language.test_task import TEXT, _after_three
from tests.training.several import finish, start

MODEL = {
    "kind": "decoder_only",
    "dim": 8,
    "layers": 2,
    "heads": 2,
    "position": {"kind": "transformer_xl"},
    "memory": {"kind": "segments", "length": 6},
}

NEAREST = {
    "memory": {"kind": "nearest", "layer": 1, "length": 3, "size": 8, "neighbours": 2},
}
MEMORIES = pytest.mark.parametrize("memory", [{}, NEAREST], ids=["segments", "nearest"])


def _recipe(folder: Path, model: dict | None = None, **training: object) -> AnyRecipe:
    path = folder / "text.txt"
    path.write_text("\n".join(TEXT) + "\n", encoding="utf-8")
    data = {"language": "en", "train": str(path), "valid": str(path)}
    learning = {
        "batch_tokens": 20,
        "steps": 6,
        "schedule": {"kind": "constant", "peak": 0.02},
        "device": "cpu",
        "precision": "fp32",
        "log_every": 1,
        "checkpoint_every": 2,
        **training,
    }
    return recipe_from(
        {
            "task": "language_modeling",
            "data": data,
            "model": MODEL | (model or {}),
            "reading": {"kind": "stream", "length": 5},
            "training": learning,
        }
    )


@MEMORIES
@pytest.mark.parametrize("training", [{}, {"ema": 0.9}, {"recompute": "blocks"}])
def test_resumed_is_uninterrupted_bit_for_bit(training: dict, memory: dict, tmp_path: Path) -> None:
    """The memory is part of what is saved, and not of the bundle."""
    train(_recipe(tmp_path, memory, **training), run=tmp_path / "whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headwise.training.session.Session.reason_to_stop", _after_three)
        train(_recipe(tmp_path, memory, **training), run=tmp_path / "halves")
    shutil.rmtree(tmp_path / "halves" / "model")
    train(_recipe(tmp_path, memory, **training), run=tmp_path / "halves", resume=True)
    whole, halves = (
        read_tensors(tmp_path / run / "checkpoints" / "step-6" / "model.safetensors")
        for run in ("whole", "halves")
    )
    assert whole["states"].shape == (2, 4, 3 if memory else 6, 8)
    assert whole["states"].abs().sum() > 0
    if memory:
        assert whole["ring.keys"].shape == (4, 2, 3 + 8 + 5, 4)
        assert (whole["ring.keys"].norm(dim=-1) > 0).all()
    for name, tensor in whole.items():
        assert np.array_equal(tensor.numpy(), halves[name].numpy()), name
    bundle = read_tensors(tmp_path / "whole" / "model" / "weights.safetensors")
    assert not {"states", "ring.keys"} & bundle.keys()


@MEMORIES
@pytest.mark.parametrize("layout", ["replicated", "sharded"])
def test_two_processes_keep_one_memory(layout: str, memory: dict, tmp_path: Path) -> None:
    """Stopped and resumed, they still train as one process does, whose memory they save."""
    dropout = {"dropout": {"residual": 0.0, "embedding": 0.0}}
    settings = {"model": dropout | memory, "parallel": {"kind": layout}}

    def begin() -> int:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("headwise.training.session.Session.reason_to_stop", _after_three)
            train(_recipe(tmp_path, **settings), run=tmp_path / "two")
        return 0

    def go_on() -> int:
        train(_recipe(tmp_path, **settings), run=tmp_path / "two", resume=True)
        return 0

    assert finish(start(tmp_path / "begin", 2, work=begin)) == [0, 0]
    shutil.rmtree(tmp_path / "two" / "model")
    assert finish(start(tmp_path / "go_on", 2, work=go_on)) == [0, 0]
    train(_recipe(tmp_path, **settings), run=tmp_path / "one")
    one, two = (
        read_tensors(tmp_path / run / "checkpoints" / "step-6" / "model.safetensors")
        for run in ("one", "two")
    )
    # Not every weight: the bias of the keys has no gradient but rounding, which Adam enlarges.
    names = ("states", "num_remembered", *(("ring.keys", "ring.values") if memory else ()))
    for name in names:
        torch.testing.assert_close(two[name], one[name], atol=1e-4, rtol=1e-4)
    assert all(one["states"][:, row].abs().sum() > 0 for row in range(4))
    logs = [(tmp_path / run / "log.jsonl").read_text().splitlines() for run in ("one", "two")]
    losses = [
        [json.loads(line)["loss"] for line in log if '"kind": "train"' in line] for log in logs
    ]
    assert losses[0] == pytest.approx(losses[1], abs=1e-4)


@pytest.fixture(scope="module", params=[{}, NEAREST], ids=["segments", "nearest"])
def model(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> LanguageModel:
    folder = tmp_path_factory.mktemp("memory")
    train(_recipe(folder, request.param, steps=30), run=folder / "run")
    return LanguageModel.load(folder / "run")


def _tokens(length: int) -> list[int]:
    return numpy_generator("long").integers(2, 11, size=length).tolist()


def test_every_token_has_one_probability(
    model: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In windows of any length, in a text read at once, and when the next token is predicted."""
    asked = model.model
    assert isinstance(asked, NeuralTokenModel)
    tokens = _tokens(47)
    (whole,) = asked.score([tokens])
    rows = asked.next_words([tokens[:place] for place in range(48)])
    expected = [row[token] for row, token in zip(rows, [*tokens, 2], strict=True)]
    assert whole == pytest.approx(expected, abs=1e-5)
    at_once = asked.network(torch.tensor([[2, *tokens]]))
    logits = asked.network.output(at_once)[0, :, 2:].log_softmax(-1).detach()
    read = [float(row[token - 2]) for row, token in zip(logits, [*tokens, 2], strict=True)]
    assert whole == pytest.approx(read, abs=1e-5)
    for window in (1, 6, 11):
        monkeypatch.setattr("headwise.tasks.language.neural_token_model.WINDOW", window)
        assert asked.score_running(np.array([2, *tokens, 2])) == pytest.approx(whole, abs=1e-5)


@pytest.mark.parametrize(
    "settings", [GreedySettings(), BeamSettings(size=3)], ids=["greedy", "beam"]
)
def test_a_carried_state_writes_what_reading_again_writes(
    settings: object, model: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over ends of lines and beyond the memory, each token is read once."""
    counted: list[ContinuingStepper] = []

    class Counted(ContinuingStepper):
        def __init__(self, network: object) -> None:
            super().__init__(network)  # type: ignore[arg-type]
            counted.append(self)

    class Forgetful(ContinuingStepper):
        carries = False  # type: ignore[assignment]

    where = "headwise.tasks.language.neural_token_model.ContinuingStepper"
    monkeypatch.setattr(where, Counted)
    carried = write_on(model, "the cat", settings, length=40)  # type: ignore[arg-type]
    monkeypatch.setattr(where, Forgetful)
    again = write_on(model, "the cat", settings, length=40)  # type: ignore[arg-type]
    assert carried.text == again.text
    assert carried.text.count("\n") >= 2
    assert carried.log_probability == pytest.approx(again.log_probability, abs=1e-4)
    if isinstance(settings, GreedySettings):
        assert counted[0].num_read == 3 + 40 - 1


def test_a_search_that_runs_on_after_the_end_disturbs_nothing(
    model: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on an accelerator, which is asked only every fourth step."""
    usual = write_on(model, "the cat", GreedySettings(), length=40)
    where = "headwise.decoding.engines.plain.steps_between_checks"
    monkeypatch.setattr(where, lambda device: 4)
    assert write_on(model, "the cat", GreedySettings(), length=40) == usual


def test_evaluation_may_look_further_than_training(tmp_path: Path) -> None:
    longer = {"memory": {"kind": "segments", "length": 6, "evaluation_length": 19}}
    train(_recipe(tmp_path, longer), run=tmp_path / "run")
    asked = LanguageModel.load(tmp_path / "run").model
    assert isinstance(asked, NeuralTokenModel)
    assert (asked.network.reach, asked.context) == (19, 20)
    tokens = _tokens(33)
    changed = [tokens[0] % 9 + 2, *tokens[1:]]
    scores, others = asked.score([tokens, changed])
    assert abs(scores - others)[2:33].min() > 0


@MEMORIES
def test_a_trained_model_may_get_a_memory(memory: dict, tmp_path: Path) -> None:
    """Its weights are those of a model without one, but for the gate of a lookup."""
    train(_recipe(tmp_path, {"memory": {"kind": "none"}}), run=tmp_path / "plain")
    start = {"start_from": str(tmp_path / "plain")} | memory
    train(_recipe(tmp_path, start, steps=2), run=tmp_path / "more")
    assert isinstance(LanguageModel.load(tmp_path / "more").model.network.reach, int)


@MEMORIES
def test_lines_read_as_one_text_from_the_command_line(
    memory: dict, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`score --continuous` is `score_text(continuous=True)`, and not each line by itself."""
    train(_recipe(tmp_path, memory, steps=30), run=tmp_path / "run")
    model = LanguageModel.load(tmp_path / "run")
    command = ["score", "--model", str(tmp_path / "run"), "--file", str(tmp_path / "text.txt")]
    found = []
    for option in ("--continuous", "--summary"):
        capsys.readouterr()
        assert main([*command, option, "--json"]) == 0
        found.append(json.loads(capsys.readouterr().out)["perplexity"])
    expected = [model.score_text(TEXT, continuous=is_one).perplexity for is_one in (True, False)]
    assert found == pytest.approx(expected)
    assert found[0] != pytest.approx(found[1])


@MEMORIES
def test_the_memory_belongs_to_a_stream(memory: dict, tmp_path: Path) -> None:
    recipe = _recipe(tmp_path, memory)
    with pytest.raises(SettingsError, match=r"reading\.kind=sentences packs sentences"):
        recipe_from(recipe.model_dump(mode="json"), ["reading={kind: sentences}"])


def test_the_trained_module_is_the_one_with_the_memory(tmp_path: Path) -> None:
    from headwise.data.batching import ALL_ROWS
    from headwise.tasks.events import Silence

    recipe = _recipe(tmp_path)
    task = find_task(recipe)
    prepared = task.prepare(recipe, tmp_path / "data", Silence())
    module = task.build(recipe, prepared)
    learner = task.learner(recipe, prepared, module, share=ALL_ROWS, directory=tmp_path)
    assert isinstance(learner.trainable.module, Remembering)
    assert learner.trainable.module.model is module


def test_a_memory_that_does_not_fit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """4 rows of 3 + 8 + 5 tokens of width 8, keys and values of 4 bytes: 4,096 bytes."""
    where = "headwise.tasks.language.stored_pairs.available_memory"
    for room, ema in ((4096, None), (8192, 0.9)):
        recipe = _recipe(tmp_path, NEAREST, ema=ema)
        monkeypatch.setattr(where, lambda device, room=room: room)
        check_stored_pairs(recipe)
        monkeypatch.setattr(where, lambda device, room=room: room - 1)
        with pytest.raises(UsageError, match=r"16 tokens of each of 4 rows.*model\.memory\.size"):
            train(recipe, run=tmp_path / "run")
    check_stored_pairs(_recipe(tmp_path))


def test_a_plan_counts_what_is_stored(tmp_path: Path) -> None:
    """The states of the layers, and the ring of one."""
    built = []
    for changes in ({}, NEAREST):
        recipe = _recipe(tmp_path, changes)
        step = find_task(recipe).planned_step(recipe)
        with torch.device("meta"):
            built.append(sum(state.nbytes for state in step.build(step.num_rows).buffers()))
    states = 2 * 4 * 8 * 4  # layers, rows, width, bytes
    assert built == [states * 6 + 4 * 8, states * 3 + 4096 + 2 * 4 * 8]
