"""What `headwise plan` predicts, and what training then takes: memory and speed, with the error in
per cent.

    python benchmarks/bench_plan.py [--cases tiny small base-4k base-25k]
        [--precision fp32 bf16] [--compile]

Measured: for each case a plan is made on this machine (its seconds of calibration included), then
the same model is really trained for a few updates on synthetic packed pairs, as `headwise train`
does it (Updater), and memory and target tokens a second are taken as the other benchmarks take them
(harness.py, planning/peak_memory.py). The bars: memory within 15 %, speed within 25 %.

The floor: there is none; a plan is right or wrong. How far we are:
docs/experiments/planning-and-data.md.
"""

import gc
import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass

from bench_training import pack
from harness import Bench, CpuWatch, make_parser, print_table, synchronize
from sizes import SIZES, Size
from synthetic import draw_pairs

from headwise.planning.peak_memory import MIB, MemoryMeter
from headwise.planning.plan import MARGIN_OF_MEMORY, MARGIN_OF_SPEED, Plan
from headwise.settings import check_settings
from headwise.tasks.planned_step import PlannedStep, find_vocabularies
from headwise.tasks.planner import plan_step as predict
from headwise.tasks.translation.losses import plan_step
from headwise.tasks.translation.objective import TranslationLoss
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.training.compilation import decide_compilation
from headwise.training.updates import Updater

WARM_UP = 5
"""Three plain updates and the recording of a graph come before the clock starts."""


@dataclass(frozen=True)
class Case:
    size: str
    tokens: int
    cuda_updates: int
    cpu_updates: int


CASES = {
    "quick": Case("tiny", 256, 4, 2),
    "pocket": Case("pocket", 2048, 40, 8),
    "tiny": Case("multi30k", 8192, 40, 3),
    "small": Case("small", 4096, 40, 3),
    "base-4k": Case("base", 4096, 40, 1),
    "base-25k": Case("base", 25600, 20, 1),
}
ALL_SIZES = SIZES | {"multi30k": Size(dim=128, heads=4, hidden=256, layers=4)}


def make_recipe(case: Case, precision: str, *, compiled: bool, device: str) -> TranslationRecipe:
    size = ALL_SIZES[case.size]
    stack = {"layers": size.layers, "heads": size.heads}
    return check_settings(
        TranslationRecipe,
        {
            "data": {
                "source": "en",
                "target": "de",
                "train": "pocket:train",
                "row_tokens": min(128, case.tokens),
            },
            "text": {"size": size.vocab},
            "model": {
                "dim": size.dim,
                "encoder": stack,
                "decoder": stack,
                "feed_forward": {"hidden": size.hidden},
            },
            "training": {
                "batch_tokens": case.tokens,
                "precision": precision,
                "compile": "on" if compiled else "off",
                "device": device,
            },
        },
    )


@dataclass(frozen=True)
class Measured:
    memory: float | None
    tokens_per_second: float
    disturbed: bool


def train(planned: PlannedStep, case: Case, bench: Bench) -> Measured:
    """Real updates of the planned model on the planned shape."""
    training = planned.training
    size = ALL_SIZES[case.size]
    pairs = draw_pairs(max(200, 2 * case.tokens // 10), vocab=size.vocab)
    updates = case.cuda_updates if bench.device.type == "cuda" else case.cpu_updates
    supply = [
        (batch.to(bench.device), batch.num_target_tokens)
        for batch in itertools.islice(pack(pairs, size, tokens=case.tokens), 4)
    ]
    # a recorded update and its tensors refer to each other: what the last case held goes only now
    gc.collect()
    meter = MemoryMeter(bench.device)
    meter.start_building()
    task = TranslationLoss(
        planned.build(planned.num_rows).to(bench.device).train(), training.objective.label_smoothing
    )
    compilation = decide_compilation(training, bench.device)
    updater = Updater(task, training, device=bench.device, compilation=compilation)
    endless, step = itertools.cycle(supply), itertools.count(1)

    def run(count: int) -> int:
        work = 0
        for batch, num_tokens in itertools.islice(endless, count):
            updater.update([batch], step=next(step), learning_rate=1e-4)
            work += num_tokens
        return work

    run(WARM_UP if bench.device.type == "cuda" else 1)
    memory = meter.peak_of(lambda: run(1))
    rates, watch = [], CpuWatch()
    watch.start()
    for _ in range(bench.options.rounds):
        synchronize(bench.device)
        began = time.perf_counter()
        work = run(updates)
        synchronize(bench.device)
        rates.append(work / (time.perf_counter() - began))
    share = watch.foreign_share()
    return Measured(memory, max(rates), share is not None and share > 0.04)


def row_of(name: str, plan: Plan, measured: Measured, seconds: float) -> tuple[str, ...]:
    speed = plan.speed(plan.update) / measured.tokens_per_second - 1
    cells = [f"{plan.memory.total / MIB:,.0f}"]
    if measured.memory is None:
        cells += ["–", "–"]
    else:
        error = plan.memory.total / MIB / measured.memory - 1
        cells += [
            f"{measured.memory:,.0f}",
            f"{error:+.0%}{'' if abs(error) <= MARGIN_OF_MEMORY else ' !'}",
        ]
    cells += [f"{plan.speed(plan.update):,.0f}", f"{measured.tokens_per_second:,.0f}"]
    cells += [f"{speed:+.0%}{'' if abs(speed) <= MARGIN_OF_SPEED else ' !'}", f"{seconds:.1f}"]
    return (name + (" *" if measured.disturbed else ""), *cells)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--cases", nargs="+", choices=sorted(CASES))
    parser.add_argument("--precision", nargs="+", choices=("fp32", "bf16"))
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args(arguments)
    bench = Bench("plan", options)
    cuda = bench.device.type == "cuda"
    cases = options.cases or (
        ["tiny", "small", "base-4k", "base-25k"] if cuda else ["pocket", "small", "base-4k"]
    )
    if options.quick:
        cases, options.rounds = ["quick"], 1
    head = ("MiB", "measured", "error", "token/s", "measured", "error", "planning s")
    rows: list[tuple[str, ...]] = [("case", *head)]
    for name, precision in itertools.product(
        cases, options.precision or (["bf16"] if cuda else ["fp32", "bf16"])
    ):
        case = CASES[name]
        recipe = make_recipe(case, precision, compiled=options.compile, device=bench.device.type)
        planned = plan_step(recipe, find_vocabularies(recipe.text.size, None))
        began = time.perf_counter()
        plan = predict(planned)
        seconds = time.perf_counter() - began
        measured = train(planned, case, bench)
        rows.append(
            row_of(
                f"{name} {precision}{' compiled' if options.compile else ''}",
                plan,
                measured,
                seconds,
            )
        )
        bench.record[rows[-1][0]] = {"plan": plan.as_dict(), "measured": vars(measured)}
        print("  ".join(rows[-1]), flush=True)
    print_table(rows)
    if any("*" in row[0] for row in rows):
        print("* other processes used more than 4% of the machine")
    bench.save()


if __name__ == "__main__":
    main()
