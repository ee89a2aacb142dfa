"""Scoring a long text with a carried memory beside reading the context of each token again.

    python benchmarks/bench_memory.py [--reach 1600] [--dim 64] [--layers 4]

Measured: tokens per second. Both predict each token from `reach` tokens before it. A Transformer
without a memory reads these again for every token; one with a memory keeps the states of every
layer and reads each token once (Dai et al. 2019, table 9: up to 1,874 times as fast). Carried in
segments a text is scored, carried token by token a text is written.

Before the clock starts the numbers are compared, with a model of one layer, for which both see the
same: to 1e-5.

The floor of re-reading is `reach` + 1 times the products of one token. The bar: in segments ≥ 50
times the tokens per second of re-reading. Prints a table, writes benchmarks/results/memory.json,
and exits with 1 if the bar is missed (--quick: never). Dated numbers:
docs/experiments/language-models.md.
"""

import argparse
import sys
from collections.abc import Callable
from functools import partial

import torch
from harness import Bench, Contender, Run, make_parser
from language_model import Bar, judge
from torch import Tensor

from headwise.models.choices import DecoderOnlySettings, build_decoder_only
from headwise.models.decoder_only import DecoderOnly
from headwise.models.segment_memory import Past
from headwise.randomness import torch_generator

VOCAB = 1000
REREAD, STEPS = 8, 64
"""Tokens of one round of the slow ways."""


def build(options: argparse.Namespace, *, layers: int) -> DecoderOnly:
    settings = DecoderOnlySettings.model_validate(
        {
            "dim": options.dim,
            "layers": layers,
            "heads": 4,
            "position": {"kind": "transformer_xl"},
            "memory": {"kind": "segments", "length": options.reach},
        }
    )
    model = build_decoder_only(settings, size=VOCAB, generator=torch_generator("memory"))
    return model.to(options.device).eval()


def reread(model: DecoderOnly, text: Tensor, first: int, count: int) -> Tensor:
    """Logits after each of `count` tokens, its context read again for each."""
    reach = model.reach or 0
    rows = [text[:, place - reach : place + 1] for place in range(first, first + count)]
    return torch.cat([model.logits(model(row)[:, -1:]) for row in rows], dim=1)


def carry(model: DecoderOnly, text: Tensor, past: Past, *, segment: int) -> Tensor:
    """Logits after every token, read in segments after the past."""
    found = []
    for part in text.split(segment, dim=1):
        hidden, read = model.read_on(part, past)
        past = past.after(read, keep=model.reach or 0)
        found.append(model.logits(hidden))
    return torch.cat(found, dim=1)


def remember(model: DecoderOnly, text: Tensor) -> Past:
    """What is remembered of a text."""
    like = model.embedding.table.weight
    past = Past.nothing(len(model.blocks), len(text), like=like)
    _, read = model.read_on(text, past)
    return past.after(read, keep=model.reach or 0)


def step(model: DecoderOnly, text: Tensor, count: int) -> Callable[[], float]:
    """Token by token with a rolling cache, which keeps rolling from round to round."""
    state = model.start(num_rows=1, max_length=0)
    for place in range((model.reach or 0) + 1):
        model.step(text[:, place], state)

    def run() -> float:
        for place in range(count):
            model.logits(model.step(text[:, place], state))
        return count

    return run


def as_run(work: Callable[[], Tensor]) -> Run:
    return lambda: work().shape[1]


@torch.inference_mode()
def main() -> int:
    parser = make_parser(__doc__)
    parser.add_argument("--reach", type=int, default=1600)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--layers", type=int, default=4)
    options = parser.parse_args()
    if options.quick:
        options.reach, options.dim, options.rounds = 50, 16, 1
    bench, reach = Bench("memory", options), options.reach
    text = torch.randint(0, VOCAB, (1, 3 * reach), generator=torch_generator("text"))
    text = text.to(options.device)
    alone = build(options, layers=1)
    carried = carry(alone, text[:, reach : reach + 8], remember(alone, text[:, :reach]), segment=3)
    difference = (carried - reread(alone, text, reach, 8)).abs().max()
    bench.note("largest difference of logits, one layer", float(difference))
    model = build(options, layers=options.layers)
    past = remember(model, text[:, :reach])
    ways: dict[str, Callable[[], Run]] = {
        "re-reading": lambda: as_run(partial(reread, model, text, reach, REREAD)),
        "carried, token by token": lambda: step(model, text, STEPS),
        "carried, in segments": lambda: as_run(
            partial(carry, model, text[:, reach:], past, segment=reach)
        ),
    }
    contenders = [Contender(name, make) for name, make in ways.items()]
    title = f"{options.layers} × {options.dim}, attention over {reach}"
    lines = bench.compare(title, contenders, unit="token", baseline="re-reading")
    bench.save()
    bars = [Bar("largest difference of logits", float(difference), most=1e-5)]
    if not options.quick:
        ratio = lines["carried, in segments"].ratio
        bars.append(Bar("carried in segments / re-reading", ratio, least=50))
    return judge(bars)


if __name__ == "__main__":
    sys.exit(main())
