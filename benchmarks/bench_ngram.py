"""n-grams: how fast a text is counted, how fast a model is asked; KenLM beside it where it is
installed.

    python benchmarks/bench_ngram.py --words 12000000         # queries of kenlm if installed
    python benchmarks/bench_ngram.py --lmplz PATH/TO/lmplz    # and its training

Measured: seconds from text to model, and words a second of queries. The floor of counting is
sorting its keys once per order; that of a query one cache line of a table that fits no cache, per
order asked. The text is drawn: 60,000 words by Zipf's law, half of them chosen by the word before,
25 to a sentence. Counting is timed from the text file to the published bundle. Queries are
sentences of that text (so hits are long), asked in turns: as ids in one array, as lines of text,
and line by line with KenLM's Python `score`. Writes benchmarks/results/ngram.json.
"""

import argparse
import json
import resource
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from harness import RESULTS

from headwise.models.ngram import TokenStream
from headwise.randomness import numpy_generator
from headwise.tasks.language.bundle import load_language_bundle
from headwise.tasks.language.language_model import LanguageModel
from headwise.tasks.recipe import recipe_from
from headwise.tasks.run import train

VOCABULARY, LENGTH = 60_000, 25


def draw_text(path: Path, num_words: int) -> None:
    """Half of the words follow from the one before, so that longer n-grams repeat."""
    generator = numpy_generator(1, "ngram text")
    names = np.array([f"w{number}" for number in range(VOCABULARY)], dtype=object)
    with path.open("w", encoding="utf-8") as file:
        for _ in range(-(-num_words // 1_000_000)):
            drawn = (generator.zipf(1.2, size=(1_000_000 // LENGTH, LENGTH)) - 1) % VOCABULARY
            linked = generator.random(drawn.shape) < 0.5
            for column in range(1, LENGTH):
                follow = (drawn[:, column - 1] * 7919 + drawn[:, column] % 3) % VOCABULARY
                drawn[:, column] = np.where(linked[:, column], follow, drawn[:, column])
            file.writelines(" ".join(row) + "\n" for row in names[drawn])


def time_ours(text: Path, order: int, folder: Path) -> dict[str, Any]:
    recipe = recipe_from(
        {
            "task": "language_modeling",
            "data": {"language": "en", "train": str(text)},
            "text": {"kind": "words", "size": 1_000_000},
            "model": {"kind": "ngram", "order": order},
        }
    )
    started = time.perf_counter()
    summary = train(recipe, run=folder / f"run-{order}")
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {
        "training_seconds": round(seconds, 1),
        "ngrams": summary.results["ngrams"],
        "peak_gib": round(peak, 2),
    }


def ask_ours(folder: Path, sentences: list[str]) -> tuple[dict[str, Callable[[], object]], int]:
    """The ways to ask our model, and how many words (ends of sentences among them) each is asked
    for."""
    bundle = load_language_bundle(folder)
    model = LanguageModel(bundle.tokenizer, bundle.model)
    stream = TokenStream.of_sentences(bundle.tokenizer.encode_batch(sentences))
    asks: dict[str, Callable[[], object]] = {
        "headwise, ids at once": lambda: bundle.model.score_stream(stream),
        "headwise, lines of text": lambda: model.score_text(sentences),
    }
    return asks, int((stream.places > 0).sum())


def ask_kenlm(arpa: Path, sentences: list[str]) -> dict[str, Callable[[], object]]:
    import kenlm

    model = kenlm.Model(str(arpa))
    return {"kenlm, score": lambda: [model.score(line, bos=True, eos=True) for line in sentences]}


def time_in_turns(
    asks: dict[str, Callable[[], object]], num_words: int, rounds: int
) -> dict[str, dict[str, float]]:
    """Words a second of each, one after the other in every round: lowest, median, highest; and the
    median by processor time."""
    rates: dict[str, list[float]] = {name: [] for name in asks}
    busy: dict[str, list[float]] = {name: [] for name in asks}
    for turn in range(rounds + 1):
        for name, ask in asks.items():
            started, used = time.perf_counter(), time.process_time()
            ask()
            if turn > 0:  # the first builds tables and fills caches
                rates[name].append(num_words / (time.perf_counter() - started))
                busy[name].append(num_words / (time.process_time() - used))
    return {
        name: {
            "lowest": round(min(found)),
            "median": round(float(np.median(found))),
            "highest": round(max(found)),
            "a second of one core": round(float(np.median(busy[name]))),
        }
        for name, found in rates.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--words", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=1_000_000, help="words asked")
    parser.add_argument("--order", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--keep",
        type=Path,
        help="a folder for text and models; what is there already is not made again",
    )
    parser.add_argument("--lmplz", help="KenLM's trainer, to be timed too")
    arguments = parser.parse_args()
    results: dict[str, Any] = {"words": arguments.words, "order": arguments.order}
    with tempfile.TemporaryDirectory(prefix="headwise-ngram-") as temporary:
        folder = arguments.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        text, run, arpa = (
            folder / "text.txt",
            folder / f"run-{arguments.order}",
            folder / "kenlm.arpa",
        )
        if not text.exists():
            draw_text(text, arguments.words)
        with text.open(encoding="utf-8") as file:
            sentences = [
                line for line, _ in zip(file, range(arguments.queries // LENGTH), strict=False)
            ]
        if not run.exists():
            results["headwise"] = time_ours(text, arguments.order, folder)
        if arguments.lmplz and not arpa.exists():
            started = time.perf_counter()
            command = [
                arguments.lmplz,
                "-o",
                str(arguments.order),
                "--discount_fallback",
                "-S",
                "50%",
                "-T",
                temporary,
            ]
            with text.open("rb") as source, arpa.open("wb") as target:
                subprocess.run(
                    command, stdin=source, stdout=target, stderr=subprocess.DEVNULL, check=True
                )
            results["lmplz"] = {"training_seconds": round(time.perf_counter() - started, 1)}
        asks, num_words = ask_ours(run, sentences)
        if arpa.exists():
            try:
                asks |= ask_kenlm(arpa, sentences)
            except ImportError:
                results["kenlm"] = "the package kenlm is not installed"
        results["words/s"] = time_in_turns(asks, num_words, arguments.rounds)
    print(json.dumps(results, indent=2))
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "ngram.json").write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
