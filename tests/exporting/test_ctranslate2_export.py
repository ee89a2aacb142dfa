"""Headwise and CTranslate2, two programs that share no code, give every token of every kind of
model the same probability."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import pytest
import torch
from benchmarks.made_data import save_untrained

from headwise.cli.export import QUANTIZATIONS as OFFERED
from headwise.decoding.choices import decode
from headwise.errors import CheckpointError, HeadwiseError, UsageError
from headwise.exporting import ctranslate2_check, ctranslate2_network
from headwise.exporting.ctranslate2_export import (
    QUANTIZATIONS,
    ExportedTranslator,
    export_translator,
)
from headwise.exporting.ctranslate2_network import require_expressible
from headwise.exporting.ctranslate2_search import translate_search
from headwise.exporting.export import export_model
from headwise.models.choices import build_model
from headwise.models.encoder_decoder import EncoderDecoder
from headwise.models.steppers import make_stepper
from headwise.randomness import torch_generator
from headwise.storage import verify_directory, write_manifest
from headwise.tasks.bundle_form import CTRANSLATE2
from headwise.tasks.translation.bundle import TranslatorBundle
from headwise.tasks.translation.translator import Translator
from headwise.text.choices import SentencePieceSettings, learn_tokenizers
from tests.tasks.tiny import tiny_recipe

ENGLISH = ["the dog sees the old cat", "a cat sleeps in the garden", "where is my other dog today"]
GERMAN = [
    "der Hund sieht die alte Katze",
    "eine Katze schläft im Garten",
    "wo ist heute mein anderer Hund",
]
BRIEF = "decoding={kind: beam, size: 2, max_length: 3}"
COMBINATIONS = {
    "the recipe's": (),
    "norm after": ("model.norm.place=after",),
    "rms": ("model.norm={kind: rms, epsilon: 0.003}",),
    "rms after": ("model.norm={kind: rms, place: after}", "model.position.layout=halves"),
    "epsilon": ("model.norm.epsilon=0.03", "model.embedding.scaled=false"),
    "own vocabularies": ("text.shared=false", "model.embedding.tied=output"),
    "untied": (
        "model.embedding.tied=none",
        "model.encoder.attention.kind=full",
        "model.decoder.heads=3",
    ),
    "gelu": ("model.feed_forward={kind: gelu, hidden: 17}",),
    "gated": ("model.feed_forward={kind: gated, hidden: 19}", "model.norm.place=after"),
    "learned": ("model.position={kind: learned, max_length: 131}",),
    "rotary": ("model.position={kind: rotary, base: 700}",),
    "rotary in neighbours": ("model.position={kind: rotary, pairing: interleaved}",),
    "relative": ("model.position={kind: relative, limit: 3}", "model.encoder.attention.kind=full")
    + ("model.decoder.attention.kind=full",),
    "relative keys": ("model.position={kind: relative, limit: 5, values: false}",),
    "t5": ("model.position={kind: t5, num_buckets: 8, max_distance: 11}", "model.decoder.layers=2"),
}


def make_bundle(directory: Path, overrides: Sequence[str] = ()) -> TranslatorBundle:
    """A translator with random weights that are far from those it would start with; only padding
    and the beginning are unlikely."""
    recipe = tiny_recipe(
        "model.dim=12",
        "model.encoder={layers: 2, heads: 2}",
        "model.decoder={layers: 1, heads: 2}",
        "model.output_bias=true",
        "decoding={kind: beam, size: 3, max_length: 7}",
        *overrides,
    )
    assert isinstance(recipe.text, SentencePieceSettings)
    text = recipe.text.model_copy(update={"size": 61 if recipe.text.shared else 47})
    tokenizers = learn_tokenizers(text, ENGLISH, GERMAN)
    sizes = {"source_size": tokenizers.source.size, "target_size": tokenizers.target.size}
    generator = torch_generator(7, "export")
    model = build_model(recipe.model, generator=generator, **sizes).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(1 + 0.2 * noise if name.endswith("gain") else 0.5 * noise)
        model.output.bias[:2] = -40.0
    return TranslatorBundle(directory, recipe, tokenizers, model, {})


@pytest.fixture(name="probes")
def _probes(tmp_path: Path) -> Path:
    path = tmp_path / "probes.txt"
    path.write_text(ENGLISH[0] + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("name", COMBINATIONS)
def test_every_token_has_the_same_probability_and_every_search_the_same_end(
    name: str, tmp_path: Path
) -> None:
    bundle = make_bundle(tmp_path, COMBINATIONS[name])
    source, target = bundle.tokenizers.source, bundle.tokenizers.target
    write_network(bundle, tmp_path)
    other = ctranslate2.Translator(
        str(tmp_path), compute_type="float32", intra_threads=torch.get_num_threads()
    )
    texts = [source.encode(text) for text in ENGLISH]
    found = [
        result.best for result in decode(make_stepper(bundle.model), texts, bundle.recipe.decoding)
    ]
    pieces, outputs = (
        [source.pieces(ids) for ids in texts],
        [target.pieces(best.tokens) for best in found],
    )
    for best, score in zip(found, other.score_batch(pieces, outputs), strict=True):
        given = list(best.token_log_probabilities)
        assert score.log_probs[: len(given)] == pytest.approx(given, abs=1e-4)
    options = {**translate_search(bundle.recipe.decoding).options, "max_decoding_length": 7}
    there = other.translate_batch(pieces, return_scores=True, **options)
    assert [[piece for piece in one.hypotheses[0] if piece != "</s>"] for one in there] == outputs
    assert [one.scores[0] for one in there] == pytest.approx(
        [best.score for best in found], abs=1e-4
    )


def test_without_a_bias_of_the_output(tmp_path: Path) -> None:
    """A model that has learnt nothing writes padding, which Headwise never lets it: only
    probabilities can be compared."""
    bundle = make_bundle(tmp_path, (BRIEF,))
    bundle.model.output.bias = None
    write_network(bundle, tmp_path)
    comparison = ctranslate2_check.ProbeComparison(bundle, ENGLISH[:1])
    found = comparison.differences(ctranslate2_check.load_foreign(tmp_path, compute_type="float32"))
    assert max(float(part.max()) for part in found) < 1e-4


def write_network(bundle: TranslatorBundle, directory: Path) -> None:
    source, target = bundle.tokenizers.source, bundle.tokenizers.target
    settings = require_expressible(bundle.recipe.model, tokenizer="sentencepiece")
    assert isinstance(bundle.model, EncoderDecoder)
    names = source.pieces(range(source.size)), target.pieces(range(target.size))
    network = ctranslate2_network.build_network(
        bundle.model, settings, vocabularies=names, longest=41
    )
    network.optimize()
    network.save(str(directory))


@pytest.fixture(scope="module", name="bundle")
def _bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("export") / "model"
    made = make_bundle(directory, (*COMBINATIONS["own vocabularies"], BRIEF))
    save_untrained(
        directory, recipe=made.recipe, tokenizers=made.tokenizers, model=made.model, results={}
    )
    return directory


def test_the_readme_translates_without_headwise_and_without_torch(
    bundle: Path, probes: Path, tmp_path: Path
) -> None:
    exported = export_model(bundle, tmp_path / "there", probes=probes)
    assert isinstance(exported, ExportedTranslator)
    assert (exported.exact.num_probes, exported.exact.num_same, exported.rounded) == (1, 1, None)
    assert exported.as_dict()["quantization"] == "none"
    files = verify_directory(tmp_path / "there", kind=CTRANSLATE2)["files"]
    vocabularies = {"source_vocabulary.json", "target_vocabulary.json"}
    assert (
        set(files)
        == {"model.bin", "config.json", "README.md", "source.model", "target.model"} | vocabularies
    )
    code = read_code(tmp_path / "there")
    hiding = (
        "import sys, json\nsys.modules.update(dict.fromkeys(['headwise', 'torch', "
        "'transformers']))\n"
    )
    asking = f"print(json.dumps(translate({ENGLISH!r})))"
    done = subprocess.run(
        [sys.executable, "-c", hiding + code + asking],
        cwd=tmp_path / "there",
        capture_output=True,
        check=True,
    )
    here = Translator.load(bundle, precision="fp32")
    assert json.loads(done.stdout) == [found.text for found in here(ENGLISH)]
    with pytest.raises(UsageError, match="exists already; choose another name"):
        export_model(bundle, tmp_path / "there")


def test_rounded_weights_are_smaller_and_measured(
    bundle: Path, probes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert OFFERED == QUANTIZATIONS
    exported = export_model(bundle, tmp_path / "int8", quantization="int8", probes=probes)
    assert isinstance(exported, ExportedTranslator)
    assert exported.rounded is not None
    assert exported.exact.difference < 1e-4 < exported.rounded.difference < 0.5
    assert "Rounded to int8" in (tmp_path / "int8/README.md").read_text(encoding="utf-8")
    monkeypatch.setattr(ctranslate2_check, "ROUNDED_TOLERANCE", 1e-9)
    with pytest.raises(
        HeadwiseError, match="rounded to int8, the log-probability of a token is off by"
    ):
        export_model(bundle, tmp_path / "refused", quantization="int8", probes=probes)
    with pytest.raises(UsageError, match="quantization is 'int4'; choose one of none, int8"):
        export_model(bundle, tmp_path / "refused", quantization="int4")
    assert not list(tmp_path.glob("refused*"))


def test_a_difference_is_an_error_and_nothing_is_published(
    bundle: Path, probes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(linear: Any, *parts: torch.nn.Linear) -> None:
        first(linear, *parts)
        linear.weight *= -1.5

    first = ctranslate2_network._fill_linear
    monkeypatch.setattr(ctranslate2_network, "_fill_linear", wrong)
    with pytest.raises(HeadwiseError, match="gives a token another log-probability than Headwise"):
        export_model(bundle, tmp_path / "out", probes=probes)
    monkeypatch.setattr(
        ctranslate2_check.ProbeComparison, "differences", lambda self, translator: [np.zeros(1)]
    )
    monkeypatch.setattr(ctranslate2_check.ProbeComparison, "_is_tied", lambda self, *given: False)
    with pytest.raises(
        HeadwiseError, match="search CTranslate2 translates the probe 'the dog sees the old cat' as"
    ):
        export_model(bundle, tmp_path / "out", probes=probes)
    assert not list(tmp_path.glob("out*"))


def test_ties_may_be_decided_either_way(tmp_path: Path) -> None:
    bundle = make_bundle(tmp_path, (BRIEF,))
    # Two tokens with the same row of the output are equally probable everywhere.
    with torch.no_grad():
        bundle.model.output.weight[11] = bundle.model.output.weight[12]
        bundle.model.output.bias[11] = bundle.model.output.bias[12]
    comparison = ctranslate2_check.ProbeComparison(bundle, ENGLISH[:1])
    assert comparison._is_tied(0, (9, 11, 13), (9, 12, 13))
    assert not comparison._is_tied(0, (9, 11, 13), (9, 14, 13))


@pytest.mark.parametrize(
    ("overrides", "what"),
    [
        (
            ["model.encoder.attention.kind=window"],
            r"model.encoder.attention.kind=window \(CTranslate2 takes full, fused\)",
        ),
        (
            ["model.decoder.cross_attention={kind: full, score: {kind: additive}}"],
            "kind=full with another score",
        ),
        (["model.decoder.attention.kind=linear"], "model.decoder.attention.kind=linear"),
        (
            ["model.position.kind=alibi"],
            r"model.position.kind=alibi \(CTranslate2 takes sinusoidal, learned, rotary",
        ),
        (["model.decoder.views=soft"], r"model.decoder.views=soft \(CTranslate2 takes top\)"),
        (["model.norm.kind=power"], r"model.norm.kind=power \(CTranslate2 takes layer, rms\)"),
        (["model.encoder.layers=0"], r"model.encoder.layers=0 \(CTranslate2 takes 1 or more\)"),
        (
            ["model={kind: recurrent, dim: 16, layers: 1}"],
            r"model.kind=recurrent \(CTranslate2 takes encoder_decoder\)",
        ),
        (
            ["text={kind: words, shared: true}"],
            r"text.kind=words \(CTranslate2 takes sentencepiece\)",
        ),
        (
            ["text={kind: characters}", "model.norm.kind=batch"],
            "text.kind=characters .*; model.norm.kind=batch .*; ship",
        ),
    ],
)
def test_what_cannot_be_expressed_is_refused_by_name(overrides: list[str], what: str) -> None:
    recipe = tiny_recipe(*overrides)
    with pytest.raises(UsageError, match=what):
        require_expressible(recipe.model, tokenizer=recipe.text.kind)


def test_what_else_stands_in_the_way(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "long.txt").write_text("cat " * 3000 + "\n", encoding="utf-8")
    with pytest.raises(UsageError, match="none of the 1 probes has fewer than 2048 tokens"):
        export_model(bundle, tmp_path / "out", probes=tmp_path / "long.txt")
    with pytest.raises(UsageError, match="will be an ARPA file, which has no --quantization"):
        export_model(bundle, tmp_path / "out.arpa", quantization="int8")
    other = Path(shutil.copytree(bundle, tmp_path / "other"))
    (other / "recipe.yaml").write_text("task: language_modeling\n", encoding="utf-8")
    write_manifest(other, kind="bundle")
    with pytest.raises(
        CheckpointError, match=r"n-grams go to model.arpa\), a translator is needed"
    ):
        export_model(other, tmp_path / "out")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"not installed; run: pip install 'headwise\[fast\]'"):
        export_model(bundle, tmp_path / "out")
    assert not list(tmp_path.glob("out*"))


def read_code(directory: Path) -> str:
    """The code of the README, as it stands there."""
    (code,) = re.findall(
        r"```python\n(.*?)```",
        (directory / "README.md").read_text(encoding="utf-8"),
        flags=re.DOTALL,
    )
    return str(code)


@pytest.mark.parametrize(
    "search", ["{kind: greedy, MAX}", "{kind: beam, size: 3, stop: filled, MAX}"]
)
def test_the_readme_ends_where_headwise_ends(
    search: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random weights seldom write an end: nearly every translation is cut at the limit of its own
    source."""
    decoding = search.replace("MAX", "max_length: {factor: 1.3, extra: 2, limit: 23}")
    bundle = make_bundle(tmp_path, (f"decoding={decoding}",))
    export_translator(bundle, tmp_path / "there")
    lines = [" ".join(sentence.split()[:count]) for sentence in ENGLISH for count in range(1, 6)]
    lines = [*lines, "", "   ", "dog " * 11]
    here = Translator(bundle, precision="fp32")(lines)
    monkeypatch.chdir(tmp_path / "there")
    names: dict[str, Any] = {}
    exec(read_code(tmp_path / "there"), names)
    assert names["translate"](lines) == [found.text for found in here]
    lengths = {names["longest"](bundle.tokenizers.source.encode(line)) for line in lines}
    assert len(lengths) > 5


def test_sampling_is_compared_by_what_is_not_drawn(tmp_path: Path) -> None:
    bundle = make_bundle(tmp_path, ("decoding={kind: sampling, max_length: 3}",))
    write_network(bundle, tmp_path)
    assert ctranslate2_check.ProbeComparison(bundle, ENGLISH[:1]).prove(tmp_path).num_same == 1
