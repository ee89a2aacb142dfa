"""Decoding speed on a CPU: every form of a model (models/inference.py) beside transformers'
`generate` and CTranslate2.

    python benchmarks/bench_cpu_decoding.py [--size base] [--cases 1x1 32x1 1x4 32x4]
        [--new-tokens 25] [--threads 2]
        [--ctranslate2 PYTHON]      a Python that has ctranslate2; without it, it is left out

Measured: search alone over synthetic sources, a fixed number of new tokens, the same random weights
for all. A case is batch × beam. Batch 1 is one sentence after the other. Before the clock starts,
the share of outputs that equal `generate`'s is noted: 1 for fp32; with random weights two tokens
are often nearly tied, so the rounded forms differ more than a trained model's do. CTranslate2 runs
in a process of its own.

The floor of a step: its weights must be read once, and each row costs two operations a weight,

    seconds ≥ max(bytes of the step's weights / read speed, 2 · rows · weights / product speed)
    base has 25.7 M weights; bytes of a weight: fp32 4, fp16 and bf16 2, int8 1

plus encoding, 2 operations a weight and source token; the product speed is that of fp32 for all, so
that of int8 and bf16 with many rows a share above 100 % means their faster products. Both speeds
are measured in the same run. The bars: greedy batch 1 ≥ 2.5 ×, beam 4 batch 32 ≥ 1.2 ×, int8 greedy
batch 1 ≥ 4 × `generate`. Dated numbers: docs/experiments/decoding-speed.md.
"""

import argparse
import json
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import torch
from bench_decoding import build_pair, count_equal, run_ours, run_peer
from harness import COMPANIONS, ROOT, Bench, Contender, Run, make_parser, product_speed, read_speed
from sizes import SIZES, Size
from synthetic import draw_pairs
from tests.reference.peers import settings_of
from transformers import MarianMTModel

from headwise.errors import UsageError
from headwise.exporting.ctranslate2_network import build_network
from headwise.models.encoder_decoder import EncoderDecoder
from headwise.models.inference import InferenceForm, Precision, choose_form, exchange
from headwise.models.transformer_stepper import TransformerStepper

Sources = Sequence[Sequence[int]]
Decode = Callable[[Sources], list[list[int]]]
NUM_SINGLE = 6
LONGEST = 1024
PRECISIONS: tuple[Precision, ...] = ("fp32", "fp16", "bf16", "int8")
WEIGHT_BYTES = {"plain": 4, "packed": 4, "fp16": 2, "bf16": 2, "int8": 1, "float32": 4}


class CTranslate2:
    """The peer's process; a request is one line each way."""

    def __init__(self, python: str, directory: Path, *, threads: int) -> None:
        script = ROOT / "benchmarks" / "ctranslate2_peer.py"
        self.process = subprocess.Popen(
            [python, str(script), str(directory), str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            env={"OMP_NUM_THREADS": str(threads)},
        )
        COMPANIONS.append(self.process.pid)

    def decode(self, sources: Sources, *, kind: str, beam: int, new_tokens: int) -> list[list[int]]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        request = {
            "type": kind,
            "sources": [list(one) for one in sources],
            "beam": beam,
            "new_tokens": new_tokens,
        }
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self) -> None:
        COMPANIONS.remove(self.process.pid)
        self.process.communicate()


def save_networks(peer: MarianMTModel, ours: EncoderDecoder, directory: Path) -> None:
    """As `headwise export` writes them; the weights are the same random ones for all."""
    names = ["<pad>", "<s>", "</s>", "<unk>"]
    names += map(str, range(len(names), ours.output.out_features))
    for kind, quantization in (("float32", None), ("int8", "int8")):
        network = build_network(
            ours, settings_of(peer), vocabularies=(names, names), longest=LONGEST
        )
        network.optimize(quantization=quantization)
        (directory / kind).mkdir()
        network.save(str(directory / kind))


def build_run(decode: Decode, sources: Sources, *, batch: int) -> Run:
    """All sources, `batch` at a time; in inference mode, as all would be used."""

    @torch.inference_mode()
    def run() -> float:
        for first in range(0, len(sources), batch):
            decode(sources[first : first + batch])
        return len(sources)

    return run


def least_seconds(
    size: Size,
    form: str,
    *,
    batch: int,
    beam: int,
    source_tokens: float,
    options: argparse.Namespace,
    bench: Bench,
) -> float:
    """For one sentence of a batch, at the ceilings noted in the bench."""
    products, reads = bench.record["products"], bench.record["reads"]
    step = max(
        size.step_weights * WEIGHT_BYTES[form] / reads,
        2 * batch * beam * size.step_weights / products,
    )
    return step * options.new_tokens / batch + 2 * source_tokens * size.encoding_weights / products


def list_forms(bench: Bench) -> list[InferenceForm]:
    """The plain model and every form this machine offers; the reason for what is missing is
    noted."""
    forms = [InferenceForm("plain")]
    for precision in PRECISIONS:
        try:
            forms.append(choose_form(precision, torch.device("cpu")))
        except UsageError as error:
            bench.note(f"without {precision}", str(error))
    return forms


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--size", choices=sorted(SIZES), default="base")
    parser.add_argument(
        "--cases", nargs="+", default=["1x1", "32x1", "1x4", "32x4"], metavar="BATCHxBEAM"
    )
    parser.add_argument("--new-tokens", type=int, default=25)
    parser.add_argument("--ctranslate2", metavar="PYTHON", help="a Python that has ctranslate2")
    options = parser.parse_args(arguments)
    if options.quick:
        options.size, options.cases, options.new_tokens, options.rounds = (
            "tiny",
            ["1x1", "3x2"],
            5,
            1,
        )
    options.device = "cpu"
    bench = Bench("cpu_decoding", options)
    bench.measure_ceiling(
        "products", partial(product_speed, bench.device, torch.float32, quick=options.quick)
    )
    bench.measure_ceiling("reads", partial(read_speed, bench.device, quick=options.quick))
    size = SIZES[options.size]
    peer, ours = build_pair(size, device=bench.device, dtype=torch.float32)
    steppers = {form.name: TransformerStepper(exchange(ours, form)) for form in list_forms(bench)}
    with tempfile.TemporaryDirectory() as directory:
        other = None
        if options.ctranslate2:
            save_networks(peer, ours, Path(directory))
            other = CTranslate2(options.ctranslate2, Path(directory), threads=options.threads)
        for case in options.cases:
            batch, beam = map(int, case.split("x"))
            ways: dict[str, tuple[str, Decode]] = {
                "generate": (
                    "plain",
                    partial(run_peer, peer, beam=beam, new_tokens=options.new_tokens),
                ),
                **{
                    f"headwise {name}": (
                        name,
                        partial(run_ours, stepper, beam=beam, new_tokens=options.new_tokens),
                    )
                    for name, stepper in steppers.items()
                },
            }
            for kind in ("float32", "int8") if other is not None else ():
                ways[f"CTranslate2 {kind}"] = (
                    kind,
                    partial(other.decode, kind=kind, beam=beam, new_tokens=options.new_tokens),
                )
            compare(bench, options, size, ways=ways, batch=batch, beam=beam)
        if other is not None:
            other.close()
    bench.save()


def compare(
    bench: Bench,
    options: argparse.Namespace,
    size: Size,
    *,
    ways: dict[str, tuple[str, Decode]],
    batch: int,
    beam: int,
) -> None:
    sources = draw_pairs(batch if batch > 1 else NUM_SINGLE, vocab=size.vocab).sources
    source_tokens = sum(len(source) + 1 for source in sources) / len(sources)
    case = f"{'greedy' if beam == 1 else f'beam {beam}'}, batch {batch}"
    with torch.inference_mode():
        outputs = {
            name: [
                tokens
                for first in range(0, len(sources), batch)
                for tokens in decode(sources[first : first + batch])
            ]
            for name, (_, decode) in ways.items()
        }
    for name, tokens in outputs.items():
        if name != "generate":
            exact = ways[name][0] in ("plain", "packed")
            what = "same output" if exact else "share of the same outputs"
            bench.note(f"{what}, {case}, {name}", count_equal(tokens, outputs["generate"]))
    contenders = [
        Contender(
            name,
            partial(build_run, decode, sources, batch=batch),
            least_seconds(
                size,
                form,
                batch=batch,
                beam=beam,
                source_tokens=source_tokens,
                options=options,
                bench=bench,
            ),
        )
        for name, (form, decode) in ways.items()
    ]
    title = f"{options.size}, {case}, {options.new_tokens} new tokens"
    bench.compare(title, contenders, unit="sentence", baseline="generate")


if __name__ == "__main__":
    main()
