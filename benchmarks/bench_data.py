"""Preparing a large corpus, the first batch from it, and feeding a training: pairs and tokens a
second, memory, seconds to start and to resume.

    python benchmarks/bench_data.py [--pairs 1_000_000] [--directory DIR] [--from-tokens]

Measured: every stage in a process of its own, so that its memory is its own: `make` writes two text
files of synthetic sentences (about 8 words, Zipf's law, 1 % of them repeated), `prepare` is what
`headwise train` does with them, `open` checks every byte and takes the first batch, `resume` does
so from the middle of the third epoch, twice, and compares. `feed` makes batches as one process of a
training does, `segment` draws other segmentations of all words (BPE-dropout 0.1), and `feed cut`
makes batches of them: target tokens a second of processor time. With `--from-tokens` the store is
written from random tokens (`tokens`), which takes minutes instead of an hour: what opening costs
does not depend on the text, and nothing is segmented.

The floor, of preparing: reading the text twice (110 bytes a pair and pass, at 1 GB/s 0.2 µs a
pair), and tokenising it, which no library does in less than 2 µs a pair and core; of opening:
SHA-256 of 56 bytes a pair at 1 to 2 GB/s; of feeding: what a small model on a large GPU learns
from, 1,000,000 target tokens a second. Memory may hold 8 bytes a pair (the hashes of what was
seen) and nothing else that grows. How far we are: docs/experiments/planning-and-data.md.
"""

import argparse
import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from harness import Bench, make_parser, print_table

from headwise.data.batching import Cursor, PairSource, batches
from headwise.data.order import EpochOrder
from headwise.data.pairs.choices import DataSettings
from headwise.data.pairs.preparation import open_prepared, prepare_data
from headwise.data.pairs.segmentation.choices import BpeDropout
from headwise.data.pairs.segmentation.prepared import open_segmentation, prepare_segmentation
from headwise.data.shards import Ragged, StoreWriter, TokenStore
from headwise.randomness import numpy_generator
from headwise.text.choices import SentencePieceSettings

NUM_WORDS, MEAN_WORDS, REPEATED = 20_000, 8, 100
BLOCK, STORE_BLOCK = 100_000, 1_000_000
BATCH_ROWS, FED_SECONDS = 32, 10.0
SAMPLE = 500_000
MIB = 1 << 20


def make_text(prefix: Path, count: int) -> None:
    """prefix.en and prefix.de: random words by Zipf's law; the target is the source word for word
    in another language."""
    generator = numpy_generator("synthetic text")
    letters = np.array(list("etaoinshrdlu"))
    words = {
        "".join(generator.choice(letters, size=size))
        for size in generator.integers(2, 9, 2 * NUM_WORDS)
    }
    table = np.array(sorted(words)[: len(words) // 2 * 2], dtype=object)
    generator.shuffle(table)
    sides = dict(zip(("en", "de"), np.split(table, 2), strict=True))
    reach = np.cumsum(1 / np.arange(1, len(table) // 2 + 1))
    files = {
        code: prefix.with_name(f"{prefix.name}.{code}").open("w", encoding="utf-8")
        for code in sides
    }
    for begin in range(0, count, BLOCK):
        lengths = np.clip(generator.poisson(MEAN_WORDS, min(BLOCK, count - begin)), 2, 30)
        lengths[REPEATED::REPEATED] = lengths[0]
        ends = np.cumsum(lengths)
        drawn = np.searchsorted(reach, generator.random(ends[-1]) * reach[-1])
        # Every hundredth pair repeats the block's first.
        for place in range(REPEATED, len(lengths), REPEATED):
            drawn[ends[place] - lengths[place] : ends[place]] = drawn[: lengths[0]]
        for code, side in sides.items():
            chosen = side[drawn]
            lines = (
                " ".join(chosen[end - length : end])
                for end, length in zip(ends, lengths, strict=True)
            )
            files[code].write("\n".join(lines) + "\n")
    for file in files.values():
        file.close()


def make_store(directory: Path, count: int) -> None:
    """A store of random tokens, ten a side on average."""
    generator = numpy_generator("synthetic tokens")
    with StoreWriter(directory, vocabulary_sizes={"source": 8000, "target": 8000}) as writer:
        writer.start_corpus("random")
        for begin in range(0, count, STORE_BLOCK):
            sides = []
            for _ in range(2):
                lengths = np.clip(generator.poisson(10, min(STORE_BLOCK, count - begin)), 2, 30)
                sides.append(
                    Ragged(
                        generator.integers(4, 8000, int(lengths.sum()), dtype=np.uint16), lengths
                    )
                )
            writer.add(*sides)


def open_store(directory: Path) -> tuple[TokenStore, int, int]:
    """The training store and the lengths of its rows, every byte checked."""
    if (directory / "store").exists():
        return TokenStore(directory / "store"), 128, 128
    prepared = open_prepared(directory / "data")
    return prepared.train, prepared.source_row, prepared.target_row


class MemoryWatch:
    """The most anonymous memory this process and its children held at one moment, looked at ten
    times a second.

    Pages of mapped files are left out: the system takes them back whenever it wants them.
    """

    def __init__(self) -> None:
        self.own = self.children = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._stop.wait(0.1):
            self.own = max(self.own, anonymous_bytes(os.getpid()))
            listed = (
                Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii").split()
            )
            self.children = max(self.children, sum(anonymous_bytes(int(child)) for child in listed))

    def stop(self) -> dict[str, float]:
        self._stop.set()
        self._thread.join()
        self.own = max(self.own, anonymous_bytes(os.getpid()))
        return {"memory_mib": self.own / MIB, "workers_mib": self.children / MIB}


def anonymous_bytes(process: int) -> int:
    try:
        text = Path(f"/proc/{process}/status").read_text(encoding="ascii", errors="replace")
    except OSError:  # it has just ended
        return 0
    return sum(
        1024 * int(line.split()[1]) for line in text.splitlines() if line.startswith("RssAnon:")
    )


def run_stage(stage: str, directory: Path, pairs: int) -> dict[str, Any]:
    watch = MemoryWatch()
    began = time.perf_counter()
    found: dict[str, Any] = {}
    match stage:
        case "make":
            make_text(directory / "text", pairs)
        case "tokens":
            make_store(directory / "store", pairs)
        case "prepare":
            stages: dict[str, list[float]] = {}

            def note(name: str, _: int) -> None:
                stages.setdefault(name, [time.perf_counter()]).append(time.perf_counter())

            data = DataSettings(source="en", target="de", train=[str(directory / "text")])
            text = SentencePieceSettings(size=8000, sample=min(SAMPLE, pairs))
            prepare_data(data, text, directory / "data", progress=note)
            found["encode_seconds"] = stages["train"][-1] - stages["train"][0]
        case "open" | "resume":
            store, *rows = open_store(directory)
            found["open_seconds"] = time.perf_counter() - began
            cursor = (
                Cursor(2, EpochOrder(store.corpora, 1).num_chunks // 2, 3)
                if stage == "resume"
                else Cursor()
            )
            digests = [first_batch(store, *rows, cursor)]
            found["first_batch_seconds"] = time.perf_counter() - began
            digests.append(first_batch(store, *rows, cursor))
            assert digests[0] == digests[1], "the order is a pure function"
            found |= {"digest": digests[0], "pairs": len(store)}
        case "segment":
            prepared = open_prepared(directory / "data")
            lengths = prepared.source_row, prepared.target_row
            cut = prepare_segmentation(
                directory / "data", prepared.train, prepared.tokenizers, BpeDropout(), rows=lengths
            )
            found |= {"growth": dict(cut.growth), "long": dict(cut.long)}
        case "feed" | "feed cut":
            store, *rows = open_store(directory)
            pairs_fed: PairSource = store
            if stage == "feed cut":
                cut = open_segmentation(directory / "data")
                pairs_fed = cut.of(store, source=rows[0], target=rows[1])
            found["tokens_per_second"] = feed(pairs_fed, *rows)
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    found |= {"cpu_seconds": sum(usage.ru_utime + usage.ru_stime for usage in used)}
    return {"seconds": time.perf_counter() - began} | found | watch.stop()


def feed(store: PairSource, source_row: int, target_row: int) -> float:
    """Target tokens that are made into batches in a second of processor time."""
    stream = batches(store, seed=1, rows=BATCH_ROWS, source_row=source_row, target_row=target_row)
    next(stream)
    began, tokens = time.process_time(), 0
    while (spent := time.process_time() - began) < FED_SECONDS:
        batch, _ = next(stream)
        tokens += int(batch.target_output.count_nonzero())
    return tokens / spent


def first_batch(store: TokenStore, source_row: int, target_row: int, cursor: Cursor) -> str:
    stream = batches(
        store, seed=1, rows=BATCH_ROWS, source_row=source_row, target_row=target_row, cursor=cursor
    )
    batch, _ = next(stream)
    return hashlib.sha256(
        batch.source.numpy().tobytes() + batch.target_output.numpy().tobytes()
    ).hexdigest()


def measure(directory: Path, pairs: int, bench: Bench) -> None:
    rows = [
        (
            "stage",
            "seconds",
            "CPU s",
            "pairs/s",
            "memory MiB",
            "workers MiB",
            "open s",
            "first batch s",
            "tokens/s",
        )
    ]
    stages = ("tokens",) if bench.options.from_tokens else ("make", "prepare")
    more = () if bench.options.from_tokens else ("segment", "feed cut")
    for stage in (*stages, "open", "resume", "feed", *more):
        done = subprocess.run(
            [
                sys.executable,
                __file__,
                "--stage",
                stage,
                "--directory",
                str(directory),
                "--pairs",
                str(pairs),
            ],
            stdout=subprocess.PIPE,
            check=True,
            encoding="utf-8",
        )
        found = json.loads(done.stdout.splitlines()[-1])
        bench.record[f"{stage}, {pairs} pairs"] = found
        numbers = [
            found["seconds"],
            found["cpu_seconds"],
            pairs / found["seconds"],
            found["memory_mib"],
        ]
        numbers += [
            found["workers_mib"],
            found.get("open_seconds"),
            found.get("first_batch_seconds"),
            found.get("tokens_per_second"),
        ]
        rows.append((stage, *("–" if number is None else f"{number:,.1f}" for number in numbers)))
    sizes = [path.stat().st_size for path in directory.rglob("*") if path.is_file()]
    print_table(rows)
    bench.note("bytes of text and store", sum(sizes))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument(
        "--directory", type=Path, help="where text and store go and stay (default: a temporary one)"
    )
    parser.add_argument("--from-tokens", action="store_true", help="leave out text and preparing")
    parser.add_argument(
        "--stage",
        choices=("make", "tokens", "prepare", "open", "resume", "feed", "segment", "feed cut"),
        help=argparse.SUPPRESS,
    )
    options = parser.parse_args(arguments)
    if options.stage is not None:
        print(json.dumps(run_stage(options.stage, options.directory, options.pairs)))
        return
    if options.quick:
        options.pairs = 20_000
    bench = Bench("data", options)
    if options.directory is not None:
        options.directory.mkdir(parents=True, exist_ok=True)
        measure(options.directory, options.pairs, bench)
    else:
        with tempfile.TemporaryDirectory() as directory:
            measure(Path(directory), options.pairs, bench)
    bench.save()


if __name__ == "__main__":
    main()
