"""Reading further than was trained: a character model trained at 64 reads 64, 128, 256 and 512.

    python benchmarks/bench_positions.py --text multi30k/train.en.gz
    (without --text: the built-in corpus)

A kind may carry a setting of its own: --kinds sinusoidal,continuous,continuous:delta=0.1

Measured: perplexity of held-out text, read in pieces of each length. The floor is that of the
trained length itself: reading more context should not be worse. The bars, for those of the two that
are among --kinds: ALiBi reads 512 at no more than 1.05 × its perplexity at 64, and sinusoids break
(3 ×): a slope of the wrong sign or direction fails this. Prints a table, writes
benchmarks/results/positions.json, and exits with 1 if a bar is missed (--quick: never).
"""

import sys
import time

import torch
from harness import Bench, make_parser, print_table
from language_model import Bar, Budget, judge, measure_perplexity, read_text, train_model

KINDS = ("alibi", "sinusoidal", "rotary", "t5", "relative", "transformer_xl", "continuous")
LENGTHS = (64, 128, 256, 512)
BARS = {"alibi": {"most": 1.05}, "sinusoidal": {"least": 3.0}}
"""Of the perplexity at 512 divided by that at 64."""


def main() -> int:
    parser = make_parser(__doc__)
    parser.add_argument("--text", help="a text file, .gz too")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--steps", type=int, default=890)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    bench = Bench("positions", options)
    device = torch.device(options.device)
    text = read_text(options.text, unit="characters", num_lines=500 if options.quick else 20000)
    budget = Budget(steps=3 if options.quick else options.steps, rows=32, length=64)
    bars = []
    rows = [("position", *(f"ppl at {length}" for length in LENGTHS), "512 / 64", "seconds")]
    for kind in options.kinds.split(","):
        began = time.perf_counter()
        name, _, extra = kind.partition(":")
        key, _, given = extra.partition("=")
        position = {"kind": name} | ({key: given} if extra else {})
        attention = {"kind": "full" if name == "relative" else "fused"}
        settings = {
            "dim": 128,
            "layers": 3,
            "heads": 8,
            "attention": attention,
            "position": position,
        }
        model = train_model(
            settings | {"dropout": {"residual": 0.0, "embedding": 0.0}}, text, budget, device=device
        )
        seconds = time.perf_counter() - began
        read = [measure_perplexity(model, text, length=length) for length in LENGTHS]
        bench.note(
            kind, {"perplexity": dict(zip(LENGTHS, read, strict=True)), "training_seconds": seconds}
        )
        rows.append(
            (
                kind,
                *(f"{value:.2f}" for value in read),
                f"{read[-1] / read[0]:.2f}",
                f"{seconds:.0f}",
            )
        )
        if kind in BARS and not options.quick:
            bars.append(Bar(f"{kind}, 512 / 64", read[-1] / read[0], **BARS[kind]))
    print_table(rows)
    bench.save()
    return judge(bars)


if __name__ == "__main__":
    sys.exit(main())
