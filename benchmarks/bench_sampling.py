"""Samples of a training: several per sentence, beside transformers' `generate`, same weights.

    python benchmarks/bench_sampling.py [--size small] [--batch 32] [--samples 8]
        [--new-tokens 25] [--precision fp32]
    python benchmarks/bench_sampling.py --device cuda --precision bf16 --batch 64 512 --samples 8

Measured: samples per second of `draw_samples` (decoding/search/samples.py), which a training with
`training.objective.kind=reinforce` calls at each update, and of `generate(do_sample=True,
num_return_sequences=n)`, over synthetic sources and a fixed number of new tokens. Both return
tables of tokens; ours have the log-probabilities, too, and the greedy output, which is not counted.
The copy of the model from which a training draws (models/training_stepper.py) is written anew at
each draw, within the time measured. Before the clock starts, the log-probabilities that we record
are compared with those of the peer's forward pass over our samples.

The floor of a step is that of bench_decoding.py. On a GPU the step of model and draw is recorded
once for a size of batch and replayed; the first draws, which record, are made before the clock
starts. The bar is ≥ 5 × `generate` on an H200 (with plain steps it was 1.03 × at 64 sentences and
0.87 × at 512). Dated numbers of a CPU: docs/experiments/translation.md.
"""

import argparse
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from bench_decoding import DTYPES, build_pair, build_run
from harness import Bench, Contender, make_parser
from sizes import SIZES
from synthetic import draw_pairs, pad
from transformers import MarianMTModel

from headwise.decoding.results import Hypothesis, PathTables
from headwise.decoding.search.samples import draw_samples
from headwise.models.training_stepper import TrainingStepper
from headwise.text.tokenizer import BOS, EOS, PAD

Sources = Sequence[Sequence[int]]


def run_peer(peer: MarianMTModel, sources: Sources, *, count: int, new_tokens: int) -> Any:
    ids = pad([[*source, EOS] for source in sources]).to(peer.device)
    return peer.generate(
        input_ids=ids,
        attention_mask=(ids != PAD).long(),
        do_sample=True,
        num_beams=1,
        top_k=0,
        num_return_sequences=count,
        max_new_tokens=new_tokens,
    )


def run_ours(
    stepper: TrainingStepper, sources: Sources, *, count: int, new_tokens: int
) -> PathTables:
    limits = [new_tokens] * len(sources)
    with stepper.at_present() as now:
        return draw_samples(now, sources, count=count, temperature=1.0, seed=1, limits=limits)


@torch.inference_mode()
def furthest(peer: MarianMTModel, sources: Sources, drawn: list[list[Hypothesis]]) -> float:
    """The greatest difference of a recorded log-probability from the peer's forward pass."""
    rows = [(source, one) for source, here in zip(sources, drawn, strict=True) for one in here]
    ids = pad([[*source, EOS] for source, _ in rows]).to(peer.device)
    targets = torch.tensor([one.tokens for _, one in rows], device=peer.device)
    begin = torch.full_like(targets[:, :1], peer.config.decoder_start_token_id)
    logits = peer(
        input_ids=ids,
        attention_mask=(ids != PAD).long(),
        decoder_input_ids=torch.cat([begin, targets[:, :-1]], 1),
    ).logits.float()
    logits[..., [PAD, BOS]] = -torch.inf
    expected = logits.log_softmax(-1).gather(-1, targets[..., None])[..., 0]
    recorded = torch.tensor([one.token_log_probabilities for _, one in rows], device=peer.device)
    return float((expected - recorded).abs().max())


def compare(bench: Bench, options: argparse.Namespace, *, batch: int, count: int) -> None:
    size = SIZES[options.size]
    peer, ours = build_pair(
        size, device=torch.device(options.device), dtype=DTYPES[options.precision]
    )
    sources = draw_pairs(batch, vocab=size.vocab).sources
    stepper = TrainingStepper(ours)
    settings = {"count": count, "new_tokens": options.new_tokens}
    title = f"{options.size}, {batch} sentences, {count} samples"
    for _ in range(2):  # runs the step, then records it
        run_ours(stepper, sources, **settings)
    drawn = run_ours(stepper, sources, **settings).hypotheses()
    bench.note(f"furthest log-probability, {title}", furthest(peer, sources, drawn))
    runs = {
        "transformers": partial(run_peer, peer, sources, **settings),
        "ours": partial(run_ours, stepper, sources, **settings),
    }
    contenders = [
        Contender(name, partial(build_run, run, num_sentences=batch * count))
        for name, run in runs.items()
    ]
    bench.compare(title, contenders, unit="sample", baseline="transformers")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--size", choices=sorted(SIZES), default="small")
    parser.add_argument("--batch", type=int, nargs="+", default=[32])
    parser.add_argument("--samples", type=int, nargs="+", default=[8])
    parser.add_argument("--new-tokens", type=int, default=25)
    parser.add_argument("--precision", choices=sorted(DTYPES), default="fp32")
    options = parser.parse_args(arguments)
    if options.quick:
        options.size, options.batch, options.samples = "tiny", [3], [2]
        options.new_tokens, options.rounds = 5, 1
    bench = Bench("sampling", options)
    for batch in options.batch:
        for count in options.samples:
            compare(bench, options, batch=batch, count=count)
    bench.save()


if __name__ == "__main__":
    main()
