"""Decoding speed: greedy and beam search beside transformers' `generate`, same weights, same
outputs.

    python benchmarks/bench_decoding.py [--size base] [--batch 1 32] [--beam 1 4 5]
        [--new-tokens 25] [--precision fp32]
    python benchmarks/bench_decoding.py --device cuda --precision bf16 \\
        --batch 1 64 512 --beam 1 5 --new-tokens 32      # the bars of a GPU

Measured: search alone (no tokenisation) over synthetic sources, a fixed number of new tokens (a
bias rules the end of a sentence out). Both models hold the same random weights, and before the
clock starts the outputs are compared token for token. On a GPU there are two of ours:
`plain steps`, the loop that every search can use, and the recorded steps that are the default.

The floor of a step of `rows` hypotheses at time t: its weights must be read once, and each row
costs two operations a weight; then every row's keys and values so far, those of the source once a
sentence, and the logits, written and read,

    seconds ≥ max(bytes of weights / read speed, 2 · rows · weights / product speed)
              + (2 · layers · dim · (rows · t + source tokens) + 2 · rows · vocab)
                · bytes of a number / read speed            base: 25.7 M weights, 51 MB in bf16

plus encoding, 2 operations a weight and source token. Rows that share a past may share its reading:
the count of keys is an upper one. Both speeds are measured in the same run. On an H200 (4.0 TB/s,
790 TFLOP/s) a step of base takes at least 13 µs for one row, and 0.36 ms for 512 × beam 5, of which
0.17 ms are products and 0.13 ms keys and values at t = 16. How far we are: see
docs/experiments/decoding-speed.md; the bars are greedy batch 1 ≥ 2.5 × and beam 4 batch 32 ≥ 1.2 ×
`generate` on two cores; on an H200 greedy batch 1 ≥ 15 ×, beam 5 batch 64 ≥ 7 ×, greedy batch 512 ≥
7 ×, beam 5 batch 512 ≥ 4 ×.
"""

import argparse
from collections.abc import Sequence
from functools import partial

import torch
from harness import Bench, Contender, Run, make_parser, product_speed, read_speed
from sizes import SIZES, Size, build_marian
from synthetic import draw_pairs, pad
from tests.reference.peers import copy_marian
from transformers import MarianMTModel

from headwise.decoding.choices import BeamSettings, DecodingSettings, GreedySettings, decode
from headwise.models.encoder_decoder import EncoderDecoder
from headwise.models.transformer_stepper import TransformerStepper
from headwise.randomness import torch_generator
from headwise.text.tokenizer import EOS, PAD

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
NEVER = -1e4


def build_pair(
    size: Size, *, device: torch.device, dtype: torch.dtype
) -> tuple[MarianMTModel, EncoderDecoder]:
    """The peer with random weights that make varied outputs without end, and our copy of it."""
    peer = build_marian(size).eval()
    generator = torch_generator("benchmark", "decoding")
    with torch.no_grad():
        for name, parameter in peer.named_parameters():
            if parameter.ndim == 2 and "embed_positions" not in name:
                parameter.copy_(
                    torch.randn(parameter.shape, generator=generator) * parameter.shape[1] ** -0.5
                )
        peer.final_logits_bias[0, : EOS + 1] = NEVER  # padding, beginning and end are never written
    ours = copy_marian(peer)
    return peer.to(device, dtype), ours.to(device, dtype)


def run_peer(
    peer: MarianMTModel, sources: Sequence[Sequence[int]], *, beam: int, new_tokens: int
) -> list[list[int]]:
    ids = pad([[*source, EOS] for source in sources]).to(peer.device)
    rows = peer.generate(
        input_ids=ids,
        attention_mask=(ids != PAD).long(),
        num_beams=beam,
        do_sample=False,
        max_new_tokens=new_tokens,
        length_penalty=1.0,
    )
    return rows[:, 1:].tolist()


def run_ours(
    stepper: TransformerStepper, sources: Sequence[Sequence[int]], *, beam: int, new_tokens: int
) -> list[list[int]]:
    settings: DecodingSettings = GreedySettings(max_length=new_tokens)
    if beam > 1:
        settings = BeamSettings(size=beam, max_length=new_tokens)
    return [list(result.best.tokens) for result in decode(stepper, sources, settings)]


def count_equal(found: Sequence[Sequence[int]], expected: Sequence[Sequence[int]]) -> float:
    return sum(a == b for a, b in zip(found, expected, strict=True)) / len(expected)


def build_run(run: partial, *, num_sentences: int) -> Run:
    """The same call again and again; in inference mode, as both would be used."""

    @torch.inference_mode()
    def repeat() -> float:
        run()
        return num_sentences

    return repeat


def least_seconds(
    size: Size,
    *,
    batch: int,
    beam: int,
    source_tokens: float,
    options: argparse.Namespace,
    bench: Bench,
) -> float:
    """For one sentence of a batch, at the ceilings noted in the bench."""
    products, reads = bench.record["products"], bench.record["reads"]
    bytes_each, rows = DTYPES[options.precision].itemsize, batch * beam
    weights = max(size.step_weights * bytes_each / reads, 2 * rows * size.step_weights / products)
    remembered = (
        2 * size.layers * size.dim * (rows * (options.new_tokens + 1) / 2 + batch * source_tokens)
    )
    step = weights + (remembered + 2 * rows * size.vocab) * bytes_each / reads
    encoding = 2 * source_tokens * size.encoding_weights / products
    return step * options.new_tokens / batch + encoding


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--size", choices=sorted(SIZES), default="base")
    parser.add_argument("--batch", nargs="+", type=int, default=[1, 32])
    parser.add_argument("--beam", nargs="+", type=int, default=[1, 4, 5])
    parser.add_argument("--new-tokens", type=int, default=25)
    parser.add_argument("--precision", choices=sorted(DTYPES), default="fp32")
    options = parser.parse_args(arguments)
    if options.quick:
        options.size, options.batch, options.beam, options.new_tokens, options.rounds = (
            "tiny",
            [1, 3],
            [1, 2],
            5,
            1,
        )
    bench = Bench("decoding", options)
    dtype = DTYPES[options.precision]
    bench.measure_ceiling(
        "products", partial(product_speed, bench.device, dtype, quick=options.quick)
    )
    bench.measure_ceiling("reads", partial(read_speed, bench.device, quick=options.quick))
    size = SIZES[options.size]
    peer, ours = build_pair(size, device=bench.device, dtype=dtype)
    for batch in options.batch:
        sources = draw_pairs(batch, vocab=size.vocab).sources
        source_tokens = sum(len(source) + 1 for source in sources) / batch
        for beam in options.beam:
            name = f"{'greedy' if beam == 1 else f'beam {beam}'}, batch {batch}"
            steppers = {"headwise": TransformerStepper(ours)}
            if bench.device.type == "cuda":
                steppers["plain steps"] = TransformerStepper(ours, static=False)
            asked = {"beam": beam, "new_tokens": options.new_tokens}
            calls = {"generate": partial(run_peer, peer, sources, **asked)}
            calls |= {
                label: partial(run_ours, stepper, sources, **asked)
                for label, stepper in steppers.items()
            }
            with torch.inference_mode():
                outputs = {label: call() for label, call in calls.items()}
            for other in ("generate", "plain steps"):
                if other in outputs:
                    equal = count_equal(outputs["headwise"], outputs[other])
                    bench.note(f"same output, {name}, share of {batch} sentences as {other}", equal)
            floor = least_seconds(
                size,
                batch=batch,
                beam=beam,
                source_tokens=source_tokens,
                options=options,
                bench=bench,
            )
            contenders = [
                Contender(label, partial(build_run, call, num_sentences=batch), floor)
                for label, call in calls.items()
            ]
            title = f"{options.size} {options.precision}, {name}, {options.new_tokens} new tokens"
            bench.compare(title, contenders, unit="sentence", baseline="generate")
    bench.save()


if __name__ == "__main__":
    main()
