"""Training speed: real target tokens a second, beside transformers' Marian and
torch.nn.Transformer.

    python benchmarks/bench_training.py [--size small base] [--precision fp32 bf16]
        [--tokens 4096] [--compiled marian]

Measured: forward, loss with label smoothing 0.1, backward and optimiser step on synthetic pairs
(synthetic.py). Peers get length-bucketed padded batches (those nearest the mean of all:
synthetic.py), ours packed rows of 128; both have the same budget of tokens *with* padding, and only
real target tokens (ends included) count. Peers use torch's fused AdamW without clipping; ours does
all it does in a real run (Updater: mean over tokens, clipping, NaN guard). Not the same network to
the last detail: Marian and torch put the norm after, ours before; torch.nn.Transformer also drops
attention weights and hidden units.

The floor: the products alone, 45 MFLOP (small) and 289 MFLOP (base) per target token (sizes.py), at
the speed of a large product measured in the same run; "of floor" is the MFU. Bytes matter little on
a CPU at fp32 (a weight is used 4,096 times when read). How far we are (2 cores with AVX-512 bf16,
2026-11): see docs/experiments/training-speed.md; the bars are fp32 ≥ 0.98 × and bf16 ≥ 1.3 ×
(small), 1.5 × (base) the best peer's fp32, and on an H200 ≥ 2 × compiled Marian.
"""

import argparse
import itertools
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from harness import Bench, Contender, Run, make_parser, product_speed
from made_data import plan_row_lengths, write_store
from sizes import SIZES, Size, TorchTransformer, build_marian, build_ours
from synthetic import PaddedBatch, Pairs, bucketed_batches, draw_pairs, typical_batches
from torch import Tensor, nn

from headwise.data.batching import batches
from headwise.data.packing import PackedBatch
from headwise.tasks.translation.objective import TranslationLoss
from headwise.text.tokenizer import PAD
from headwise.training.choices import TrainingSettings
from headwise.training.compilation import decide_compilation
from headwise.training.precision import autocast
from headwise.training.updates import Updater

SMOOTHING = 0.1
RATE = 1e-4
ROW_TOKENS = 128
NAMES = {"marian": "marian", "torch": "torch.nn"}
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}

Logits = Callable[[PaddedBatch], Tensor]


@dataclass(frozen=True)
class Form:
    """In which form a peer is trained."""

    dtype: torch.dtype
    compiled: bool = False


def train_peer(
    module: nn.Module, logits: Logits, supply: Sequence[PaddedBatch], *, bench: Bench, form: "Form"
) -> Run:
    """A function that trains a peer on the next few padded batches."""
    module.to(bench.device).train()
    optimizer = torch.optim.AdamW(
        module.parameters(), lr=RATE, betas=(0.9, 0.98), eps=1e-9, fused=True
    )

    def loss_of(batch: PaddedBatch) -> Tensor:
        with autocast(bench.device, form.dtype):
            scores = logits(batch).flatten(0, 1)
            return F.cross_entropy(
                scores, batch.target_output.flatten(), ignore_index=PAD, label_smoothing=SMOOTHING
            )

    # Padded batches have many shapes: the compiler is told so, else it would compile each.
    loss = torch.compile(loss_of, dynamic=True) if form.compiled else loss_of
    # Tokens are counted beforehand: asking the device in between would make it wait.
    endless = itertools.cycle(
        [(batch.to(bench.device), batch.num_target_tokens) for batch in supply]
    )

    def run() -> float:
        work = 0
        for batch, num_tokens in itertools.islice(endless, len(supply)):
            loss(batch).backward()
            optimizer.step()
            optimizer.zero_grad()
            work += num_tokens
        return work

    return run


def build_marian_run(
    size: Size, supply: Sequence[PaddedBatch], *, bench: Bench, form: "Form"
) -> Run:
    model = build_marian(size)

    def logits(batch: PaddedBatch) -> Tensor:
        return model(
            input_ids=batch.source,
            attention_mask=(batch.source != PAD).long(),
            decoder_input_ids=batch.target_input,
            use_cache=False,
        ).logits

    return train_peer(model, logits, supply, bench=bench, form=form)


def build_torch_run(
    size: Size, supply: Sequence[PaddedBatch], *, bench: Bench, form: "Form"
) -> Run:
    model = TorchTransformer(size)
    return train_peer(
        model, lambda batch: model(batch.source, batch.target_input), supply, bench=bench, form=form
    )


def build_our_run(
    size: Size, supply: Sequence[PackedBatch], *, bench: Bench, precision: str
) -> Run:
    """The same update as `headwise train` makes."""
    settings = TrainingSettings.model_validate(
        {
            "batch_tokens": bench.options.tokens,
            "precision": precision,
            "compile": "on" if "headwise" in bench.options.compiled else "off",
            "objective": {"label_smoothing": SMOOTHING},
        }
    )
    task = TranslationLoss(build_ours(size).to(bench.device).train(), SMOOTHING)
    compilation = decide_compilation(settings, bench.device)
    updater = Updater(task, settings, device=bench.device, compilation=compilation)
    endless = itertools.cycle(
        [(batch.to(bench.device), batch.num_target_tokens) for batch in supply]
    )
    step = itertools.count(1)

    def run() -> float:
        work = 0
        for batch, num_tokens in itertools.islice(endless, len(supply)):
            updater.update([batch], step=next(step), learning_rate=RATE)
            work += num_tokens
        return work

    return run


def pack(pairs: Pairs, size: Size, *, tokens: int) -> Iterator[PackedBatch]:
    """The pairs as the training loop would get them, by way of a store on disk."""
    with tempfile.TemporaryDirectory() as directory:
        store = write_store(
            Path(directory) / "store",
            zip(pairs.sources, pairs.targets, strict=True),
            vocabulary_sizes={"source": size.vocab, "target": size.vocab},
        )
        source_row, target_row = plan_row_lengths(store, min(ROW_TOKENS, tokens))
        rows = max(1, tokens // target_row)
        stream = batches(store, seed=1, rows=rows, source_row=source_row, target_row=target_row)
        yield from (batch for batch, _ in stream)


def measure_size(name: str, options: argparse.Namespace, bench: Bench) -> None:
    size = SIZES[name]
    pairs = draw_pairs(options.pairs, vocab=size.vocab)
    num_batches = options.batches or (
        20 if bench.device.type == "cuda" else 1 if name == "base" else 3
    )
    padded = typical_batches(bucketed_batches(pairs, tokens=options.tokens), num_batches)
    packed = list(itertools.islice(pack(pairs, size, tokens=options.tokens), num_batches))
    contenders = []
    for precision in options.precision:
        dtype = DTYPES[precision]
        product = partial(product_speed, bench.device, dtype, quick=options.quick)
        speed = bench.measure_ceiling(f"products {precision}, FLOP/s", product)
        floor = size.training_flops / speed
        for peer, build_run in (("marian", build_marian_run), ("torch", build_torch_run)):
            if peer in options.peers:
                build = partial(build_run, size, padded, bench=bench, form=Form(dtype))
                contenders.append(Contender(f"{NAMES[peer]} {precision}", build, floor))
            if peer in options.compiled:
                build = partial(
                    build_run, size, padded, bench=bench, form=Form(dtype, compiled=True)
                )
                contenders.append(Contender(f"{NAMES[peer]} {precision}, compiled", build, floor))
        ours = partial(build_our_run, size, packed, bench=bench, precision=precision)
        contenders.append(Contender(f"headwise {precision}", ours, floor))
    title = f"training, {name}, {options.tokens} tokens"
    bench.compare(title, contenders, unit="token", baseline=contenders[0].name)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--size", nargs="+", choices=sorted(SIZES), default=["small", "base"])
    parser.add_argument("--precision", nargs="+", choices=sorted(DTYPES), default=["fp32", "bf16"])
    parser.add_argument(
        "--tokens", type=int, default=4096, help="a batch's budget on each side, padding included"
    )
    parser.add_argument(
        "--batches", type=int, help="batches a round (default: 3, base 1, on a GPU 20)"
    )
    parser.add_argument(
        "--pairs", type=int, default=100_000, help="pairs the batches are drawn from"
    )
    parser.add_argument("--peers", nargs="*", choices=tuple(NAMES), default=list(NAMES))
    parser.add_argument(
        "--compiled",
        nargs="*",
        choices=("headwise", *NAMES),
        default=["headwise", "marian"] if torch.cuda.is_available() else [],
        help="who also (peers) or only (headwise) runs under torch.compile; default: marian and "
        "headwise on a GPU, nobody on a CPU",
    )
    options = parser.parse_args(arguments)
    if options.quick:
        options.size, options.tokens, options.pairs, options.rounds, options.batches = (
            ["tiny"],
            256,
            100,
            1,
            1,
        )
    bench = Bench("training", options)
    for name in options.size:
        measure_size(name, options, bench)
    bench.save()


if __name__ == "__main__":
    main()
