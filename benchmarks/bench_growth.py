"""How cost grows: time per target token against length, batch, depth and vocabulary, training and
decoding, with exponents.

    python benchmarks/bench_growth.py [--device cuda] [--json FILE]
        [--mode training decoding] [--axis length batch]

Measured: seconds per token at about five sizes of one quantity while all others stay fixed; the
exponent a of *time ∝ sizeᵃ* is the slope of a straight line through log time over log size. Beside
it stand the exponents of two limiting cases, between which a correct program lies:

    against       if operations decide                              if launches decide
    length        0 while attention is small beside the products,   0
                  1 when it is not (12 d² + … against 36 d · length);
                  the tokens of a batch stay the same
    batch         0: each token costs the same                      −1: a step costs the same
                                                                    for any number of tokens
    depth         1, less what the output layer adds to each depth  1
    vocabulary    0 while the output is small beside the layers,    0
                  then 1

The exponent for operations is fitted to the count below, at the sizes that were measured.
"Launches" stands for all that a step costs whatever it computes: starting kernels on a GPU, Python,
and when decoding also reading the weights, which one row needs as much as fifty. A measured
exponent outside the two by more than 0.15 is a finding: something is copied, padded or waited for
that the count knows nothing of. `last` is the slope between the two largest sizes, where the regime
has often changed.

The floor: products of the whole model (sizes.py) and of attention, at the speed of a large product
measured in the same run: training 36 · layers · length · d per token (three attentions a layer
pair, two products each, thrice with backward), decoding 4 · layers · d · (length / 2 + source) per
step.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import torch
from harness import Bench, Contender, Line, Run, make_parser, print_table, product_speed
from sizes import SIZES, Size, build_ours

from headwise.data.packing import PackedBatch
from headwise.decoding.choices import GreedySettings, decode
from headwise.models.transformer_stepper import TransformerStepper
from headwise.randomness import numpy_generator, torch_generator
from headwise.tasks.translation.objective import TranslationLoss
from headwise.training.choices import TrainingSettings
from headwise.training.compilation import Compilation
from headwise.training.precision import choose_dtype
from headwise.training.updates import Updater

SLACK = 0.15
MIN_RANGE = 30.0
SOURCE_TOKENS = 16
FIRST_WORD = 4
RATE = 1e-4


@dataclass(frozen=True)
class Point:
    """One measured case: a network, and what is done with it at once."""

    size: Size
    rows: int
    length: int

    @property
    def training_flops(self) -> float:
        """Per target token, with a source as long."""
        return self.size.training_flops + 36.0 * self.size.layers * self.length * self.size.dim

    @property
    def decoding_flops(self) -> float:
        """Per new token, with its share of encoding the source."""
        attention = 4.0 * self.size.layers * self.size.dim * (self.length / 2 + SOURCE_TOKENS)
        return (
            2.0 * self.size.step_weights
            + attention
            + 2.0 * self.size.encoding_weights * SOURCE_TOKENS / self.length
        )


@dataclass(frozen=True)
class Axis:
    """The one thing that grows, and the exponent if a step's time did not depend on what is in
    it."""

    name: str
    values: tuple[int, ...]
    point: Callable[[int], Point]
    launches: float


@dataclass(frozen=True)
class Growth:
    """One line of the result."""

    mode: str
    axis: str
    values: tuple[int, ...]
    seconds: tuple[float, ...]
    flops: tuple[float, ...]
    launches: float

    @property
    def exponent(self) -> float:
        return slope(self.values, self.seconds)

    @property
    def operations(self) -> float:
        return slope(self.values, self.flops)

    @property
    def last(self) -> float:
        return slope(self.values[-2:], self.seconds[-2:])

    @property
    def is_expected(self) -> bool:
        low, high = sorted((self.operations, self.launches))
        return low - SLACK <= self.exponent <= high + SLACK

    def as_dict(self) -> dict[str, Any]:
        names = ("exponent", "last", "operations", "is_expected")
        return vars(self) | {name: getattr(self, name) for name in names}


def slope(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """a of seconds ∝ sizeᵃ, by least squares on logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def training_axes(size: Size, *, tokens: int, longest: int) -> list[Axis]:
    row = min(64, tokens)
    rows = tokens // row
    return [
        Axis(
            "length", powers(row // 2, longest), lambda n: Point(size, max(1, tokens // n), n), 0.0
        ),
        Axis("batch", powers(1, rows), lambda n: Point(size, n, row), -1.0),
        *network_axes(size, rows=rows, length=row),
    ]


def decoding_axes(size: Size, *, rows: int, longest: int) -> list[Axis]:
    length = min(32, longest)
    return [
        Axis("length", powers(length // 2, longest), lambda n: Point(size, rows, n), 0.0),
        Axis("batch", powers(1, 4 * rows), lambda n: Point(size, n, length), -1.0),
        *network_axes(size, rows=rows, length=length),
    ]


def network_axes(size: Size, *, rows: int, length: int) -> list[Axis]:
    return [
        Axis(
            "depth",
            powers(1, 4 * size.layers),
            lambda n: Point(replace(size, layers=n), rows, length),
            1.0,
        ),
        Axis(
            "vocabulary",
            powers(size.vocab // 4, 4 * size.vocab, factor=4),
            lambda n: Point(replace(size, vocab=n), rows, length),
            0.0,
        ),
    ]


def powers(first: int, last: int, *, factor: int = 2) -> tuple[int, ...]:
    """At most six sizes from the first to the last, each a power of `factor` larger than the one
    before."""
    steps = max(1, round(math.log(last / first, factor)))
    stride = -(-steps // 5)
    return tuple(first * factor**step for step in range(steps % stride, steps + 1, stride))


def build_training(point: Point, *, bench: Bench) -> Run:
    """An update as `headwise train` makes it, uncompiled, so that launches are seen."""
    settings = TrainingSettings.model_validate({"precision": "auto"})
    task = TranslationLoss(
        build_ours(point.size).to(bench.device).train(), settings.objective.label_smoothing
    )
    updater = Updater(task, settings, device=bench.device, compilation=Compilation(enabled=False))
    batch, step = full_rows(point).to(bench.device), count(1)

    def run() -> float:
        for _ in range(bench.options.updates):
            updater.update([batch], step=next(step), learning_rate=RATE)
        return bench.options.updates * point.rows * point.length

    return run


def full_rows(point: Point) -> PackedBatch:
    """Rows of one sentence each, so that the length of a row is that of the sentence."""
    shape = (point.rows, point.length)
    words = torch.randint(
        FIRST_WORD, point.size.vocab, (3, *shape), generator=torch_generator("growth", *shape)
    )
    ones, place = (
        torch.ones(shape, dtype=torch.int64),
        torch.arange(point.length).expand(shape).contiguous(),
    )
    return PackedBatch(
        source=words[0],
        source_segment=ones,
        source_position=place,
        target_input=words[1],
        target_output=words[2],
        target_segment=ones,
        target_position=place,
    )


def build_decoding(point: Point, *, bench: Bench) -> Run:
    """Greedy search that may not end early; the decoder is kept, as `Translator` keeps it, so that
    a GPU records its step only once."""
    model = build_ours(point.size).to(bench.device, choose_dtype("auto", bench.device)).eval()
    drawn = numpy_generator("growth", "sources").integers(
        FIRST_WORD, point.size.vocab, (point.rows, SOURCE_TOKENS)
    )
    settings = GreedySettings(max_length=point.length, min_length=point.length - 1)
    stepper = TransformerStepper(model)

    @torch.inference_mode()
    def run() -> float:
        decode(stepper, drawn.tolist(), settings)
        return point.rows * point.length

    return run


def measure_axis(mode: str, axis: Axis, *, bench: Bench) -> Growth:
    points = {value: axis.point(value) for value in axis.values}
    training = mode == "training"
    flops = {
        value: point.training_flops if training else point.decoding_flops
        for value, point in points.items()
    }
    contenders = [
        Contender(
            f"{axis.name} {value:,}",
            partial(build_training if training else build_decoding, point, bench=bench),
            flops[value] / bench.record["products, FLOP/s"],
        )
        for value, point in points.items()
    ]
    lines: list[Line] = list(
        bench.compare(
            f"{mode} against {axis.name}", contenders, unit="token", baseline=contenders[0].name
        ).values()
    )
    seconds = tuple(1 / line.rate for line in lines)
    return Growth(mode, axis.name, axis.values, seconds, tuple(flops.values()), axis.launches)


def report(found: Sequence[Growth]) -> None:
    rows = [
        (
            "time per token against",
            "sizes",
            "exponent",
            "last",
            "operations",
            "launches",
            "as expected",
        )
    ]
    for growth in found:
        numbers = [
            f"{n:+.2f}" for n in (growth.exponent, growth.last, growth.operations, growth.launches)
        ]
        sizes = f"{growth.values[0]:,}-{growth.values[-1]:,}"
        rows.append(
            (
                f"{growth.mode}, {growth.axis}",
                sizes,
                *numbers,
                "yes" if growth.is_expected else "NO",
            )
        )
    print_table(rows)


def draw(found: Sequence[Growth], path: Path) -> None:
    """One panel an axis, logarithmic both ways; the counts are laid through the largest size."""
    from matplotlib.figure import Figure

    modes = list(dict.fromkeys(growth.mode for growth in found))
    axes = list(dict.fromkeys(growth.axis for growth in found))
    figure = Figure(figsize=(3.4 * len(axes), 3 * len(modes)), layout="constrained")
    panels = figure.subplots(len(modes), len(axes), squeeze=False)
    for growth in found:
        panel = panels[modes.index(growth.mode), axes.index(growth.axis)]
        micro = np.array(growth.seconds) * 1e6
        panel.loglog(
            growth.values, micro, "o-", color="#1f5a8a", label=f"measured {growth.exponent:+.2f}"
        )
        counted = micro[-1] * np.array(growth.flops) / growth.flops[-1]
        panel.loglog(
            growth.values,
            counted,
            "--",
            color="#888888",
            label=f"operations {growth.operations:+.2f}",
        )
        launched = micro[-1] * (np.array(growth.values) / growth.values[-1]) ** growth.launches
        panel.loglog(
            growth.values, launched, ":", color="#888888", label=f"launches {growth.launches:+.2f}"
        )
        low, high = panel.get_ylim()
        widen = max(1.0, math.sqrt(MIN_RANGE * low / high))  # a flat line must look flat
        panel.set_ylim(low / widen, high * widen)
        panel.set_title(f"{growth.mode} against {growth.axis}", fontsize=10)
        panel.set_xticks(growth.values, [f"{value:,}" for value in growth.values], fontsize=7)
        panel.minorticks_off()
        panel.legend(fontsize=7)
    for row in panels:
        row[0].set_ylabel("µs per token")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    print(f"written: {path}")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument(
        "--mode", nargs="+", choices=("training", "decoding"), default=["training", "decoding"]
    )
    parser.add_argument(
        "--axis", nargs="+", choices=("length", "batch", "depth", "vocabulary"), default=None
    )
    parser.add_argument("--updates", type=int, help="updates a round (default: 1, on a GPU 5)")
    parser.add_argument(
        "--picture", help="PNG (default: beside the JSON, where matplotlib is installed)"
    )
    options = parser.parse_args(arguments)
    bench = Bench("growth", options)
    on_gpu = bench.device.type == "cuda"
    options.updates = options.updates or (5 if on_gpu else 1)
    size = SIZES["base" if on_gpu else "tiny" if options.quick else "pocket"]
    size, tokens, longest = replace(size, layers=2), 2048, 512
    if on_gpu:
        tokens, longest = 16384, 4096
    if options.quick:
        options.rounds, tokens, longest = 1, 64, 64
    dtype = choose_dtype("auto", bench.device)
    bench.measure_ceiling(
        "products, FLOP/s", partial(product_speed, bench.device, dtype, quick=options.quick)
    )
    axes = {
        "training": training_axes(size, tokens=tokens, longest=longest),
        "decoding": decoding_axes(size, rows=4 if options.quick else 16, longest=longest // 4),
    }
    wanted = options.axis or [axis.name for axis in axes["training"]]
    found = [
        measure_axis(mode, axis, bench=bench)
        for mode in options.mode
        for axis in axes[mode]
        if axis.name in wanted
    ]
    report(found)
    bench.record["growth"] = [growth.as_dict() for growth in found]
    written = bench.save()
    if options.picture or not options.quick:
        draw(found, Path(options.picture) if options.picture else written.with_suffix(".png"))


if __name__ == "__main__":
    main()
