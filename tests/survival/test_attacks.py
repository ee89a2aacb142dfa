"""S10 and R11: hostile files and bad corpora are refused, or mended and reported, in bounded memory
and time; none runs."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.attacks.corpora import CORPORA
from tests.attacks.texts import MANIFESTS, YAML
from tests.attacks.tokenizers import TOKENIZERS
from tests.attacks.weights import WEIGHTS
from tests.survival.background import BUNDLE, ENVIRONMENT, Background
from tests.survival.conftest import ShortForms

MAX_GROWTH, MAX_SECONDS, MAX_MESSAGE = 100, 5, 2000
PLAIN = """
import sys
from pathlib import Path
from headwise.errors import HeadwiseError
from headwise.settings import read_settings_file
from headwise.storage import verify_directory
refused = 0
for path in sorted(Path(sys.argv[1]).iterdir()):
    try:
        verify_directory(path, kind="bundle") if path.is_dir() else read_settings_file(path)
    except HeadwiseError:
        refused += 1
assert "torch" not in sys.modules
status = Path("/proc/self/status").read_text().splitlines()
highest = next(line for line in status if line.startswith("VmHWM"))
print(refused, int(highest.split()[1]) >> 10)
"""


def check(
    directory: Path, answers: dict[str, dict[str, Any]], *, size: int, seconds: float
) -> None:
    assert len(answers) == len(WEIGHTS) + len(TOKENIZERS) + len(MANIFESTS) + len(YAML) + len(
        CORPORA
    )
    for name, answer in answers.items():
        kind, _, case = name.partition(": ")
        corpus = CORPORA[case](4) if kind == "corpus" else None
        expected = {"weights": 3, "tokenizer": 3, "manifest": 3, "recipe": 2, "corpus": 3}[kind]
        if corpus is not None and corpus.kept is not None:
            assert json.loads(answer["message"])["kept"] == corpus.kept, (name, answer)
            expected = 0
        assert answer["status"] == expected, (name, answer)
        assert answer["growth"] < MAX_GROWTH, (name, answer)
        assert answer["seconds"] < (seconds if kind == "corpus" else MAX_SECONDS), (name, answer)
        assert answer["length"] < MAX_MESSAGE, (name, answer["length"])
        if corpus is not None:
            assert CORPORA[case](size).said in answer["message"], (name, answer)
    assert not (directory / "exploded").exists(), "somebody ran what was in a file"


def test_hostile_files_and_bad_corpora(short_forms: ShortForms) -> None:
    check(short_forms.directory / "attacked", short_forms.attacked.answer(), size=4, seconds=10)


def test_parsers_that_need_no_torch_stay_small(tmp_path: Path) -> None:
    for name, text in YAML.items():
        (tmp_path / name).write_text(text(), encoding="utf-8")
    for name, text in MANIFESTS.items():
        (tmp_path / f"manifest {name}").mkdir()
        (tmp_path / f"manifest {name}" / "MANIFEST.json").write_text(text(), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", PLAIN, tmp_path],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=True,
    )
    refused, mebibytes = map(int, done.stdout.split())
    # "Nothing listed" is whole where nothing is there; "base sixty" and "ten megabytes" … are
    # judged by check_settings.
    assert refused >= len(YAML) + len(MANIFESTS) - 2
    assert mebibytes < 200


@pytest.mark.prove
def test_hostile_files_at_full_size(tmp_path: Path, record: Callable[..., None]) -> None:
    answers = Background("attacked", tmp_path, BUNDLE, 6).answer()
    check(tmp_path, answers, size=6, seconds=120)
    hostile = {name: answer for name, answer in answers.items() if not name.startswith("corpus")}
    corpora = {name: answer for name, answer in answers.items() if name.startswith("corpus")}
    for row, what, some in (
        ("S10", "hostile weights, tokenizers, manifests and recipes", hostile),
        ("R11", "bad corpora", corpora),
    ):
        growth, seconds = (
            max(answer[key] for answer in some.values()) for key in ("growth", "seconds")
        )
        mended = sum(answer["status"] == 0 for answer in some.values())
        result = f"{len(some) - mended} refused with a reason" + (
            f", {mended} mended and reported" if mended else ""
        )
        record(
            row,
            f"{len(some)} {what}",
            f"{result}; at most {growth:.0f} MiB more and {seconds:.1f} s of processor time; "
            "nothing ran",
        )
