"""Batching: how much of a batch is padding, and how fast batches are made, packed rows beside
length-bucketed padding.

    python benchmarks/bench_packing.py [--pairs 100000] [--tokens 4096]
    HEADWISE_DATA=DIR adds the lengths of Multi30k

Measured: from lengths and tokens in memory-mapped stores to tensors ready for a model, one process,
and the share of padding on both sides. Peers: `sorted`, the whole corpus sorted by length (least
padding, but a batch is never a random sample), and `pools`, pools of 8,192 pairs shuffled and
sorted by themselves (what most toolkits do).

The floor: a batch is 7 numbers of 8 bytes a token (3 for padded batches), each written once, so 56
bytes a token at the memory's speed: some hundred million tokens a second, far above what training
takes (about 10³ on two cores, 10⁶ on an H200). What matters is that making batches stays ten times
faster than training, and that padding, which every product pays for, stays low. How far we are (two
cores): under 1 % padding against 4 % (sorted) and 13 % (pools); see
docs/experiments/training-speed.md for dated numbers.
"""

import argparse
import gzip
import itertools
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from harness import Bench, Contender, Run, make_parser, print_table, read_speed
from made_data import plan_row_lengths, write_store
from synthetic import FIRST_WORD, PaddedBatch, Pairs, bucketed_batches, draw_pairs

from headwise.data.batching import batches
from headwise.data.packing import PackedBatch
from headwise.data.shards import TokenStore
from headwise.randomness import numpy_generator

VOCAB = 8000
ROW_TOKENS = 128
POOL = 8192
BYTES_A_TOKEN = 56
MULTI30K = ("multi30k/tok/train.lc.norm.tok.en.gz", "multi30k/tok/train.lc.norm.tok.de.gz")

Batch = PackedBatch | PaddedBatch


def read_pairs(paths: Sequence[Path], *, limit: int) -> Pairs:
    """Words of real text as tokens: only their number matters here."""
    sides = []
    for path in paths:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            sides.append(
                [[FIRST_WORD] * len(line.split()) for line in itertools.islice(lines, limit)]
            )
    kept = [
        (source, target)
        for source, target in zip(*sides, strict=True)
        if 0 < len(source) < 100 > len(target) > 0
    ]
    return Pairs([source for source, _ in kept], [target for _, target in kept])


def packed_epoch(store: TokenStore, *, tokens: int) -> Iterator[PackedBatch]:
    source_row, target_row = plan_row_lengths(store, min(ROW_TOKENS, tokens))
    rows = max(1, tokens // target_row)
    stream = batches(store, seed=1, rows=rows, source_row=source_row, target_row=target_row)
    return (batch for batch, place in itertools.takewhile(lambda item: item[1].epoch == 0, stream))


def padded_epoch(pairs: Pairs, *, tokens: int, pool: int) -> Iterator[PaddedBatch]:
    order = numpy_generator(1, "order").permutation(len(pairs))
    shuffled = Pairs([pairs.sources[i] for i in order], [pairs.targets[i] for i in order])
    return iter(bucketed_batches(shuffled, tokens=tokens, pool=pool))


def padding_shares(supply: Iterator[Batch]) -> tuple[float, float]:
    """Of source and target cells, the share that holds no token."""
    cells, tokens = np.zeros(2), np.zeros(2)
    for batch in supply:
        cells += (batch.source.numel(), batch.target_output.numel())
        tokens += (int((batch.source != 0).sum()), int((batch.target_output != 0).sum()))
    source, target = 1 - tokens / cells
    return float(source), float(target)


def build_run(epoch: Callable[[], Iterator[Batch]]) -> Run:
    def run() -> float:
        return sum(batch.num_target_tokens for batch in epoch())

    return run


def measure(title: str, pairs: Pairs, options: argparse.Namespace, bench: Bench) -> None:
    with tempfile.TemporaryDirectory() as directory:
        store = write_store(
            Path(directory) / "store",
            zip(pairs.sources, pairs.targets, strict=True),
            vocabulary_sizes={"source": VOCAB, "target": VOCAB},
        )
        epochs: dict[str, Callable[[], Iterator[Batch]]] = {
            "pools": partial(padded_epoch, pairs, tokens=options.tokens, pool=POOL),
            "sorted": partial(padded_epoch, pairs, tokens=options.tokens, pool=len(pairs)),
            "headwise": partial(packed_epoch, store, tokens=options.tokens),
        }
        shares = {name: padding_shares(epoch()) for name, epoch in epochs.items()}
        bench.record[f"padding, {title}"] = shares
        head = (f"padding, {title}", "source", "target", "both")
        print_table(
            [
                head,
                *(
                    (name, *(f"{share:.2%}" for share in (*both, sum(both) / 2)))
                    for name, both in shares.items()
                ),
            ]
        )
        floor = BYTES_A_TOKEN / read_speed(torch.device("cpu"), quick=options.quick)
        contenders = [
            Contender(name, partial(build_run, epoch), floor) for name, epoch in epochs.items()
        ]
        bench.compare(f"making batches, {title}", contenders, unit="target token", baseline="pools")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--tokens", type=int, default=4096)
    options = parser.parse_args(arguments)
    if options.quick:
        options.pairs, options.tokens, options.rounds = 2000, 512, 1
    bench = Bench("packing", options)
    measure(
        f"{options.pairs} synthetic pairs", draw_pairs(options.pairs, vocab=VOCAB), options, bench
    )
    mirror = Path(os.environ.get("HEADWISE_DATA", ""))
    if "HEADWISE_DATA" in os.environ and (mirror / MULTI30K[0]).is_file():
        pairs = read_pairs([mirror / name for name in MULTI30K], limit=options.pairs)
        measure(f"{len(pairs)} pairs of Multi30k, words", pairs, options, bench)
    bench.save()


if __name__ == "__main__":
    main()
