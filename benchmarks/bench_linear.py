"""Attention in linear time against fused full attention: forward and backward, causal or not, at growing lengths, with slopes.

    python benchmarks/bench_linear.py [--device cuda] [--json FILE] [--lengths 4096 … 65536] [--packed]

Measured: seconds for one forward and backward of a kernel alone (8 heads of 64, bf16 on a GPU, fp32 on a CPU; one row), every kernel
once a round, the fused one as baseline (FlashAttention on a GPU). `slope` is that of a straight line through log seconds over log
length: 1 is linear, 2 quadratic. `--packed` gives a mask of four sentences instead of none.

The floor: q, k and v read and the output written, and the same of the gradients: eight tensors, at the bytes per second measured in
the same run. Full attention is bound by operations instead, 14 n² d per head with backward.
"""

import math
from collections.abc import Sequence
from functools import partial

import torch
from harness import Bench, Contender, Run, make_parser, print_table, read_speed

from headwise.attention.fused import FusedAttention
from headwise.attention.hashed import HashedAttention
from headwise.attention.linear import LinearAttention
from headwise.attention.linformer import LinformerAttention
from headwise.attention.masks import Mask, causal, segments
from headwise.attention.multi_head import Kernel
from headwise.attention.performer import PerformerAttention
from headwise.randomness import torch_generator

HEADS, HEAD_DIM = 8, 64


def make_kernels(length: int, device: torch.device, *, is_causal: bool) -> dict[str, Kernel]:
    hashed = HashedAttention(HEAD_DIM, num_buckets=max(2, length // 64 // 2 * 2), num_rounds=2, window=64)
    kernels: dict[str, Kernel] = {
        "fused": FusedAttention(),
        "linear": LinearAttention(),
        "performer": PerformerAttention(HEAD_DIM, 256).to(device),
        "reformer": hashed.to(device),
    }
    if not is_causal:
        kernels["linformer"] = LinformerAttention(256, length).to(device)
    return kernels


def build_run(kernel: Kernel, length: int, mask: Mask, device: torch.device) -> Run:
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    generator = torch_generator("bench", length)
    shape = (1, HEADS, length, HEAD_DIM)
    q, k, v = (torch.randn(shape, generator=generator).to(device, dtype).requires_grad_() for _ in range(3))
    gradient = torch.randn(shape, generator=generator).to(device, dtype)
    k = q if isinstance(kernel, HashedAttention) else k
    prepared = kernel.prepare(mask, length, length, device)

    def run() -> float:
        kernel(q, k, v, prepared).backward(gradient)
        q.grad = k.grad = v.grad = None
        return float(length)

    return run


def slope(lengths: Sequence[int], seconds: Sequence[float]) -> float:
    x, y = [math.log(value) for value in lengths], [math.log(value) for value in seconds]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    spread = sum((one - mean_x) ** 2 for one in x)
    return sum((one - mean_x) * (other - mean_y) for one, other in zip(x, y, strict=True)) / spread


def measure(bench: Bench, lengths: Sequence[int], *, is_causal: bool, packed: bool) -> None:
    device, size = bench.device, 2 if bench.device.type == "cuda" else 4
    floor = 8 * HEADS * HEAD_DIM * size / read_speed(device, quick=bench.options.quick)
    seconds: dict[str, list[float]] = {}
    for length in lengths:
        mask = causal() if is_causal else Mask()
        if packed:
            numbers = 1 + torch.arange(length, device=device)[None] * 4 // length
            mask = mask & segments(numbers, numbers)
        contenders = [
            Contender(name, partial(build_run, kernel, length, mask, device), floor)
            for name, kernel in make_kernels(length, device, is_causal=is_causal).items()
        ]
        title = f"{'causal, ' if is_causal else ''}{'packed, ' if packed else ''}{length} tokens"
        for name, line in bench.compare(title, contenders, unit="token", baseline="fused").items():
            seconds.setdefault(name, []).append(length / line.rate)
    slopes = {name: slope(lengths, values) for name, values in seconds.items()}
    bench.record[f"slopes, {'causal' if is_causal else 'both ways'}"] = slopes
    print_table([("slope of time", *slopes), ("", *(f"{value:.2f}" for value in slopes.values()))])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--lengths", type=int, nargs="+", default=[4096, 8192, 16384, 32768, 65536])
    parser.add_argument("--packed", action="store_true")
    options = parser.parse_args(arguments)
    if options.quick:
        options.lengths, options.rounds = [32, 64], 1
    bench = Bench("linear", options)
    for is_causal in (False, True):
        measure(bench, options.lengths, is_causal=is_causal, packed=options.packed)
    bench.save()


if __name__ == "__main__":
    main()
