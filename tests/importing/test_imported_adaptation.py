"""An imported translator goes on learning like any other."""

from pathlib import Path

import torch

from headwise.pocket import sentences
from headwise.tasks.translation.adaptation_report import adapt
from headwise.tasks.translation.adaptation_request import AdaptationRequest
from headwise.tasks.translation.translator import Translator
from headwise.weights import read_tensors

BRIEF = (
    "training.steps=3",
    "training.schedule.warmup=1",
    "training.batch_tokens=256",
    "evaluation.validation_sentences=2",
    "decoding.max_length=5",
)


def test_an_imported_translator_is_adapted(imported: Path, tmp_path: Path) -> None:
    for code in ("zh", "en"):
        lines = "".join(one.text(code) + "\n" for one in sentences("train", 120))
        (tmp_path / f"my.{code}").write_text(lines, encoding="utf-8")
    request = AdaptationRequest(
        model=imported, data=(str(tmp_path / "my"),), run=tmp_path / "run", overrides=BRIEF
    )
    adapt(request)
    before = read_tensors(imported / "weights.safetensors")
    after = read_tensors(tmp_path / "run/model/weights.safetensors")
    assert before.keys() == after.keys()
    assert not torch.equal(before["output.bias"], after["output.bias"])
    assert after["output.bias"][1] < -9000, "<s> is still never written"
    translator = Translator.load(tmp_path / "run")
    assert translator.recipe.text.kind == "imported_pieces"
    assert translator.tokenizers.source.encode("累") == Translator.load(
        imported
    ).tokenizers.source.encode("累")
