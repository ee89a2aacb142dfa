"""Attention over few pairs: time and memory of window, Longformer and BigBird against fused full
attention and the same in other packages, as the length grows.

    python benchmarks/bench_sparse.py [--device cuda] [--lengths 4096 … 65536]
        [--form chunked flex] [--packed] [--peers transformers …] [--json FILE]

Measured: calls a second of a kernel alone, ours and the peers' (attention_peers.py) in turns,
neither compiled. One row of tokens, 8 heads of 64, bf16 on CUDA and fp32 on a CPU; every kernel
sees 512 to 640 keys a query (window 256 + 256; Longformer 512 and one global token; BigBird blocks
of 64: 3 near, 2 global, 3 random). `--packed` cuts the row into sentences of 2,048 tokens under a
segment mask, the mask training uses, which no peer has; without it there is no mask. The mask is
prepared before the clock starts, as a stack of layers shares it, and timed by itself. Before
anything is timed both forms must equal the dense reference at 1,024 tokens, outputs and gradients.

The floor: 4 · pairs · head_dim operations forward, 14 with backward (which forms the scores again),
over the pairs of the pattern, at the measured speed of a large product; a peer's is that of our
kernel. Full attention's floor has n² pairs, so at 65,536 it is about a hundred times as high.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from attention_peers import Work, peer_contenders, peers_of, report_peers
from harness import Bench, Contender, Run, make_parser, print_table, product_speed
from torch import Tensor

from headwise.attention.kernels.bigbird import BigBirdAttention
from headwise.attention.kernels.full import FullAttention
from headwise.attention.kernels.fused import FusedAttention
from headwise.attention.kernels.longformer import LongformerAttention
from headwise.attention.kernels.window import WindowAttention
from headwise.attention.masks import Mask, segments
from headwise.attention.sparse.sparse_attention import Form, SparseAttention
from headwise.randomness import torch_generator

HEADS, HEAD_DIM, SENTENCE, CHECKED = 8, 64, 2048, 1024
KINDS: dict[str, tuple[SparseAttention, int]] = {
    "window": (WindowAttention(256, 256), 513),
    "longformer": (LongformerAttention(512, 1), 515),
    "bigbird": (BigBirdAttention(64, 3, 2, 3), 64 * 10),
}
"""Each kernel, and the keys of a query in the mean (global rows and columns shared out)."""


def draw(length: int, bench: Bench, dtype: torch.dtype) -> list[Tensor]:
    generator = torch_generator("bench_sparse", length)
    shape = (1, HEADS, length, HEAD_DIM)
    return [
        torch.randn(shape, generator=generator).to(bench.device, dtype).requires_grad_()
        for _ in range(3)
    ]


def make_mask(length: int, bench: Bench, *, sentence: int) -> Mask:
    if not bench.options.packed:
        return Mask()
    numbers = (torch.arange(length, device=bench.device) // sentence + 1)[None]
    return segments(numbers, numbers)


def check(bench: Bench, forms: list[Form]) -> None:
    """Both forms against full attention under the same pattern, in fp32."""
    length = 128 if bench.options.quick else CHECKED
    mask = make_mask(length, bench, sentence=length // 3)
    rows = [("largest difference from the dense reference", "output", "dq", "dk", "dv")]
    for kind, (kernel, _) in KINDS.items():
        pattern = Mask((kernel.plan(mask, length, length, bench.device).pattern,))
        expected = _results(FullAttention(), draw(length, bench, torch.float32), mask & pattern)
        for form in forms:
            given = _results(replace(kernel, form=form), draw(length, bench, torch.float32), mask)  # type: ignore[type-var]
            differences = [
                float((one - other).abs().max()) for one, other in zip(given, expected, strict=True)
            ]
            rows.append((f"{kind} {form}", *(f"{value:.1e}" for value in differences)))
            bench.record[f"difference {kind} {form}"] = differences
            # TF32 products round to three digits.
            assert max(differences) < 0.02, (
                kind,
                form,
                differences,
            )
    print_table(rows)


def _results(kernel: Callable[..., Tensor], leaves: list[Tensor], mask: Mask) -> list[Tensor]:
    output = kernel(*leaves, mask)
    return [output.detach(), *torch.autograd.grad(output.square().sum(), leaves)]


def make_run(
    bench: Bench, kernel: Callable[..., Tensor], mask: Mask, leaves: list[Tensor], *, backward: bool
) -> Run:
    gradient = torch.ones_like(leaves[0])

    def run() -> float:
        if backward:
            torch.autograd.grad(kernel(*leaves, mask), leaves, gradient)
        else:
            with torch.no_grad():
                kernel(*leaves, mask)
        return 1.0

    return run


def contenders(
    bench: Bench, length: int, forms: list[Form], *, backward: bool, speed: float
) -> list[Contender]:
    dtype = torch.bfloat16 if bench.device.type == "cuda" else torch.float32
    operations = (14 if backward else 4) * HEADS * HEAD_DIM * length
    leaves = draw(length, bench, dtype)
    # Full attention without a mask takes the fastest path there is; under segments it would build
    # an n × n table.
    full = make_run(bench, FusedAttention(), Mask(), leaves, backward=backward)
    found, floors = [Contender("fused", lambda: full, operations * length / speed)], {}
    for kind, (kernel, num_keys) in KINDS.items():
        floors[kind] = operations * min(num_keys, length) / speed
        for form in forms:
            chosen = replace(kernel, form=form)  # type: ignore[type-var]

            def build(chosen: SparseAttention = chosen) -> Run:
                given = make_mask(length, bench, sentence=SENTENCE)
                mask = chosen.prepare(given, length, length, bench.device)
                return make_run(bench, chosen, mask, leaves, backward=backward)

            found.append(Contender(f"{kind} {form}", build, floors[kind]))
            if not backward:
                prepare = _make_prepare(bench, chosen, length)
                found.append(
                    Contender(f"{kind} {form}, preparing", lambda prepare=prepare: prepare)
                )
    if not bench.options.packed:
        found += peer_contenders(
            bench, Work(length, HEADS, HEAD_DIM), floors, dtype, backward=backward
        )
    return found


def _make_prepare(bench: Bench, kernel: SparseAttention, length: int) -> Run:
    def run() -> float:
        kernel.prepare(make_mask(length, bench, sentence=SENTENCE), length, length, bench.device)
        return 1.0

    return run


def report_slopes(
    bench: Bench, found: dict[int, dict[str, tuple[float, float]]], what: str
) -> None:
    """The exponents of time and memory from the shortest to the longest."""
    first, last = min(found), max(found)
    if first == last:
        return
    rows = [(f"{what}, {first:,} to {last:,}", "slope of time", "of memory")]
    for name in (name for name in found[first] if name in found[last]):
        seconds, memory = found[first][name]
        doublings = math.log(last / first)
        slopes = (math.log(found[last][name][0] / seconds) / doublings,)
        slopes += (math.log(max(found[last][name][1], 1e-3) / max(memory, 1e-3)) / doublings,)
        rows.append((name, *(f"{slope:.2f}" for slope in slopes)))
        bench.record[f"slopes {what} {name}"] = slopes
    print_table(rows)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--lengths", type=int, nargs="+")
    parser.add_argument("--form", nargs="+", choices=("chunked", "flex"))
    parser.add_argument(
        "--packed", action="store_true", help="sentences of 2,048 tokens under a segment mask"
    )
    parser.add_argument(
        "--peers", nargs="*", choices=peers_of(list(KINDS)), default=peers_of(list(KINDS))
    )
    options = parser.parse_args(arguments)
    if options.quick:
        options.rounds = 1
    bench = Bench("sparse-packed" if options.packed else "sparse", options)
    on_gpu = bench.device.type == "cuda"
    forms: list[Form] = options.form or (["chunked", "flex"] if on_gpu else ["chunked"])
    usual = (
        [512]
        if options.quick
        else [4096, 8192, 16384, 32768, 65536]
        if on_gpu
        else [1024, 2048, 4096]
    )
    check(bench, forms)
    dtype = torch.bfloat16 if on_gpu else torch.float32
    speed = bench.measure_ceiling(
        "product FLOP/s", lambda: product_speed(bench.device, dtype, quick=options.quick)
    )
    for backward, what in ((False, "forward"), (True, "forward and backward")):
        found = {}
        for length in options.lengths or usual:
            chosen = contenders(bench, length, forms, backward=backward, speed=speed)
            title = f"{what}, {length:,} tokens"
            lines = bench.compare(title, chosen, unit="call", baseline="fused")
            report_peers(bench, title, lines, {kind: f"{kind} {forms[-1]}" for kind in KINDS})
            found[length] = {
                name: (1 / line.rate, line.memory_mib or 0.0) for name, line in lines.items()
            }
        report_slopes(bench, found, what)
    bench.save()


if __name__ == "__main__":
    main()
