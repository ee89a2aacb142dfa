"""n-grams: how fast a text is counted, how fast a model is asked; KenLM beside it where it is installed.

    python benchmarks/bench_ngram.py --words 12000000                # ours; with the package kenlm also its queries
    python benchmarks/bench_ngram.py --lmplz PATH/TO/lmplz           # and its training

Measured: seconds from text to model, and words a second of queries. The floor of counting is sorting its keys once per order; that of
a query one cache line of a table that fits no cache, per order asked. The text is drawn: 60,000 words by Zipf's law, half of them chosen by the word before, 25 to a sentence. Counting is timed from
the text file to the published bundle. Queries are sentences of that text (so hits are long), asked as ids in one array, as
lists of words, and word by word with KenLM's Python `score`. Writes benchmarks/results/ngram.json.
"""

import argparse
import json
import resource
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from harness import RESULTS

from headwise.randomness import numpy_generator
from headwise.tasks.language_bundle import load_language_bundle
from headwise.tasks.language_model import LanguageModel
from headwise.tasks.recipe import recipe_from
from headwise.tasks.running import train

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
    return {"training_seconds": round(seconds, 1), "ngrams": summary.results["ngrams"], "peak_gib": round(peak, 2)}


def time_queries(folder: Path, sentences: list[str], rounds: int) -> dict[str, float]:
    from headwise.models.ngram import TokenStream

    bundle = load_language_bundle(folder)
    model = LanguageModel(bundle.tokenizer, bundle.model)
    stream = TokenStream.of_sentences(bundle.tokenizer.encode_batch(sentences))
    num_words = int((stream.places > 0).sum())
    bundle.model.score_stream(stream)  # builds the tables
    rates: dict[str, float] = {}
    for name, ask in {
        "ids at once": lambda: bundle.model.score_stream(stream),
        "lines of text": lambda: model.score_text(sentences),
    }.items():
        seconds = []
        for _ in range(rounds):
            started = time.perf_counter()
            ask()
            seconds.append(time.perf_counter() - started)
        rates[name] = num_words / float(np.median(seconds))
    return rates


def time_kenlm(arpa: Path, sentences: list[str], rounds: int) -> dict[str, float]:
    import kenlm

    model = kenlm.Model(str(arpa))
    num_words = sum(len(line.split()) + 1 for line in sentences)
    seconds = []
    for _ in range(rounds):
        started = time.perf_counter()
        for line in sentences:
            model.score(line, bos=True, eos=True)
        seconds.append(time.perf_counter() - started)
    return {"score": num_words / float(np.median(seconds))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=1_000_000, help="words asked")
    parser.add_argument("--order", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--lmplz", help="KenLM's trainer, to be timed too")
    arguments = parser.parse_args()
    results: dict[str, Any] = {"words": arguments.words, "order": arguments.order}
    with tempfile.TemporaryDirectory(prefix="headwise-ngram-") as temporary:
        folder = Path(temporary)
        text = folder / "text.txt"
        draw_text(text, arguments.words)
        with text.open(encoding="utf-8") as file:
            sentences = [line for line, _ in zip(file, range(arguments.queries // LENGTH), strict=False)]
        results["headwise"] = time_ours(text, arguments.order, folder)
        results["headwise words/s"] = time_queries(folder / f"run-{arguments.order}", sentences, arguments.rounds)
        if arguments.lmplz:
            started = time.perf_counter()
            command = [arguments.lmplz, "-o", str(arguments.order), "--discount_fallback", "-S", "50%", "-T", temporary]
            arpa = folder / "kenlm.arpa"
            with text.open("rb") as source, arpa.open("wb") as target:
                subprocess.run(command, stdin=source, stdout=target, stderr=subprocess.DEVNULL, check=True)
            results["lmplz"] = {"training_seconds": round(time.perf_counter() - started, 1)}
            try:
                results["kenlm words/s"] = time_kenlm(arpa, sentences, arguments.rounds)
            except ImportError:
                results["kenlm words/s"] = "the package kenlm is not installed"
    print(json.dumps(results, indent=2))
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "ngram.json").write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
