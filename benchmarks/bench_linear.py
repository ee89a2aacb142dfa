"""Attention in linear time against fused full attention and the same kernels in other packages:
causal or not, at growing lengths, with slopes.

    python benchmarks/bench_linear.py [--device cuda] [--json FILE] [--lengths 4096 … 65536]
        [--packed] [--peers performer-pytorch …]

Measured: calls a second of a kernel alone, forward, and forward and backward (8 heads of 64, bf16
on a GPU, fp32 on a CPU; one row), ours and the peers' (attention_peers.py) once a round, nothing
compiled, the fused one as baseline (FlashAttention on a GPU). Linformer has rank 64, Performer 256
features, Reformer two rounds and 128 keys a query (ours 64 to either side in the bucket, the peer's
its chunk of 64 and the one before). `slope` is that of a straight line through log seconds over log
length: 1 is linear, 2 quadratic. `--packed` gives a mask of four sentences instead of none, which
no peer knows.

The floor: q, k and v read and the output written, and with backward the same of the gradients: four
tensors or eight, at the bytes per second measured in the same run; a peer's is that of our kernel.
Full attention is bound by operations instead, 14 n² d per head with backward.
"""

import math
from collections.abc import Sequence
from functools import partial

import torch
from attention_peers import Work, peer_contenders, peers_of, report_peers
from harness import Bench, Contender, Run, make_parser, print_table, read_speed

from headwise.attention.kernels.fused import FusedAttention
from headwise.attention.kernels.linear import LinearAttention
from headwise.attention.kernels.linformer import LinformerAttention
from headwise.attention.kernels.performer import PerformerAttention
from headwise.attention.kernels.reformer import ReformerAttention
from headwise.attention.masks import Mask, causal, segments
from headwise.attention.multi_head import Kernel
from headwise.randomness import torch_generator

HEADS, HEAD_DIM = 8, 64
KINDS = ("linear", "performer", "linformer", "reformer")


def make_work(length: int, *, is_causal: bool) -> Work:
    """Sizes for both sides; toy lengths have smaller buckets and a smaller rank."""
    return Work(
        length,
        HEADS,
        HEAD_DIM,
        is_causal=is_causal,
        rank=min(64, length),
        bucket=min(64, length // 4),
    )


def make_kernels(work: Work, device: torch.device) -> dict[str, Kernel]:
    num_buckets = max(2, work.length // work.bucket // 2 * 2)
    hashed = ReformerAttention(
        HEAD_DIM, num_buckets=num_buckets, num_rounds=work.rounds, window=work.bucket
    )
    kernels: dict[str, Kernel] = {
        "fused": FusedAttention(),
        "linear": LinearAttention(),
        "performer": PerformerAttention(HEAD_DIM, work.features).to(device),
        "reformer": hashed.to(device),
    }
    if not work.is_causal:
        kernels["linformer"] = LinformerAttention(work.rank, work.length).to(device)
    return kernels


def build_run(
    kernel: Kernel, length: int, mask: Mask, device: torch.device, *, backward: bool
) -> Run:
    dtype = dtype_on(device)
    generator = torch_generator("bench", length)
    shape = (1, HEADS, length, HEAD_DIM)
    q, k, v = (
        torch.randn(shape, generator=generator).to(device, dtype).requires_grad_() for _ in range(3)
    )
    gradient = torch.randn(shape, generator=generator).to(device, dtype)
    k = q if isinstance(kernel, ReformerAttention) else k
    prepared = kernel.prepare(mask, length, length, device)

    def run() -> float:
        with torch.set_grad_enabled(backward):
            output = kernel(q, k, v, prepared)
        if backward:
            output.backward(gradient)
            q.grad = k.grad = v.grad = None
        return 1.0

    return run


def dtype_on(device: torch.device) -> torch.dtype:
    return torch.bfloat16 if device.type == "cuda" else torch.float32


def slope(lengths: Sequence[int], seconds: Sequence[float]) -> float:
    x, y = [math.log(value) for value in lengths], [math.log(value) for value in seconds]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    spread = sum((one - mean_x) ** 2 for one in x)
    return sum((one - mean_x) * (other - mean_y) for one, other in zip(x, y, strict=True)) / spread


def measure(
    bench: Bench, lengths: Sequence[int], speed: float, *, is_causal: bool, backward: bool
) -> None:
    device, packed = bench.device, bench.options.packed
    dtype = dtype_on(device)
    inputs = f"{'causal, ' if is_causal else ''}{'packed, ' if packed else ''}"
    what = f"{inputs}forward{' and backward' if backward else ''}"
    seconds: dict[str, dict[int, float]] = {}
    for length in lengths:
        mask, work = causal() if is_causal else Mask(), make_work(length, is_causal=is_causal)
        if packed:
            numbers = 1 + torch.arange(length, device=device)[None] * 4 // length
            mask = mask & segments(numbers, numbers)
        floor = (8 if backward else 4) * length * work.dim * dtype.itemsize / speed
        kernels = make_kernels(work, device)
        contenders = [
            Contender(
                name, partial(build_run, kernel, length, mask, device, backward=backward), floor
            )
            for name, kernel in kernels.items()
        ]
        if not packed:
            floors = dict.fromkeys((kind for kind in KINDS if kind in kernels), floor)
            contenders += peer_contenders(bench, work, floors, dtype, backward=backward)
        title = f"{what}, {length:,} tokens"
        lines = bench.compare(title, contenders, unit="call", baseline="fused")
        report_peers(bench, title, lines, {kind: kind for kind in KINDS})
        for name, line in lines.items():
            seconds.setdefault(name, {})[length] = 1 / line.rate
    slopes = {
        name: slope(list(found), list(found.values()))
        for name, found in seconds.items()
        if len(found) > 1
    }
    if slopes:
        bench.record[f"slopes, {what}"] = slopes
        print_table(
            [
                (f"{what}: slope of time", ""),
                *((name, f"{value:.2f}") for name, value in slopes.items()),
            ]
        )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--lengths", type=int, nargs="+", default=[4096, 8192, 16384, 32768, 65536])
    parser.add_argument("--packed", action="store_true")
    parser.add_argument("--peers", nargs="*", choices=peers_of(KINDS), default=peers_of(KINDS))
    options = parser.parse_args(arguments)
    if options.quick:
        options.lengths, options.rounds = [32, 64], 1
    bench = Bench("linear", options)
    speed = bench.measure_ceiling("bytes/s", lambda: read_speed(bench.device, quick=options.quick))
    for is_causal in (False, True):
        for backward in (False, True):
            measure(bench, options.lengths, speed, is_causal=is_causal, backward=backward)
    bench.save()


if __name__ == "__main__":
    main()
