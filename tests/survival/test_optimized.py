"""`python -O` takes asserts away: what guards against bad input still does."""

import subprocess
import sys
from pathlib import Path

from tests.survival.background import BUNDLE, ENVIRONMENT

PROGRAM = """
import shutil, sys
from pathlib import Path
from headwise.data.known import corpora as known
from headwise.errors import HeadwiseError
from headwise.storage import verify_directory, write_manifest
from headwise.tasks.bundle_form import KIND
from headwise.tasks.translation.bundle import load_translator_bundle
from tests.attacks.tokenizers import TOKENIZERS
from tests.attacks.weights import WEIGHTS

if __debug__:
    sys.exit("start me with -O")
place, model = map(Path, sys.argv[1:])


def refused(name, work):
    try:
        work()
    except HeadwiseError:
        return
    print("taken:", name)


refused("http", lambda: known._open("http://localhost/x"))
attacks = {
    **WEIGHTS,
    "characters": None,
    "cut off": TOKENIZERS["cut off"],
    "group": TOKENIZERS["group"],
}
for name, attack in attacks.items():
    bundle = Path(shutil.copytree(model, place / name))
    if attack is None:  # a tokenizer of another kind than the recipe's
        (bundle / "tokenizer/shared/pieces.json").unlink()
        vocabulary = bundle / "tokenizer/shared/vocabulary.json"
        probes = bundle / "tokenizer/probes.json"
        vocabulary.write_text('{"kind": "characters", "entries": ["a", "b"]}')
        probes.write_text('[{"side": "shared", "text": "ab", "ids": [4, 5]}]')
    else:
        attack(bundle / ("weights.safetensors" if name in WEIGHTS else "tokenizer/shared"))
    write_manifest(bundle, kind=KIND)
    refused(name, lambda: load_translator_bundle(bundle))
    (bundle / "recipe.yaml").write_text("x")
    refused(f"{name} under an old manifest", lambda: verify_directory(bundle, kind=KIND))
print("done")
"""


def test_what_is_refused_is_refused_without_asserts(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-O", "-c", PROGRAM, tmp_path, BUNDLE],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == ("done\n", "")
