"""Draft and verify beside plain greedy search: speed, and tokens per step, by drafter and batch.

    python benchmarks/bench_drafting.py --model runs/with-heads [--source test.en]
        [--batches 1 32] [--blocks 2 4] [--sentences 96] [--precision fp32]
    python benchmarks/bench_drafting.py --size base    what a round costs, without a model

Measured: search alone over encoded sources, from the first to the last token, with the same batches
for all. Before the clock starts, outputs are compared with greedy search: in fp32 all are equal.

Without --model the weights are random, and a drafter that knows the output has all its drafts
accepted: the ceiling of a block of k. A round then costs (k + 1) / speed-up steps of greedy search.

    speed-up = tokens per step / what a round costs, in steps of greedy search

The floor of a round is one step of greedy search: a step reads all weights once, and so does a
round, whatever its block. A round of a batch that keeps the processor busy costs k + 1 steps.
Bars with heads on a trained model, on a CPU: batch 1 ≥ 1.6 ×, batch 32 ≥ 1.2 ×; Jacobi ≥ 1.1 ×.
Dated numbers: docs/experiments/decoding-speed.md.
"""

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from harness import Bench, Contender, Run, make_parser
from sizes import SIZES, build_ours
from synthetic import draw_pairs

from headwise.decoding.choices import DraftedSettings, GreedySettings, make_generator
from headwise.decoding.drafting.block_rules import make_rules
from headwise.decoding.drafting.protocol import DraftedRow
from headwise.decoding.drafting.rounds import run_rounds
from headwise.decoding.generation_settings import GenerationSettings
from headwise.decoding.generator import NO_WATCHER
from headwise.decoding.results import SearchResult
from headwise.decoding.rules.constraints import SentenceRules
from headwise.models.inference import choose_form, exchange
from headwise.models.steppers import ModelSteppers
from headwise.tasks.text_input import read_text_lines
from headwise.tasks.translation.translator import Translator
from headwise.text.tokenizer import EOS

NEW_TOKENS = 25
DRAFTERS = ("jacobi", "ngram", "heads")

Sources = Sequence[Sequence[int]]


class KnowingDrafter:
    """Drafts what greedy search writes."""

    def __init__(self, outputs: Sequence[Sequence[int]]) -> None:
        self.outputs = outputs

    def draft(self, rows: Sequence[DraftedRow], count: int) -> Sequence[Sequence[int]]:
        return [self.outputs[row.number][len(row.tokens) :][:count] for row in rows]


@torch.inference_mode()
def search(
    steppers: ModelSteppers, settings: GenerationSettings, sources: Sources, *, batch: int
) -> list[SearchResult]:
    """All sources, `batch` at a time."""
    generator, rules = make_generator(settings, steppers), SentenceRules()
    return [
        result
        for first in range(0, len(sources), batch)
        for result in generator.generate(sources[first : first + batch], settings, rules)
    ]


@torch.inference_mode()
def search_knowing(
    steppers: ModelSteppers,
    settings: DraftedSettings,
    sources: Sources,
    outputs: Sequence[Sequence[int]],
    *,
    batch: int,
) -> list[SearchResult]:
    """The same rounds with a drafter that knows the output."""
    found: list[SearchResult] = []
    stepper: Any = steppers.stepper(attending=False)
    for first in range(0, len(sources), batch):
        here = sources[first : first + batch]
        rows = [DraftedRow(number, source, NEW_TOKENS) for number, source in enumerate(here)]
        verifier = stepper.make_verifier(here, max_length=NEW_TOKENS, block=settings.block + 1)
        found += run_rounds(
            verifier,
            KnowingDrafter(outputs[first : first + batch]),
            rows,
            rules=make_rules(settings, [SentenceRules()] * len(rows), rows, verifier.device),
            accept=settings.accept,
            block=settings.block,
            watcher=NO_WATCHER,
        )
    return found


def written(result: SearchResult) -> list[int]:
    return [*result.best.tokens, *[EOS] * result.best.finished]


def tokens_per_step(results: Sequence[SearchResult]) -> float:
    steps = sum(result.num_steps or 0 for result in results)
    return sum(len(written(result)) for result in results) / steps


def as_run(ways: dict[str, partial[list[SearchResult]]], name: str) -> Run:
    return lambda: float(len(ways[name]()))


def compare(bench: Bench, title: str, ways: dict[str, partial[list[SearchResult]]]) -> None:
    """Equality and tokens per step first, then the clock."""
    expected = [written(result) for result in ways["greedy"]()]
    for name, way in ways.items():
        if name != "greedy":
            results = way()
            same = sum(written(a) == b for a, b in zip(results, expected, strict=True))
            bench.note(f"same outputs, {title}, {name}", f"{same} of {len(expected)}")
            bench.note(f"tokens per step, {title}, {name}", tokens_per_step(results))
    contenders = [Contender(name, partial(as_run, ways, name)) for name in ways]
    bench.compare(title, contenders, unit="sentence", baseline="greedy")


def ways_of_a_model(
    translator: Translator, sources: Sources, *, batch: int, blocks: Sequence[int]
) -> dict[str, partial[list[SearchResult]]]:
    steppers = translator.offer
    assert isinstance(steppers, ModelSteppers)
    greedy = translator.settings(["kind=greedy"])
    ways = {"greedy": partial(search, steppers, greedy, sources, batch=batch)}
    stepper: Any = steppers.stepper(attending=False)
    for drafter in DRAFTERS:
        for block in blocks:
            if drafter == "heads" and stepper.num_draft_heads < block:
                continue
            changes = ["kind=drafted", f"drafter.kind={drafter}", f"block={block}"]
            settings = translator.settings(changes)
            ways[f"{drafter}, block {block}"] = partial(
                search, steppers, settings, sources, batch=batch
            )
    return ways


def ways_of_a_size(
    options: argparse.Namespace, *, batch: int
) -> dict[str, partial[list[SearchResult]]]:
    size = SIZES[options.size]
    model = build_ours(size).to(options.device).eval()
    form = choose_form(options.precision, torch.device(options.device))
    steppers = ModelSteppers(exchange(model, form))
    sources = draw_pairs(max(batch, options.sentences // 8), vocab=size.vocab).sources
    limits: dict[str, Any] = {"max_length": NEW_TOKENS, "min_length": NEW_TOKENS - 1}
    greedy = partial(search, steppers, GreedySettings(**limits), sources, batch=batch)
    outputs = [written(result) for result in greedy()]
    ways = {"greedy": greedy}
    for block in options.blocks:
        settings = DraftedSettings(block=block, **limits)
        ways[f"knowing, block {block}"] = partial(
            search_knowing, steppers, settings, sources, outputs, batch=batch
        )
    return ways


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--model", type=Path, help="a translator; without it, random weights")
    parser.add_argument("--source", type=Path, help="its text; without it, the pocket test set")
    parser.add_argument("--size", choices=sorted(SIZES), default="base")
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 32])
    parser.add_argument("--blocks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--sentences", type=int, default=96)
    parser.add_argument("--precision", choices=("fp32", "bf16", "int8"), default="fp32")
    options = parser.parse_args(arguments)
    if options.quick:
        options.size, options.batches, options.blocks = "tiny", [1, 3], [2]
        options.sentences, options.rounds = 16, 1
    bench = Bench("drafting", options)
    for batch in options.batches:
        if options.model is None:
            compare(bench, f"{options.size}, batch {batch}", ways_of_a_size(options, batch=batch))
            continue
        translator = Translator.load(
            options.model, device=options.device, precision=options.precision
        )
        sources = read_sources(translator, options)
        ways = ways_of_a_model(translator, sources, batch=batch, blocks=options.blocks)
        compare(bench, f"{options.model.name}, batch {batch}", ways)
    bench.save()


def read_sources(translator: Translator, options: argparse.Namespace) -> Sources:
    """The sentences to translate; the clock starts behind the tokenizer."""
    if options.source is not None:
        texts = list(read_text_lines(options.source))[: options.sentences]
    else:
        from headwise.pocket import sentences

        language = translator.source_language
        texts = [one.text(language) for one in sentences("test", options.sentences)]
    return [ids for ids in map(translator.encode, texts) if ids]


if __name__ == "__main__":
    main()
