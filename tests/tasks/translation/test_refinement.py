"""Translators that look again at what they wrote, end to end: training, bundles, searches, the
command line, the server's trace, plans; and what is refused."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from headwise.cli.main import main
from headwise.decoding.parallel.mask_predict import MaskPredictSettings
from headwise.errors import SettingsError, UsageError
from headwise.explorer.data.translation_trace import trace_sentence
from headwise.pocket import sentences
from headwise.serving.app import create_app
from headwise.serving.http.server_settings import ServerSettings
from headwise.serving.work.loaded_models import load_models
from headwise.tasks.planner import plan_recipe
from headwise.tasks.recipe import load_translation_recipe, write_recipe
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.tasks.translation.translator import Translator
from tests.tasks.tiny import tiny_recipe, train_tiny

TEXTS = [sentence.text("en") for sentence in sentences("test", 5)]
SHORT = "max_length={factor: 0.5, extra: 5}"
MODELS = {
    "masked": (
        "training.objective.kind=masked",
        "decoding={kind: mask_predict, passes: 3, lengths: 4}",
    ),
    "edited": ("model.length={kind: edited, insertions: 7}", "decoding={kind: edits, rounds: 4}"),
}


def overrides(name: str, *more: str) -> list[str]:
    return ["model.kind=parallel", "decoding=null", *MODELS[name], f"decoding.{SHORT}", *more]


@pytest.fixture(name="runs", scope="module")
def _runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    directory = tmp_path_factory.mktemp("refinement")
    for name in MODELS:
        changes = ["training.validate_every=3", "evaluation.validation_sentences=3"]
        train_tiny(directory / name, overrides(name, *changes))
    return {name: directory / name for name in MODELS}


@pytest.fixture(name="client", scope="module")
def _client(runs: dict[str, Path]) -> Iterator[TestClient]:
    models = load_models([f"{name}={run}" for name, run in runs.items()], device="cpu")
    with TestClient(create_app(models, ServerSettings()), base_url="http://127.0.0.1") as found:
        yield found


def ask(client: TestClient, route: str, **body: Any) -> dict[str, Any]:
    reply = client.post(f"/v1/{route}", json={"text": TEXTS[0], **body})
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()
    return found


@pytest.mark.parametrize("name", MODELS)
def test_a_bundle_translates_a_batch_as_its_sentences(runs: dict[str, Path], name: str) -> None:
    translator = Translator.load(runs[name])
    together = translator([*TEXTS, ""], alignment=True, attention=True)
    assert together[-1].text == ""
    for text, found in zip(TEXTS, together, strict=False):
        alone = translator([text])[0]
        assert alone.text == found.text
        assert alone.score == pytest.approx(found.score, abs=1e-5)
        assert found.alignment is not None
        assert len(found.alignment) == len(found.target_pieces) - 1
    log = [json.loads(line) for line in (runs[name] / "log.jsonl").read_text("utf-8").splitlines()]
    assert any("bleu" in line for line in log)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_every_form_for_inference_translates(
    runs: dict[str, Path], name: str, precision: Any
) -> None:
    assert len(Translator.load(runs[name], device="cpu", precision=precision)(TEXTS)) == len(TEXTS)


def test_a_single_pass_is_one_pass(runs: dict[str, Path]) -> None:
    translator = Translator.load(runs["masked"])
    one = translator(TEXTS, translator.settings(["kind=one_pass", "lengths=4", SHORT]))
    many = translator(TEXTS, translator.settings(["passes=1"]))
    assert one == many
    more = translator(TEXTS, translator.settings(["passes=6"]))
    assert [found.text for found in more] != [found.text for found in one]


def test_several_results_have_different_lengths(
    runs: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["translate", "--model", str(runs["masked"]), "--text", TEXTS[0], "--n-best", "3"]
    assert main(command) == 0
    lines = capsys.readouterr().out.splitlines()
    scores = [float(line.split("\t")[1]) for line in lines]
    assert len(lines) == 3
    assert scores == sorted(scores, reverse=True)
    assert main([*command, "--set", "lengths=2"]) == 2
    assert "num_best (3) cannot exceed" in capsys.readouterr().err


@pytest.mark.parametrize("name", MODELS)
def test_it_is_evaluated(
    runs: dict[str, Path], name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for file in ("source", "reference"):
        (tmp_path / file).write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    source, reference = str(tmp_path / "source"), str(tmp_path / "reference")
    command = ["evaluate", "--model", str(runs[name]), "--source", source]
    assert main([*command, "--reference", reference, "--json"]) == 0
    assert 0 <= json.loads(capsys.readouterr().out)["bleu"] <= 100


@pytest.mark.parametrize("name", MODELS)
def test_passes_are_recorded_and_told(runs: dict[str, Path], client: TestClient, name: str) -> None:
    translator = Translator.load(runs[name], device="cpu")
    expected = trace_sentence(translator, TEXTS[0], translator.recipe.decoding)
    assert ask(client, "trace", model=name)["passes"] is None, "only if asked for"
    told = ask(client, "trace", model=name, passes=True, tree=True, top=2)
    assert told["tree"] is None
    assert len(told["passes"]) == len(expected.passes) > 0
    assert told["target_text"] == ask(client, "translate", model=name)["translations"][0]["text"]
    before: list[int] = []
    for one, written in zip(told["passes"], expected.passes, strict=True):
        assert [token["token"] for token in one["before"]] == before
        kept = [token["token"] for token in one["before"] if not token["deleted"]]
        assert kept == [token["token"] for token in one["after"] if not token["is_new"]]
        before = [token["token"] for token in one["after"]]
        assert before == list(written.tokens)
        values = [token["log_probability"] for token in one["after"]]
        assert values == pytest.approx(written.log_probabilities, abs=1e-5)
        chances = [token["deletion_probability"] for token in one["before"]]
        if name == "edited":
            assert all(0 <= chance <= 1 for chance in chances)
        else:
            assert chances == [None] * len(chances)
    assert before == told["n_best"][0]["tokens"]


@pytest.mark.parametrize("name", MODELS)
def test_words_are_left_out_and_rows_opened_up(client: TestClient, name: str) -> None:
    left_out = ask(client, "occlude", model=name)
    assert len(left_out["totals"]) == len(left_out["words"])
    cross = ask(client, "trace", model=name, maps={"kinds": ["cross", "decoder_self"]})
    assert {(one["kind"], one["layer"]) for one in cross["attention"]} >= {("cross", 0)}
    row = ask(client, "row", model=name, kind="decoder_self", query=0)
    assert row["key_pieces"] == row["query_pieces"]
    assert row["key_pieces"][0] == ("<s>" if name == "edited" else row["query_pieces"][0])


def test_requests_set_passes_rounds_and_the_number_of_results(client: TestClient) -> None:
    decoding = {"kind": "mask_predict", "passes": 2, "lengths": 3}
    found = ask(client, "translate", model="masked", decoding=decoding, n_best=2)
    assert len(found["translations"][0]["n_best"]) == 2
    body = {"text": TEXTS[0], "model": "masked", "decoding": decoding, "n_best": 4}
    refused = client.post("/v1/translate", json=body)
    assert refused.status_code == 422
    assert "mask_predict search has 3 candidates; ask for" in refused.text
    ask(client, "translate", model="edited", decoding={"kind": "edits", "rounds": 1})
    wrong = client.post(
        "/v1/translate",
        json={"text": TEXTS[0], "model": "edited", "decoding": {"kind": "mask_predict"}},
    )
    assert wrong.status_code == 422
    assert "use decoding.kind=edits" in wrong.text


@pytest.mark.parametrize("name", MODELS)
def test_its_recipe_survives_being_written_and_is_planned(tmp_path: Path, name: str) -> None:
    recipe = tiny_recipe(*overrides(name))
    (tmp_path / "again.yaml").write_text(write_recipe(recipe), encoding="utf-8")
    assert load_translation_recipe(tmp_path / "again.yaml") == recipe
    assert plan_recipe(recipe, device="h200").run.flops_per_token > 0


def test_a_recipe_that_says_nothing_of_its_decoding_gets_the_one_that_fits() -> None:
    for name, kind in (("edited", "edits"), ("masked", "one_pass")):
        model = MODELS[name][0]
        assert tiny_recipe("model.kind=parallel", model, "decoding={}").decoding.kind == kind


@pytest.mark.parametrize(
    ("name", "change", "refusal"),
    [
        ("masked", "decoding.passes=0", "decoding.passes: must be at least 1, not 0"),
        ("masked", "decoding.num_best=5", r"num_best \(5\) cannot exceed .* set lengths=5 as well"),
        ("masked", "decoding.size=3", "decoding.*size"),
        (
            "masked",
            "decoding={kind: beam, size: 3}",
            "kind=beam was given, but the model gives the tokens of all positions at once; use "
            "decoding.kind=one_pass or .*mask_predict",
        ),
        (
            "masked",
            "model.length={kind: many_begin}",
            "mask_predict was given, but the model gives the tokens of a fixed number .* use "
            "decoding.kind=one_pass",
        ),
        ("edited", "decoding.rounds=0", "decoding.rounds: must be at least 1, not 0"),
        (
            "edited",
            "decoding.insertion_penalty=-1",
            "decoding.insertion_penalty: must be at least 0",
        ),
        ("edited", "model.length.insertions=0", "length.insertions: must be at least 1, not 0"),
        ("edited", "decoding={kind: beam}", "deletions and insertions; use decoding.kind=edits"),
        ("edited", "training.objective.kind=glancing", "set training.objective.kind=cross_entropy"),
        ("edited", "model.structure.kind=ctc", "set structure.kind to independent"),
        ("edited", "model.input.kind=copy", "set input.kind=mask"),
        (
            "edited",
            "model.position={kind: learned, max_length: 64}",
            "64, but rows have 96 tokens",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_what_works(name: str, change: str, refusal: str) -> None:
    with pytest.raises(SettingsError, match=refusal):
        tiny_recipe(*overrides(name, change))


@pytest.mark.parametrize(
    ("name", "change", "refusal"),
    [
        ("masked", "no_repeat_ngrams=2", "no_repeat_ngrams; it follows min_length, allow_unknown"),
        ("edited", "prefix=Der", "prefix; it follows allow_unknown; leave the rule out"),
        ("edited", "min_length=3", "min_length; it follows allow_unknown; leave the rule out"),
    ],
)
def test_a_rule_that_is_not_followed_is_refused(
    runs: dict[str, Path], name: str, change: str, refusal: str
) -> None:
    translator = Translator.load(runs[name])
    with pytest.raises(UsageError, match=refusal):
        translator(TEXTS, translator.settings([change]))


def test_a_resumed_run_is_the_uninterrupted_one(runs: dict[str, Path], tmp_path: Path) -> None:
    """Which words are deleted follows the step, not the process."""
    from headwise.tasks.run import train

    changes = ["training.validate_every=3", "evaluation.validation_sentences=3"]
    train_tiny(tmp_path / "run", overrides("edited", *changes, "training.steps=4"))
    train(tiny_recipe(*overrides("edited", *changes)), run=tmp_path / "run", resume=True)
    weights = [
        (path / "model" / "weights.safetensors").read_bytes()
        for path in (runs["edited"], tmp_path / "run")
    ]
    assert weights[0] == weights[1]


def test_a_recipe_keeps_its_types() -> None:
    recipe = tiny_recipe(*overrides("masked"))
    assert isinstance(recipe, TranslationRecipe)
    assert isinstance(recipe.decoding, MaskPredictSettings)
