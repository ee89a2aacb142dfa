"""Fertilities and chains from the recipe to the answers: training, resuming, bundles, a judge."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from headwise.cli.main import main
from headwise.errors import CheckpointError, DataError, SettingsError, UsageError
from headwise.planning.step_tracing import trace_step
from headwise.pocket import sentences
from headwise.serving.app import create_app
from headwise.serving.http.server_settings import ServerSettings
from headwise.serving.work.loaded_models import load_models
from headwise.tasks.recipe import load_recipe
from headwise.tasks.run import check_run, train
from headwise.tasks.translation.task import TranslationTask
from headwise.tasks.translation.translator import Translator
from tests.tasks.translation.parallel_models import PARALLEL

TEXTS = [sentence.text("en") for sentence in sentences("test", 5)]
FERTILITY = "model.length.kind=fertility"
CHAIN = "model.structure={kind: crf, rank: 5, candidates: 7, transitions: dynamic}"


def make_recipe(*overrides: str) -> Any:
    return load_recipe("pocket", [*PARALLEL, *overrides])


def digest(run: Path) -> str:
    return hashlib.sha256((run / "model" / "weights.safetensors").read_bytes()).hexdigest()


@pytest.fixture(name="run", scope="module")
def _run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("fertility") / "run"
    validated = ("training.validate_every=3", "evaluation.validation_sentences=3")
    train(make_recipe(FERTILITY, CHAIN, *validated), run=directory)
    return directory


def noisy(judge: Path, **changes: Any) -> list[str]:
    more = [f"{name}={value}" for name, value in changes.items()]
    return ["kind=noisy_parallel", f"judge={judge}", "samples=3", *more]


def test_a_run_ends_in_a_bundle_that_translates(run: Path) -> None:
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text("utf-8").splitlines()]
    assert {"loss", "bleu"} <= next(line for line in lines if line["kind"] == "valid").keys()
    translator = Translator.load(run)
    together = translator(TEXTS)
    assert all(one.text for one in together)
    assert [one.text for one in together] == [translator([text])[0].text for text in TEXTS]
    found = translator(TEXTS[:1], alignment=True, attention=True)[0]
    assert found.alignment
    assert found.attention is not None
    assert found.attention.maps["decoder.0.cross"].shape[1:] == (
        len(found.target_pieces),
        len(found.source_pieces),
    )


@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_every_form_for_inference_translates(run: Path, precision: Any) -> None:
    assert all(one.text for one in Translator.load(run, precision=precision)(TEXTS[:2]))


def test_training_lowers_the_loss(tmp_path: Path) -> None:
    steps = (
        "training.steps=40",
        "training.schedule={kind: constant, peak: 1.0e-2}",
        "training.objective.label_smoothing=0",
        "training.log_every=10",
        "training.checkpoint_every=40",
        "data.valid=null",
        "data.test=null",
    )
    train(make_recipe(FERTILITY, CHAIN, *steps), run=tmp_path / "run")
    log = (tmp_path / "run" / "log.jsonl").read_text("utf-8").splitlines()
    losses = [one["loss"] for one in map(json.loads, log) if one["kind"] == "train"]
    assert losses[-1] < 0.8 * losses[0]


def test_a_resumed_run_is_the_uninterrupted_one_and_learns_no_alignment(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stop(Exception):
        pass

    class Watcher:
        def note(self, text: str) -> None: ...
        def count(self, label: str, done: int, total: int | None) -> None: ...
        def share(self, label: str, done: float) -> None: ...
        def training(self, progress: Any) -> None:
            if progress.step >= 5:
                raise Stop

    validated = ("training.validate_every=3", "evaluation.validation_sentences=3")
    recipe = make_recipe(FERTILITY, CHAIN, *validated)
    with pytest.raises(Stop):
        train(recipe, run=tmp_path / "run", events=Watcher())
    monkeypatch.setattr("headwise.data.pairs.alignment.learned.fit_aligner", None)
    train(recipe, run=tmp_path / "run", resume=True)
    assert digest(tmp_path / "run") == digest(run)


def test_the_alignment_belongs_to_the_data_of_a_run(run: Path) -> None:
    state = json.loads((run / "checkpoints" / "step-6" / "state.json").read_text("utf-8"))
    assert " alignment:" in state["environment"]["fingerprint"]


def test_with_one_candidate_a_judge_changes_nothing(run: Path, tiny_run: Path) -> None:
    translator = Translator.load(run)
    plain = [one.text for one in translator(TEXTS)]
    judged = translator(TEXTS, translator.settings(noisy(tiny_run, samples=1)))
    assert [one.text for one in judged] == plain
    cold = translator(TEXTS, translator.settings(noisy(tiny_run, temperature=1e-5)))
    assert [one.text for one in cold] == plain


def test_the_judge_prefers_what_it_chose(run: Path, tiny_run: Path) -> None:
    """More candidates can only raise the score, and the judge is loaded once."""
    translator = Translator.load(run)
    one = translator(TEXTS, translator.settings(noisy(tiny_run, samples=1)))
    many = translator(TEXTS, translator.settings(noisy(tiny_run, samples=6)))
    assert all(b.score >= a.score - 1e-5 for a, b in zip(one, many, strict=True))
    assert len(translator.asked_models._judges) == 1


def test_the_command_line_translates_with_a_judge(
    run: Path, tiny_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes = [word for one in noisy(tiny_run) for word in ("--set", one)]
    assert main(["translate", "--model", str(run), "--text", TEXTS[0], *changes]) == 0
    assert capsys.readouterr().out.strip()


def test_a_server_answers_with_candidates_of_the_recipe_or_says_what_is_missing(
    run: Path,
) -> None:
    models = load_models([f"fertile={run / 'model'}"], device="cpu", precision="fp32")
    with TestClient(create_app(models, ServerSettings()), base_url="http://127.0.0.1") as client:
        body: dict[str, Any] = {"text": TEXTS[0]}
        answer = client.post("/v1/translate", json=body)
        assert answer.status_code == 200
        assert answer.json()["translations"][0]["text"]
        asked = client.post("/v1/translate", json=body | {"decoding": {"kind": "noisy_parallel"}})
        assert 400 <= asked.status_code < 500
        assert "has no judge" in json.dumps(asked.json())
        beam = client.post("/v1/translate", json=body | {"decoding": {"kind": "beam"}})
        assert 400 <= beam.status_code < 500


@pytest.mark.parametrize("parts", [(FERTILITY,), (CHAIN,), (FERTILITY, CHAIN)])
def test_a_step_is_planned_without_numbers(parts: tuple[str, ...]) -> None:
    step = TranslationTask().planned_step(make_recipe(*parts))
    assert trace_step(step.step(2, bf16=False)).flops > 0


def test_a_check_learns_the_alignment_and_trains_nothing(tmp_path: Path) -> None:
    checked = check_run(make_recipe(FERTILITY, CHAIN), directory=tmp_path / "data")
    assert checked.results["pairs"] == 300
    assert (tmp_path / "data" / "alignment").is_dir()


@pytest.mark.parametrize(
    ("overrides", "error", "message"),
    [
        (["decoding={kind: noisy_parallel}"], UsageError, r"has no judge.*decoding\.judge="),
        (
            ["decoding={kind: noisy_parallel, judge: none/such}"],
            CheckpointError,
            r"is given as decoding\.judge, but does not exist",
        ),
        (
            [FERTILITY, "model.length.most=1"],
            DataError,
            r"data\.train have a target more than 1 times as long.*set model\.length\.most=",
        ),
    ],
)
def test_a_run_that_cannot_end_is_refused_at_its_start(
    overrides: list[str], error: type[Exception], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        train(make_recipe(*overrides), run=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            ["model.length.kind=many_begin", CHAIN],
            r"length\.kind=many_begin cannot be combined with structure\.kind=crf; set "
            r"structure\.kind to independent",
        ),
        ([FERTILITY, "model.structure.kind=ctc"], "independent or crf"),
        (
            [FERTILITY, "model.embedding.tied=output"],
            r"needs one embedding for both languages; set embedding\.tied=all, or length\.kind=",
        ),
        ([FERTILITY, "model.input.kind=copy"], "length.kind=fertility copies .* leave input out"),
        (
            [CHAIN, "training.objective.kind=glancing"],
            r"crf learns the score of whole targets; set training\.objective\.kind=cross_entropy",
        ),
        (
            [FERTILITY, "training.objective.kind=masked"],
            r"translates in one pass; set training\.objective\.kind=cross_entropy or glancing",
        ),
        (
            ["model.length.kind=many_begin", "decoding={kind: noisy_parallel, judge: a}"],
            r"cut at the first end; use decoding\.kind=one_pass",
        ),
        ([CHAIN, "decoding={kind: mask_predict}"], r"use decoding\.kind=one_pass or noisy_par"),
        ([FERTILITY, "decoding={kind: beam}"], r"use decoding\.kind=one_pass or noisy_parallel"),
    ],
)
def test_parts_that_do_not_fit_are_refused(overrides: list[str], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        make_recipe(*overrides)
