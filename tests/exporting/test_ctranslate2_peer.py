"""CTranslate2 beside Headwise: the same translations from text to text, and what is refused."""

from pathlib import Path

import pytest
import torch

from headwise.errors import UsageError
from headwise.exporting.ctranslate2_peer import make_peer
from headwise.pocket import sentences
from headwise.tasks.translation.bundle import load_translator_bundle
from headwise.tasks.translation.translator import Translator

CPU = torch.device("cpu")


def test_it_writes_what_greedy_search_writes(tiny_run: Path, translator: Translator) -> None:
    pytest.importorskip("ctranslate2")
    peer = make_peer(load_translator_bundle(tiny_run), precision="fp32", device=CPU)
    texts = [one.text("en") for one in sentences("test", 7)]
    texts.insert(3, "  ")
    expected = [one.text for one in translator(texts, translator.settings(["kind=greedy"]))]
    for size in (1, 3, 64):
        assert peer.translate(texts, size) == expected
    assert peer.translate(["", " "], 8) == ["", ""]
    assert peer.name == "CTranslate2 greedy"


def test_int8_is_another_set_of_weights(tiny_run: Path) -> None:
    pytest.importorskip("ctranslate2")
    peer = make_peer(load_translator_bundle(tiny_run), precision="int8", device=CPU)
    assert peer.translator.compute_type.startswith("int8")
    assert len(peer.translate([one.text("en") for one in sentences("test", 3)], 2)) == 3


@pytest.mark.parametrize(("precision", "device"), [("fp32", "cuda"), ("bf16", "cpu")])
def test_other_conditions_are_refused(tiny_run: Path, precision: str, device: str) -> None:
    with pytest.raises(UsageError, match="is measured on a CPU in fp32 or int8, and here on"):
        make_peer(
            load_translator_bundle(tiny_run),
            precision=precision,  # type: ignore[arg-type]
            device=torch.device(device),
        )


def test_without_the_package_it_says_so(tiny_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UsageError, match="needs the package ctranslate2, which is not installed"):
        make_peer(load_translator_bundle(tiny_run), precision="fp32", device=CPU)
