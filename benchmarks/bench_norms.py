"""Norms side by side: a word model of three layers at equal budget, and what depth does to the
gradient at the start.

    python benchmarks/bench_norms.py --text ptb.train.txt.gz      (without --text: built-in corpus)

Measured: perplexity of held-out text after the same number of updates on the same batches, and the
norm of a gradient at the start. The floor: there is none; layer norm is what the others are held
against. The bars: PowerNorm's perplexity, in the mean of the seeds, is no more than 1.02 × layer
norm's at the same place (if both are among --norms); the gradient of the last feed-forward part at
2 layers is 0.8 to 1.2 × that at 12 with the norm after, and at least 1.7 × with the norm before.
Prints two tables, writes benchmarks/results/norms.json, and exits with 1 if a bar is missed
(--quick: never).
"""

import statistics
import sys
import time
from typing import Any

import torch
from harness import Bench, make_parser, print_table
from language_model import Bar, Budget, judge, measure_perplexity, read_text, train_model
from tests.models.test_depth import last_gradient

NORMS = ("layer", "rms", "power", "batch")
DEPTHS = (2, 4, 6, 12)
POWER_TO_LAYER = 1.02
DEPTH_BARS = {"after": {"least": 0.8, "most": 1.2}, "before": {"least": 1.7}}
"""Of the gradient at 2 layers divided by that at 12; tests/models/test_depth.py holds them too."""


def depth_table(bench: Bench, *, quick: bool) -> list[Bar]:
    num_seeds, bars = 1 if quick else 5, []
    rows = [("place", *(f"{depth} layers" for depth in DEPTHS), "2 / 12")]
    for place in ("after", "before"):
        norms = [
            sum(last_gradient(place, depth, key) for key in range(num_seeds)) / num_seeds
            for depth in DEPTHS
        ]
        bench.note(f"gradient, norm {place}", dict(zip(DEPTHS, norms, strict=True)))
        rows.append((place, *(f"{norm:.3f}" for norm in norms), f"{norms[0] / norms[-1]:.2f}"))
        bars.append(
            Bar(
                f"gradient with the norm {place}, 2 / 12 layers",
                norms[0] / norms[-1],
                **DEPTH_BARS[place],
            )
        )
    print_table(rows)
    return bars


def power_bars(found: dict[tuple[str, str], list[float]]) -> list[Bar]:
    """For each place where both were measured."""
    bars = []
    for kind, place in found:
        if kind == "power" and ("layer", place) in found:
            ratio = statistics.mean(found[kind, place]) / statistics.mean(found["layer", place])
            bars.append(
                Bar(f"perplexity of power to layer, norm {place}", ratio, most=POWER_TO_LAYER)
            )
    return bars


def main() -> int:
    parser = make_parser(__doc__)
    parser.add_argument("--text", help="a text file of words, .gz too")
    parser.add_argument("--norms", default=",".join(NORMS))
    parser.add_argument("--places", default="before,after")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--rows", type=int, default=16)
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    bench = Bench("norms", options)
    bars, found = depth_table(bench, quick=options.quick), {}
    text = read_text(options.text, unit="words", num_lines=500 if options.quick else 20000)
    steps = 3 if options.quick else options.steps
    budget = Budget(steps=steps, rows=options.rows, length=64)
    rows = [("norm", "place", "ppl of each seed", "seconds")]
    for place in options.places.split(","):
        for kind in options.norms.split(","):
            norm: dict[str, Any] = {"kind": kind, "place": place}
            if kind == "power":
                norm["warmup"] = steps // 4
            settings = {"dim": options.dim, "layers": 3, "heads": 4, "norm": norm}
            began = time.perf_counter()
            models = (
                train_model(
                    settings, text, budget, device=torch.device(options.device), key=str(seed)
                )
                for seed in range(options.seeds)
            )
            read = [measure_perplexity(model, text, length=budget.length) for model in models]
            found[kind, place] = read
            seconds = time.perf_counter() - began
            bench.note(f"{kind}, {place}", {"perplexity": read, "seconds": seconds})
            rows.append((kind, place, " ".join(f"{value:.1f}" for value in read), f"{seconds:.0f}"))
    print_table(rows)
    bench.save()
    return 0 if options.quick else judge(bars + power_bars(found))


if __name__ == "__main__":
    sys.exit(main())
