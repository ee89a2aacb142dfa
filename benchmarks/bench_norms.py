"""Norms side by side: a word model of three layers at equal budget, and what depth does to the gradient at the start.

    python benchmarks/bench_norms.py --text ptb.train.txt.gz                 (without --text: the built-in corpus)

Measured: perplexity of held-out text after the same number of updates on the same batches, and the norm of a gradient at the start.
The floor: there is none; layer norm is what the others are held against. Prints two tables and writes benchmarks/results/norms.json. PowerNorm's perplexity should be no more than 1.02 × layer norm's; the
gradient of the last feed-forward part must be flat in depth with the norm after, and fall with it with the norm before.
"""

import time
from typing import Any

import torch
from harness import Bench, make_parser, print_table
from language_model import Budget, measure_perplexity, read_text, train_model
from tests.models.test_depth import last_gradient

NORMS = ("layer", "rms", "power", "batch")
DEPTHS = (2, 4, 6, 12)


def depth_table(bench: Bench, *, quick: bool) -> None:
    num_seeds = 1 if quick else 5
    rows = [("place", *(f"{depth} layers" for depth in DEPTHS), "2 / 12")]
    for place in ("after", "before"):
        norms = [sum(last_gradient(place, depth, key) for key in range(num_seeds)) / num_seeds for depth in DEPTHS]
        bench.note(f"gradient, norm {place}", dict(zip(DEPTHS, norms, strict=True)))
        rows.append((place, *(f"{norm:.3f}" for norm in norms), f"{norms[0] / norms[-1]:.2f}"))
    print_table(rows)


def main() -> None:
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
    depth_table(bench, quick=options.quick)
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
                train_model(settings, text, budget, device=torch.device(options.device), key=str(seed))
                for seed in range(options.seeds)
            )
            read = [measure_perplexity(model, text, length=budget.length) for model in models]
            seconds = time.perf_counter() - began
            bench.note(f"{kind}, {place}", {"perplexity": read, "seconds": seconds})
            rows.append((kind, place, " ".join(f"{value:.1f}" for value in read), f"{seconds:.0f}"))
    print_table(rows)
    bench.save()


if __name__ == "__main__":
    main()
