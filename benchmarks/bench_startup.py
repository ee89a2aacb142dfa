"""Start-up: how long a person waits before `headwise` answers.

    python benchmarks/bench_startup.py [--runs 3]

Measured: the wall time of whole processes, started one after the other as a shell would, the
interpreter included. `translate` loads a bundle of the pocket recipe's size (checksums, recipe,
tokenizer, weights) and translates one sentence.

The floor: a bare `python -c pass` (tens of milliseconds), and for what needs torch, `import torch`
(about 1 s): neither can be avoided, and "of floor" is measured against them in the same run. Bytes
are few: a pocket bundle is 4 MB. How far we are: the bars are < 0.3 s for --help and --version, <
2.5 s for a sentence; dated numbers in docs/experiments/decoding-speed.md.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from harness import ROOT, Bench, Contender, Run, make_parser
from made_data import save_untrained
from sizes import SIZES, Size

from headwise.models.choices import build_model
from headwise.pocket import sentences
from headwise.randomness import torch_generator
from headwise.settings import check_settings
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.text.choices import learn_tokenizers

SENTENCE = "The old teacher bought a red apple in the park.\n"
SEARCH = {"kind": "greedy", "max_length": 20}


def make_bundle(directory: Path, size: Size) -> Path:
    """A translator with random weights: it knows nothing, in the time of one that does."""
    stack = {"layers": size.layers, "heads": size.heads}
    recipe = check_settings(
        TranslationRecipe,
        {
            "data": {"source": "en", "target": "de", "train": "pocket:train"},
            "text": {"kind": "sentencepiece", "algorithm": "unigram", "size": size.vocab},
            "model": {"dim": size.dim, "encoder": stack, "decoder": stack},
            "decoding": SEARCH,
        },
    )
    examples = list(sentences("train", 2000))
    tokenizers = learn_tokenizers(
        recipe.text, (s.text("en") for s in examples), (s.text("de") for s in examples)
    )
    model = build_model(
        recipe.model,
        source_size=tokenizers.source.size,
        target_size=tokenizers.target.size,
        generator=torch_generator("benchmark", "bundle"),
    )
    save_untrained(directory, recipe=recipe, tokenizers=tokenizers, model=model, results={})
    return directory


def start_process(arguments: Sequence[str], *, given: str = "") -> None:
    """Wait for one process to end; its output is read, as a shell would, and dropped."""
    paths = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    subprocess.run(
        [sys.executable, *arguments],
        input=given,
        env=os.environ | {"PYTHONPATH": paths, "PYTHONUTF8": "1"},
        capture_output=True,
        encoding="utf-8",
        check=True,
    )


def build_run(arguments: Sequence[str], *, given: str, num_runs: int) -> Run:
    def run() -> float:
        for _ in range(num_runs):
            start_process(arguments, given=given)
        return num_runs

    return run


def seconds_of(arguments: Sequence[str], *, num_runs: int) -> float:
    found = []
    for _ in range(num_runs):
        began = time.perf_counter()
        start_process(arguments)
        found.append(time.perf_counter() - began)
    return min(found)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--runs", type=int, default=3, help="processes in a row in each round")
    options = parser.parse_args(arguments)
    if options.quick:
        options.rounds, options.runs = 1, 1
    bench = Bench("startup", options)
    bare = seconds_of(["-c", "pass"], num_runs=options.runs)
    with_torch = seconds_of(["-c", "import torch"], num_runs=options.runs)
    with tempfile.TemporaryDirectory() as directory:
        bundle = make_bundle(Path(directory) / "model", SIZES["pocket"])
        commands: list[tuple[str, list[str], float]] = [
            ("python -c pass", ["-c", "pass"], bare),
            ("import headwise", ["-c", "import headwise"], bare),
            ("headwise --version", ["-m", "headwise", "--version"], bare),
            ("headwise --help", ["-m", "headwise", "--help"], bare),
            ("import torch", ["-c", "import torch"], with_torch),
            (
                "translate a sentence",
                ["-m", "headwise", "translate", "--model", str(bundle)],
                with_torch,
            ),
        ]
        contenders = [
            Contender(
                name, partial(build_run, command, given=SENTENCE, num_runs=options.runs), floor
            )
            for name, command, floor in commands
        ]
        bench.compare(
            "start-up of a process", contenders, unit="run", baseline=commands[0][0], processes=True
        )
    bench.save()


if __name__ == "__main__":
    main()
