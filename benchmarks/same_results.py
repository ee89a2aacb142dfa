"""Do two versions of the program learn the same weights and write the same translations?

A refactoring must not change a result. This script trains many small models and translates with
them, and writes one SHA-256 for each case into a file. Run it in a checkout of the version before
and in one of the version after, on the same machine with the same packages, and compare the two
files:

    python benchmarks/same_results.py record before.json            # in the older checkout
    python benchmarks/same_results.py record after.json             # in the newer one
    python benchmarks/same_results.py compare before.json after.json

The cases are the shipped recipes that a CPU can train for some hundred updates, every kind of
attention, position, norm, score and feed-forward in a tiny translator and a tiny language model,
and every kind of search on one small translator. Everything goes through the command line, so that
the script outlives the modules behind it. Recipes read public corpora from the directory that
`HEADWISE_DATA` names; a case whose corpus is missing is recorded as such.

Results of different machines differ in their last bits: only files recorded on one machine can be
compared.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import safe_open

ROOT = Path(__file__).resolve().parents[1]

# Large models take too long on a CPU, and some recipes start from a model that another recipe
# makes.
TOO_LARGE = ("base", "big", "english-masked-large", "ptb-lstm-large")
STARTS_FROM_ANOTHER = (
    "sst2-100-pretrained",
    "sst2-100-vectors",
    "sst2-pretrained",
    "ud-ewt-tags-elmo",
)

# Of these recipes, 200 updates of the size they are written for take hours on one core.
LARGE_BATCHES = {
    "chinese-lstm": 256,
    "compare-attention": 256,
    "en-zh": 256,
    "english-masked": 256,
    "multi30k-en-de": 256,
    "multi30k-en-de-recurrent": 256,
    "multi30k-en-fr": 256,
    "people-daily-tags": 1024,
    "ptb-gpt": 256,
    "shakespeare-gpt": 256,
    "zh-en": 256,
}

SMALL_TRANSLATOR = (
    "data.train={kind: pocket, split: train, count: 3000}",
    "data.valid={kind: pocket, split: valid, count: 40}",
    "data.test={kind: pocket, split: test, count: 40}",
    "text.size=600",
    "model.dim=32",
    "model.feed_forward.hidden=64",
    "training.batch_tokens=512",
)

ENCODER_ATTENTION = (
    "{kind: full}",
    "{kind: fused}",
    "{kind: window, left: 4, right: 4}",
    "{kind: longformer, width: 8}",
    "{kind: bigbird, block: 4, num_random_blocks: 1}",
    "{kind: linear}",
    "{kind: performer}",
    "{kind: reformer, bucket_size: 16}",
    "{kind: linformer, rank: 16, max_length: 128}",
)
DECODER_ATTENTION = (
    "{kind: full}",
    "{kind: window, left: 8}",
    "{kind: longformer, width: 8, num_global: 0}",
    "{kind: linear}",
    "{kind: performer}",
    "{kind: reformer, bucket_size: 16}",
)
SCORES = ("dot", "scaled_dot", "additive", "concat", "bilinear", "cosine", "location", "gaussian")
NORMALIZERS = ("softmax", "sparsemax", "entmax")
POSITIONS = (
    "sinusoidal",
    "learned",
    "rotary",
    "alibi",
    "t5",
    "relative",
    "transformer_xl",
    "continuous",
)
NORMS = ("layer", "rms", "power", "batch")
FEED_FORWARDS = ("relu", "gelu", "gated")
SEARCHES = (
    (),
    ("--set", "kind=beam", "--set", "size=4"),
    ("--n-best", "3"),
    ("--set", "kind=beam", "--set", "size=4", "--set", "length_penalty=0.6"),
    ("--set", "kind=beam", "--set", "size=4", "--set", "no_repeat=2"),
    ("--set", "kind=sampling", "--set", "seed=1"),
    ("--set", "kind=sampling", "--set", "seed=1", "--set", "top_k=5"),
    ("--set", "kind=sampling", "--set", "seed=1", "--set", "top_p=0.8"),
    ("--forbid", "Hund"),
    ("--set", "kind=beam", "--set", "size=4", "--require", "Hund"),
    ("--prefix", "Das"),
    ("--precision", "int8"),
)


@dataclass(frozen=True)
class Case:
    """One training, and whether what it made is also asked to translate."""

    name: str
    recipe: str
    overrides: tuple[str, ...] = ()
    searches: tuple[tuple[str, ...], ...] = ()


def cases(recipes: Sequence[str], num_steps: int) -> Iterator[Case]:
    """Everything that is recorded, the quick and telling ones first."""
    steps = (
        f"training.steps={num_steps}",
        f"training.validate_every={num_steps // 2}",
        f"training.checkpoint_every={num_steps // 2}",
    )
    small = (*SMALL_TRANSLATOR, *steps)
    yield Case("search", "pocket", small, SEARCHES)
    yield Case("search by a recurrent translator", "pocket-recurrent", steps, SEARCHES[:-1])
    for place, kinds in (("encoder", ENCODER_ATTENTION), ("decoder", DECODER_ATTENTION)):
        for kind in kinds:
            yield Case(
                f"{place}.attention={kind}", "pocket", (*small, f"model.{place}.attention={kind}")
            )
    for score in SCORES:
        value = f"{{kind: full, score: {{kind: {score}}}}}"
        yield Case(f"score={score}", "pocket", (*small, f"model.encoder.attention={value}"))
    for normalizer in NORMALIZERS:
        value = f"{{kind: full, weights: {{kind: {normalizer}}}}}"
        yield Case(f"weights={normalizer}", "pocket", (*small, f"model.encoder.attention={value}"))
    for key, kinds in (("position", POSITIONS), ("norm", NORMS)):
        for kind in kinds:
            # Relative positions add to the values, which needs every weight.
            full = ("model.encoder.attention={kind: full}", "model.decoder.attention={kind: full}")
            added = full if kind == "relative" else ()
            value = f"model.{key}={{kind: {kind}}}"
            yield Case(f"{key}={kind}", "pocket", (*small, *added, value))
    for kind in FEED_FORWARDS:
        value = f"model.feed_forward={{kind: {kind}, hidden: 64}}"
        yield Case(f"feed_forward={kind}", "pocket", (*small, value))
    for recipe in recipes:
        if recipe not in TOO_LARGE and recipe not in STARTS_FROM_ANOTHER:
            yield Case(f"recipe {recipe}", recipe, _overrides_of(recipe, steps))


def _overrides_of(recipe: str, steps: tuple[str, ...]) -> tuple[str, ...]:
    if recipe == "word-vectors":
        return ("training.threads=1",)  # several threads do not give the same vectors twice
    if recipe in LARGE_BATCHES:
        return (*steps, f"training.batch_tokens={LARGE_BATCHES[recipe]}")
    return steps


def record(path: Path, num_steps: int, wanted: str) -> None:
    """Run the cases and write one digest for each; a file that exists already is continued."""
    made: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    for case in cases(_recipes(), num_steps):
        if wanted not in case.name or case.name in made:
            continue
        begin = time.monotonic()
        with tempfile.TemporaryDirectory() as scratch:
            made[case.name] = _record_case(case, Path(scratch))
        path.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n")
        print(
            f"{case.name}: {str(made[case.name])[:90]} ({time.monotonic() - begin:.0f} s)",
            flush=True,
        )


def _record_case(case: Case, scratch: Path) -> dict[str, str]:
    run = scratch / "run"
    overrides = case.overrides
    trained = _headwise("train", case.recipe, "--run", str(run), *overrides)
    if trained.returncode and any(
        key in trained.stderr for key in ("training.steps", "training.validate_every")
    ):
        # Models that count have no updates.
        trained = _headwise("train", case.recipe, "--run", str(run))
    if trained.returncode:
        return {"refused": trained.stderr.strip().splitlines()[-1]}
    digests = digests_of_bundle(run / "model")
    for search in case.searches:
        sentences = scratch / "sentences"
        sentences.write_text("".join(f"{line}\n" for line in _SENTENCES), encoding="utf-8")
        output = _headwise("translate", "--model", str(run / "model"), str(sentences), *search)
        found = hashlib.sha256(output.stdout.encode()).hexdigest()
        refused = f"refused: {output.stderr.strip()}"
        digests["translate " + " ".join(search)] = refused if output.returncode else found
    return digests


def digests_of_bundle(bundle: Path) -> dict[str, str]:
    """SHA-256 of every file that is not a description of the run; of weights, that of their
    tensors."""
    return {
        str(file.relative_to(bundle)): _digest(file)
        for file in sorted(bundle.rglob("*"))
        if file.is_file()
        and file.suffix not in (".md", ".yaml")
        and file.name not in ("MANIFEST.json", "results.json")
    }


def _digest(file: Path) -> str:
    if file.suffix != ".safetensors":
        return hashlib.sha256(file.read_bytes()).hexdigest()
    digest = hashlib.sha256()
    with safe_open(file, framework="pt") as tensors:
        for name in sorted(tensors.keys()):
            tensor = tensors.get_tensor(name).contiguous()
            digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
            digest.update(tensor.view(-1).numpy().tobytes())
    return digest.hexdigest()


def compare(before: Path, after: Path) -> int:
    """Print every case that differs; the exit status says whether any does."""
    first, second = json.loads(before.read_text()), json.loads(after.read_text())
    different = 0
    for name in sorted(first.keys() | second.keys()):
        one, other = first.get(name, {}), second.get(name, {})
        different += one != other
        for what in sorted(one.keys() | other.keys()):
            if one.get(what) != other.get(what):
                print(f"{name}: {what}\n  before {one.get(what)}\n  after  {other.get(what)}")
    print(f"{len(first.keys() & second.keys())} cases in both files, {different} differ")
    return 1 if different else 0


def _recipes() -> list[str]:
    listed = _headwise("recipes")
    return sorted(line.split("\t")[0] for line in listed.stdout.splitlines() if "\t" in line)


def _headwise(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "LC_ALL": "C.UTF-8",
        "PYTHONPATH": os.pathsep.join(
            [str(ROOT / "src"), *filter(None, [os.getenv("PYTHONPATH")])]
        ),
    }
    command = [sys.executable, "-m", "headwise", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


_SENTENCES = (
    "The animal didn't cross the street because it was too tired.",
    "The animal didn't cross the street because it was too wide.",
    "The dog is old.",
    "My sister reads a long book.",
    "",
    "Where is the teacher?",
    "The child sees the dog and the cat.",
    "zzz qqq",
)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    actions = parser.add_subparsers(dest="action", required=True)
    recording = actions.add_parser(
        "record", help="train, translate, and write the digests into FILE"
    )
    recording.add_argument("file", type=Path)
    recording.add_argument("--steps", type=int, default=200, help="updates of each training")
    recording.add_argument("--only", default="", help="only the cases whose name contains this")
    comparing = actions.add_parser("compare", help="print the cases that differ")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    given = parser.parse_args()
    if given.action == "compare":
        return compare(given.before, given.after)
    record(given.file, given.steps, given.only)
    return 0


if __name__ == "__main__":
    sys.exit(main())
