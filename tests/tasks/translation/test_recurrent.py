"""A recurrent translator through everything a Transformer goes through: training, resuming,
bundles, searches, maps, plans."""

import json
from pathlib import Path

import pytest
import torch

from headwise.cli.main import main
from headwise.data.packing import PackedBatch
from headwise.errors import SettingsError, UsageError
from headwise.inspecting.description import describe_model
from headwise.models.choices import build_model
from headwise.models.recurrent.translator import RecurrentTranslator
from headwise.pocket import sentences
from headwise.tasks.planner import plan_recipe
from headwise.tasks.recipe import load_translation_recipe, write_recipe
from headwise.tasks.run import train
from headwise.tasks.run_start import RunSummary
from headwise.tasks.translation.objective import TranslationLoss
from headwise.tasks.translation.pocket_test import measure_alignment
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.tasks.translation.translator import Translator
from tests.tasks.tiny import OVERRIDES

TEXTS = [sentence.text("en") for sentence in sentences("test", 5)]
KEPT = tuple(change for change in OVERRIDES if not change.startswith("model."))


def recurrent_recipe(*overrides: str, attention: str = "luong") -> TranslationRecipe:
    model = (
        "model={kind: recurrent, cell: lstm, dim: 16, layers: 1, attention: {kind: "
        + attention
        + "}}"
    )
    return load_translation_recipe("pocket", [*KEPT, model, *overrides])


def train_recurrent(directory: Path, *overrides: str, attention: str = "luong") -> RunSummary:
    return train(recurrent_recipe(*overrides, attention=attention), run=directory)


@pytest.fixture(name="run", scope="module")
def _run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("recurrent") / "run"
    train_recurrent(directory)
    return directory


def test_a_run_ends_in_a_bundle_that_translates(run: Path) -> None:
    translator = Translator.load(run)
    assert isinstance(translator.model, RecurrentTranslator)
    assert "1 lstm encoder and 1 decoder layers, attention: luong" in (
        run / "model" / "README.md"
    ).read_text("utf-8")
    for change in (
        ["kind=greedy"],
        ["kind=beam", "size=3"],
        ["kind=beam", "size=3", "coverage_penalty=0.2"],
    ):
        decoding = translator.settings([*change, "max_length=9"])
        together = translator(TEXTS, decoding)
        assert [one.text for one in together] == [
            translator([text], decoding)[0].text for text in TEXTS
        ]


def test_every_form_for_inference_translates(run: Path) -> None:
    plain = Translator.load(run, device="cpu", precision="fp32")
    for precision in ("bf16", "int8"):
        other = Translator.load(run, device="cpu", precision=precision)
        assert len(other(TEXTS[:2])) == len(plain(TEXTS[:2]))


def test_links_and_maps_come_from_its_attention(run: Path) -> None:
    translator = Translator.load(run)
    found = translator(TEXTS[:1], alignment=True, attention=True)[0]
    assert found.attention is not None
    assert list(found.attention.maps) == ["decoder.0.cross"]
    weights = found.attention.maps["decoder.0.cross"]
    assert weights.shape == (1, len(found.target_pieces), len(found.source_pieces))
    assert weights.sum(-1) == pytest.approx(1.0, abs=1e-5)
    assert found.alignment is not None
    assert {result.layer for result in measure_alignment(translator, count=2)} == {0}


def test_a_model_without_attention_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train_recurrent(tmp_path / "run", "training.steps=2", attention="none")
    translator = Translator.load(tmp_path / "run")
    assert translator(TEXTS[:1])[0].text is not None
    with pytest.raises(UsageError, match="read from attention, and this model has none"):
        translator(TEXTS[:1], alignment=True)
    capsys.readouterr()
    assert main(["translate", "--model", str(tmp_path / "run"), "--json", "--text", TEXTS[0]]) == 0
    line = json.loads(capsys.readouterr().out)
    assert line["text"] == translator(TEXTS[:1])[0].text
    assert "alignment" not in line


def test_a_search_that_needs_attention_is_refused_before_training(tmp_path: Path) -> None:
    search = "decoding={kind: beam, size: 2, coverage_penalty: 0.5}"
    with pytest.raises(
        UsageError, match="coverage_penalty needs attention, and the model has none"
    ):
        train_recurrent(tmp_path / "run", search, attention="none")
    assert not list(tmp_path.glob("run/checkpoints/step-*"))


def test_a_resumed_run_is_the_uninterrupted_one(run: Path, tmp_path: Path) -> None:
    train_recurrent(tmp_path / "run", "training.steps=4")
    recipe = recurrent_recipe()
    train(recipe, run=tmp_path / "run", resume=True)
    weights = [
        (path / "model" / "weights.safetensors").read_bytes() for path in (run, tmp_path / "run")
    ]
    assert weights[0] == weights[1]


def test_the_loss_of_packed_rows_has_gradients_everywhere() -> None:
    model = build_model(
        recurrent_recipe(attention="bahdanau").model,
        source_size=19,
        target_size=19,
        generator=torch.Generator().manual_seed(3),
    )
    tokens, segment = torch.tensor([[5, 6, 2, 7, 2, 0]]), torch.tensor([[1, 1, 1, 2, 2, 0]])
    position = torch.tensor([[0, 1, 2, 0, 1, 0]])
    batch = PackedBatch(tokens, segment, position, tokens, tokens, segment, position)
    sums = TranslationLoss(model, 0.1).loss(batch)
    sums.loss.backward()
    assert all(weight.grad is not None for weight in model.parameters())


@pytest.mark.parametrize(
    ("change", "needed"),
    [
        ("training.compile=on", "training.compile=off"),
        ("training.cuda_graphs=on", "training.cuda_graphs=off"),
        ("training.recompute=blocks", "training.recompute=nothing"),
        ("training.parallel={kind: sharded}", "training.parallel.kind=replicated"),
    ],
)
def test_what_a_recurrence_has_no_form_for_is_refused(change: str, needed: str) -> None:
    kept = [one for one in KEPT if not one.startswith("training.compile")]
    with pytest.raises(
        SettingsError, match=f"model.kind=recurrent is a recurrent model, .* set {needed}"
    ):
        load_translation_recipe("pocket", [*kept, "model={kind: recurrent}", change])


def test_its_recipe_survives_being_written_and_a_kind_may_still_be_left_out(tmp_path: Path) -> None:
    recipe = recurrent_recipe()
    (tmp_path / "again.yaml").write_text(write_recipe(recipe), encoding="utf-8")
    assert load_translation_recipe(tmp_path / "again.yaml") == recipe
    assert load_translation_recipe("base", ["model={dim: 32}"]).model.kind == "encoder_decoder"
    with pytest.raises(SettingsError, match=r"model.*recurent"):
        load_translation_recipe("base", ["model={kind: recurent}"])


def test_it_is_described_and_planned() -> None:
    names = [part["name"] for part in describe_model("pocket-recurrent").as_dict()["parts"]]
    assert names == [
        "source_embedding.table",
        "encoder.forwards.*.weights",
        "encoder.backwards.*.weights",
        "decoder.layers.layers.*.weights",
        "decoder.attention.kernel.score",
        "decoder.widen",
        "output",
    ]
    for attention in ("none", "luong"):
        plan = plan_recipe(
            recurrent_recipe("data.row_tokens=16", attention=attention), device="h200"
        )
        assert not plan.execution.compiled
        assert plan.run.flops_per_token > 0
