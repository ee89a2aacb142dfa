"""A new way to generate costs one file and its lines in `choices.py`: everything else takes it.

The library is copied, `token_mapping.py` is added to its `decoding`, and three lines to
`choices.py`. `new_kind_program.py` then translates, evaluates and serves a model whose recipe names
the kind.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.serving.conftest import BUNDLE

HERE = Path(__file__).resolve().parent
LIBRARY = HERE.parents[1] / "src" / "headwise"
LINES = {
    "from headwise.decoding.search.beam": (
        "from headwise.decoding.token_mapping import TokenMapping, TokenMappingSettings\n"
        "from headwise.decoding.search.beam"
    ),
    "DecodingSettings = Annotated[\n    GreedySettings": (
        "DecodingSettings = Annotated[\n    TokenMappingSettings | GreedySettings"
    ),
    "        case _:\n            raise explain_wrong_settings": (
        "        case TokenMappingSettings():\n"
        "            return TokenMapping(model)\n"
        "        case _:\n            raise explain_wrong_settings"
    ),
}


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    directory = tmp_path_factory.mktemp("new_kind")
    copy = directory / "library" / "headwise"
    shutil.copytree(LIBRARY, copy, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(HERE / "token_mapping.py", copy / "decoding" / "token_mapping.py")
    choices = copy / "decoding" / "choices.py"
    text = choices.read_text(encoding="utf-8")
    for old, new in LINES.items():
        assert text.count(old) == 1
        text = text.replace(old, new)
    choices.write_text(text, encoding="utf-8")
    subprocess.run(
        [sys.executable, HERE / "new_kind_program.py", _bundle(directory), directory],
        env={**os.environ, "PYTHONPATH": str(copy.parent), "HEADWISE_LANGUAGE": "en"},
        check=True,
        timeout=300,
    )
    found: dict[str, Any] = json.loads((directory / "seen.json").read_text(encoding="utf-8"))
    return found


def _bundle(directory: Path) -> Path:
    """The small translator, with the new kind in its recipe."""
    bundle = directory / "bundle"
    shutil.copytree(BUNDLE, bundle)
    recipe, manifest = bundle / "recipe.yaml", bundle / "MANIFEST.json"
    settings = yaml.safe_load(recipe.read_text(encoding="utf-8"))
    settings["decoding"] = {"kind": "token_mapping"}
    recipe.write_text(yaml.safe_dump(settings), encoding="utf-8")
    content = recipe.read_bytes()
    listed = json.loads(manifest.read_text(encoding="utf-8"))
    listed["files"]["recipe.yaml"] = {
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    manifest.write_text(json.dumps(listed), encoding="utf-8")
    return bundle


def test_translate_and_evaluate(seen: dict[str, Any]) -> None:
    assert seen["cli"] == {"status": 0, "out": f"{seen['expected']}\n", "errors": ""}
    assert seen["evaluate"]["status"] == 0
    assert json.loads(seen["evaluate"]["out"])["bleu"] == pytest.approx(100.0)


def test_the_server_translates_with_it(seen: dict[str, Any]) -> None:
    for name in ("default", "explicit"):
        assert seen[name]["status"] == 200, seen[name]["text"]
        translated = json.loads(seen[name]["text"])["translations"][0]
        assert translated["text"] == seen["expected"]
    assert json.dumps(seen["expected"], ensure_ascii=False) in seen["stream"]["text"]


def test_the_trace_shows_it_and_no_other_search(seen: dict[str, Any]) -> None:
    assert seen["trace"]["status"] == 200, seen["trace"]["text"]
    trace = json.loads(seen["trace"]["text"])
    assert trace["decoding"] == "token_mapping"
    assert trace["target_text"] == seen["expected"]
    assert [step["rank"] for step in trace["steps"]] == [1] * len(trace["steps"])
    assert len(trace["steps"]) == len(trace["n_best"][0]["tokens"]) + 1
    assert trace["tree"] is None
    assert trace["maps"]
    occluded = json.loads(seen["occlude"]["text"])
    assert len(occluded["changes"]) == len(occluded["words"])


def test_rules_that_it_does_not_follow_are_refused(seen: dict[str, Any]) -> None:
    refusal = "token_mapping decoding does not follow the rule forbidden; it follows prefix"
    assert seen["cli_forbid"]["status"] != 0
    assert refusal in " ".join(seen["cli_forbid"]["errors"].split())
    assert seen["forbid"]["status"] == 422
    assert refusal in seen["forbid"]["text"]
    assert seen["unknown_option"]["status"] == 422
    assert seen["require"]["status"] == 422
    assert "cannot guarantee required phrases" in seen["require"]["text"]
    assert seen["n_best"]["status"] == 422
    assert "token_mapping search finds one translation" in seen["n_best"]["text"]
