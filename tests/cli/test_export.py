"""A translator for CTranslate2, as a user asks for it."""

import json
from pathlib import Path

from benchmarks.made_data import save_untrained

from tests.cli.conftest import Headwise
from tests.exporting.test_ctranslate2_export import BRIEF, ENGLISH, make_bundle


def test_export(headwise: Headwise, tmp_path: Path) -> None:
    made = make_bundle(
        tmp_path / "model", (BRIEF.replace("size: 2", "size: 2, length_penalty: {kind: wu}"),)
    )
    save_untrained(
        tmp_path / "model",
        recipe=made.recipe,
        tokenizers=made.tokenizers,
        model=made.model,
        results=made.results,
    )
    (tmp_path / "probes.txt").write_text(ENGLISH[0] + "\n", encoding="utf-8")
    said = headwise("export", "model", "int8", "--quantization", "int8", "--probes", "probes.txt")
    assert (said.status, said.err) == (0, "")
    assert "int8: for CTranslate2, int8, 0.1 MB; README.md has the code that translates" in said.out
    assert (
        "checked in float32 on 1 probes: greedy and beam give the same tokens as Headwise"
        in said.out
    )
    assert "rounded to int8, log-probabilities are " in said.out
    assert "CTranslate2 has no words for decoding.length_penalty.kind=wu" in said.out
    again = headwise("export", "model", "int8")
    assert (again.status, again.err) == (
        2,
        "headwise: error: int8 exists already; choose another name or remove it\n",
    )
    plain = json.loads(headwise("export", "model", "plain", "--probes", "probes.txt", "--json").out)
    assert (plain["directory"], plain["quantization"], plain["exact"]["num_probes"]) == (
        "plain",
        "none",
        1,
    )
    assert plain["rounded"] is None
