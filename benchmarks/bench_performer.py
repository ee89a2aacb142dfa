"""How far Performer is from the softmax: both estimates over sizes of q and k, head_dim, length and
number of features.

    python benchmarks/bench_performer.py [--head-dims 32 64 128] [--lengths 128 512 4096]
        [--features 64 256 1024] [--quick] [--json FILE]

Measured: the relative error of the output, √(Σ (out − exact)² / Σ exact²), for normal q and k of
each scale and normal v, 3 draws of everything. The floor is no error, which needs more features
than anyone has; beside it stands what costs nothing, the plain mean of the values. The bar:
`bounded` is nearer than that mean everywhere (exits with 1 if it is missed; --quick: never). Writes
benchmarks/results/performer.json.
"""

import sys

import torch
from harness import Bench, make_parser, print_table
from torch import Tensor

from headwise.attention.kernels.full import FullAttention
from headwise.attention.kernels.performer import Estimate, PerformerAttention, draw_features
from headwise.attention.masks import Mask
from headwise.randomness import torch_generator

SCALES = (0.25, 0.5, 0.7, 1.0, 1.5)
ESTIMATES: tuple[Estimate, ...] = ("unbiased", "bounded")
DRAWS = 3
BAR = 1.0
"""Of the error of `bounded` divided by that of the mean."""


def measure(head_dim: int, length: int, num_features: int, scale: float) -> list[float]:
    """The errors of the mean and of each estimate."""
    off = torch.zeros(1 + len(ESTIMATES), dtype=torch.float64)
    size = 0.0
    for draw in range(DRAWS):
        generator = torch_generator("bench_performer", draw)
        q, k, v = (torch.randn(1, 2, length, head_dim, generator=generator) for _ in range(3))
        q, k = scale * q, scale * k
        exact = FullAttention()(q, k, v, Mask())
        outputs = [v.mean(2, keepdim=True).expand_as(v)]
        for estimate in ESTIMATES:
            kernel = PerformerAttention(head_dim, num_features, estimate=estimate)
            kernel.rows.copy_(
                draw_features(
                    num_features, head_dim, torch_generator("bench_performer", "rows", draw)
                )
            )
            outputs.append(kernel(q, k, v, Mask()))
        off += torch.stack([_sum_of_squares(output - exact) for output in outputs])
        size += float(_sum_of_squares(exact))
    return (off / size).sqrt().tolist()


def _sum_of_squares(x: Tensor) -> Tensor:
    return x.double().square().sum()


def main() -> int:
    parser = make_parser(__doc__)
    parser.add_argument("--head-dims", type=int, nargs="+", default=[32, 64, 128])
    parser.add_argument("--lengths", type=int, nargs="+", default=[128, 512, 4096])
    parser.add_argument("--features", type=int, nargs="+", default=[64, 256, 1024])
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    bench = Bench("performer", options)
    lengths = [32] if options.quick else options.lengths
    names = ("mean", *ESTIMATES)
    rows = [("head_dim", "n", "features", "", *(f"scale {scale}" for scale in SCALES))]
    missed = False
    for head_dim in options.head_dims:
        for length in lengths:
            for num_features in options.features:
                errors = [measure(head_dim, length, num_features, scale) for scale in SCALES]
                bench.record[f"{head_dim} {length} {num_features}"] = dict(
                    zip(SCALES, errors, strict=True)
                )
                for number, name in enumerate(names):
                    values = [f"{error[number]:.3f}" for error in errors]
                    rows.append((str(head_dim), str(length), str(num_features), name, *values))
                missed |= any(error[names.index("bounded")] > BAR * error[0] for error in errors)
    print_table(rows)
    bench.save()
    return int(missed and not options.quick)


if __name__ == "__main__":
    sys.exit(main())
