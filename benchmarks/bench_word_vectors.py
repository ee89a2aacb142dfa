"""word2vec beside gensim: words a second and quality, same text, same settings, same number of
threads, in turns.

    python benchmarks/bench_word_vectors.py --text english.txt
        --lists EN-WS-353-ALL.txt questions-words.txt.gz

Measured: words a second, and rank correlation and analogies afterwards. The floor: 2 · (1 +
negatives) · width operations a pair (CBOW: a centre) forward and twice that backward, at the speed
of a large product; random rows of two tables decide long before, and with several threads how often
they meet at the interpreter: a ratio counts only on a machine that does nothing else (under load
ours is flattered by a third and more). Both learn vectors of 100 numbers, window 5, 5 negatives,
words seen 5 times, subsampling 1e-3, rate 0.025 (CBOW 0.05); gensim reads from its corpus file, the
path on which its threads do not wait for Python. A rate counts words of text that are in the
vocabulary, in every epoch, and the time of training alone; reading and counting is in a column of
its own. Without --text, Zipf-distributed noise shows speed alone. Quality is that of the last
round.
"""

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from harness import Bench, Contender, make_parser, print_table

from headwise.models.vector_space import VectorSpace
from headwise.tasks.word_vectors.files import score_word_vectors
from headwise.tasks.word_vectors.learning import learn_word_vectors, read_text
from headwise.tasks.word_vectors.recipe import WordVectorRecipe


def write_noise(path: Path, num_words: int) -> None:
    """Lines of 20 words whose frequencies follow Zipf's law."""
    rng = np.random.default_rng(1)
    numbers = rng.zipf(1.2, num_words) % 30_000
    lines = (
        " ".join(f"w{number}" for number in numbers[start : start + 20])
        for start in range(0, num_words, 20)
    )
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


class Ours:
    def __init__(self, text: Path, kind: str, options: Any) -> None:
        self.recipe = WordVectorRecipe(
            task="word_vectors",
            data={"train": str(text)},
            text={"lowercase": False},
            model={"kind": kind},
            training={"epochs": options.epochs, "threads": options.threads},
        )
        started = time.perf_counter()
        self.stream = read_text(self.recipe)
        self.reading = time.perf_counter() - started

    def run(self) -> float:
        tables = learn_word_vectors(self.stream, self.recipe)
        self.space = VectorSpace(self.stream.words, tables.inputs.numpy())
        return float(len(self.stream) * self.recipe.training.epochs)


class Gensim:
    def __init__(self, text: Path, kind: str, options: Any) -> None:
        from gensim.models import Word2Vec

        self.text, self.epochs = str(text), options.epochs
        skip_gram = kind == "skip_gram"
        settings = {
            "vector_size": 100,
            "window": 5,
            "min_count": 5,
            "negative": 5,
            "sample": 1e-3,
            "seed": 1,
        }
        self.make = lambda: Word2Vec(
            **settings,
            sg=int(skip_gram),
            workers=options.threads,
            alpha=0.025 if skip_gram else 0.05,
        )
        started = time.perf_counter()
        self.model = self.make()
        self.model.build_vocab(corpus_file=self.text)
        self.reading = time.perf_counter() - started

    def run(self) -> float:
        self.model.init_weights()
        self.model.train(
            corpus_file=self.text,
            total_words=self.model.corpus_total_words,
            total_examples=self.model.corpus_count,
            epochs=self.epochs,
        )
        self.space = VectorSpace(self.model.wv.index_to_key, self.model.wv.vectors)
        counts = (self.model.wv.get_vecattr(word, "count") for word in self.model.wv.index_to_key)
        return float(sum(counts) * self.epochs)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument(
        "--text", type=Path, help="one sentence or paragraph a line, words between spaces"
    )
    parser.add_argument(
        "--lists", type=Path, nargs="*", default=[], help="pairs with scores, analogies"
    )
    parser.add_argument("--epochs", type=int, default=5)
    options = parser.parse_args(arguments)
    if options.quick:
        options.epochs, options.rounds = 1, 1
    bench = Bench("word_vectors", options)
    with tempfile.TemporaryDirectory() as temporary:
        text = options.text
        if text is None:
            text = Path(temporary) / "noise.txt"
            write_noise(text, 20_000 if options.quick else 3_000_000)
        quality = [["model", "by", "seconds of reading", "list", "score", "used"]]
        for kind in ("skip_gram", "cbow"):
            peers = {"gensim": Gensim(text, kind, options), "headwise": Ours(text, kind, options)}
            contenders = [
                Contender(name, lambda peer=peer: peer.run) for name, peer in peers.items()
            ]
            title = (
                f"{kind}, negative sampling, {text.name}, {options.epochs} epochs, "
                f"{options.threads} threads"
            )
            bench.compare(title, contenders, unit="word", baseline="gensim")
            for name, peer in peers.items():
                for one in score_word_vectors(peer.space, options.lists):
                    if " " not in one.name or one.name.endswith(" all"):
                        row = [
                            kind,
                            name,
                            f"{peer.reading:.1f}",
                            one.name,
                            f"{one.value:.1f}",
                            f"{one.used}/{one.total}",
                        ]
                        quality.append(row)
        print_table(quality)
        bench.record["quality"] = quality
    bench.save()


if __name__ == "__main__":
    main()
