"""ListOps with every attention kernel at the same budget: accuracy on 2,000 test expressions of 500
to 2,000 tokens.

    python benchmarks/bench_listops.py [--device cuda] [--kinds fused,window] [--jobs 5]
        [--steps 5000] [--json FILE]

Measured: the share of right answers, with every kernel in the same small encoder. The rules of the
data are those of Long Range Arena (Tay et al. 2021; listops.py beside this file has them), the
setting is smaller than theirs (4 layers, d 128, 2 heads, MLP 512, batch 32, 5,000 steps,
first-token pooling; theirs d 512, 8 heads, MLP 1,024): published for theirs are Transformer 36.4,
Local 15.8, Longformer 35.6, BigBird 36.1, Linformer 35.7, Reformer 37.3, Performer 18.0, Linear
16.1. About 17 % is what naming the most frequent answer gives: a kernel there has not learnt.

The floor is a share here, those 17 %. Every kernel trains in a process of its own, `--jobs` at a
time (they share the device, so seconds are not those of a run alone), on the same expressions in
the same order. Data is made once and kept (about a minute on one core). Settings restrict: a window
of 64 + 64 among up to 2,000, and the defaults of the other kernels with their limits set to the
length.
"""

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from harness import RESULTS, Bench, make_parser, print_table
from listops import NUM_CLASSES, VOCABULARY_SIZE, ListOps, generate
from listops_classifier import Classifier, ClassifierSettings, build_classifier

from headwise.comparing.attention import known_kernels, suited
from headwise.randomness import numpy_generator, torch_generator
from headwise.settings import check_settings
from headwise.training.precision import autocast

PARTS = {"train": 96_000, "valid": 2_000, "test": 2_000}
RESTRICTING: dict[str, dict[str, int]] = {
    "window": {"left": 64, "right": 64},
    "longformer": {"width": 128},
    "linformer": {"rank": 128},
}
LENGTH = 2048
"""Rows of the model: the longest expression has 1,999 tokens, and blocks and chunks divide this."""
SEED = 1


def read_data(folder: Path, *, quick: bool) -> dict[str, ListOps]:
    """Made once; the parts have different keys, and a longer train part begins with a shorter
    one."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for part, count in PARTS.items():
        count = 64 if quick else count
        path = folder / f"{part}-{count}.npz"
        if not path.exists():
            began = time.perf_counter()
            made = folder / f"{part}-{count}.making.npz"
            generate(count, seed=SEED, part=part).save(made)
            made.rename(path)
            print(
                f"made {count:,} expressions ({part}) in {time.perf_counter() - began:.0f} s",
                flush=True,
            )
        found[part] = ListOps.load(path)
    return found


def settings_of(kind: str, options: Any) -> ClassifierSettings:
    attention = suited(known_kernels()[kind], LENGTH).model_copy(update=RESTRICTING.get(kind, {}))
    data = {
        "dim": options.dim,
        "layers": options.layers,
        "heads": options.heads,
        "dropout": options.dropout,
    }
    data["feed_forward"] = {"kind": "gelu", "hidden": 4 * options.dim}
    return check_settings(ClassifierSettings, data).model_copy(update={"attention": attention})


def accuracy(
    model: Any, data: ListOps, device: torch.device, *, batch: int, dtype: torch.dtype
) -> float:
    right = 0
    with torch.no_grad():
        for start in range(0, len(data), batch):
            # The last batch is filled up: shapes stay.
            numbers = np.arange(start, start + batch) % len(data)
            rows = torch.from_numpy(data.rows(numbers, LENGTH)).long().to(device)
            with autocast(device, dtype):
                said = model(rows).argmax(-1).cpu().numpy()
            count = min(batch, len(data) - start)
            right += int((said[:count] == data.values[numbers[:count]]).sum())
    return right / len(data)


def draw_order(num_examples: int, num_drawn: int) -> np.ndarray:
    """Numbers of training examples, one shuffled epoch after another."""
    order = numpy_generator(SEED, "listops order")
    epochs = -(-num_drawn // num_examples)
    return np.concatenate([order.permutation(num_examples) for _ in range(epochs)])


def train_one(kind: str, options: Any) -> dict[str, Any]:
    """Train one kernel and measure it; what a child process does."""
    device = torch.device(options.device)
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    data = read_data(Path(options.data), quick=options.quick)
    torch.manual_seed(SEED)  # dropout
    model: Classifier = build_classifier(
        settings_of(kind, options),
        vocabulary_size=VOCABULARY_SIZE,
        num_classes=NUM_CLASSES,
        generator=torch_generator(SEED, "listops weights"),
    ).to(device)
    run: Any = torch.compile(model, dynamic=False) if device.type == "cuda" else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.rate, weight_decay=0.01)
    steps, warmup = options.steps, max(1, options.steps // 10)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: min((step + 1) / warmup, 0.5 + 0.5 * np.cos(np.pi * min(1.0, step / steps))),
    )
    numbers = draw_order(len(data["train"]), steps * options.batch)
    began, curve, total = time.perf_counter(), [], torch.zeros((), device=device)
    every = max(1, steps // 10)
    redrawn = [(name, part) for name, part in model.named_modules() if hasattr(part, "before_step")]
    for step in range(steps):
        for name, part in redrawn:  # random features, as the training loop draws them
            part.before_step(step + 1, key=f"{SEED}/{name}")
        chosen = numbers[step * options.batch : (step + 1) * options.batch]
        rows, answers = (
            torch.from_numpy(table).long().to(device, non_blocking=True)
            for table in (data["train"].rows(chosen, LENGTH), data["train"].values[chosen])
        )
        with autocast(device, dtype):
            loss = F.cross_entropy(run(rows).float(), answers)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        total += loss.detach()
        if (step + 1) % every == 0:
            model.eval()
            valid = accuracy(run, data["valid"], device, batch=options.batch, dtype=dtype)
            model.train()
            curve.append((step + 1, total.item() / every, valid, time.perf_counter() - began))
            total.zero_()
            print(
                f"{kind}: step {step + 1}, loss {curve[-1][1]:.3f}, valid {100 * valid:.1f} %",
                flush=True,
            )
    model.eval()
    test = accuracy(run, data["test"], device, batch=options.batch, dtype=dtype)
    return {
        "kind": kind,
        "settings": settings_of(kind, options).attention.model_dump(),
        "test": test,
        "seconds": time.perf_counter() - began,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "memory_mib": torch.cuda.max_memory_allocated() / 2**20 if device.type == "cuda" else None,
        "curve": curve,
    }


def run_children(
    kinds: Sequence[str], given: Sequence[str], options: Any, folder: Path
) -> list[dict[str, Any]]:
    """A process a kernel, a few at a time; one that fails is told of and does not stop the
    others."""
    waiting, working, found = list(kinds), {}, {}
    while waiting or working:
        while waiting and len(working) < options.jobs:
            kind = waiting.pop(0)
            output = folder / f"listops-{kind}.json"
            output.unlink(missing_ok=True)
            command = [sys.executable, __file__, *given, "--only", kind, "--json", str(output)]
            working[kind] = subprocess.Popen(command)
        time.sleep(0.5)
        for kind, process in list(working.items()):
            if process.poll() is not None:
                del working[kind]
                output = folder / f"listops-{kind}.json"
                found[kind] = (
                    json.loads(output.read_text(encoding="utf-8"))
                    if output.exists()
                    else {"kind": kind, "failed": f"exit status {process.returncode}"}
                )
    return [found[kind] for kind in kinds]


def main(arguments: Sequence[str] | None = None) -> None:
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = make_parser(__doc__)
    kinds = [kind for kind in known_kernels() if kind != "full"]
    parser.add_argument(
        "--kinds", default=",".join(kinds), help="kernels (full is fused, more slowly)"
    )
    parser.add_argument("--only", help="train this kernel in this process")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--steps", type=int, help="default: 5,000 on a GPU; 10 on a CPU, which shows that it runs"
    )
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--heads", type=int, default=2)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument(
        "--data", default=str(RESULTS / "listops"), help="where the expressions are kept"
    )
    options = parser.parse_args(given)
    options.steps = options.steps or (5000 if options.device == "cuda" else 10)
    if options.quick:
        options.steps, options.batch, options.dim, options.layers = 2, 2, 16, 1
        options.kinds = ",".join(options.kinds.split(",")[:2])
    if options.only:
        torch.set_num_threads(options.threads)
        result = train_one(options.only, options)
        Path(options.output).write_text(json.dumps(result), encoding="utf-8")
        return
    bench = Bench("listops", options)
    read_data(Path(options.data), quick=options.quick)
    folder = Path(options.output).parent if options.output else RESULTS
    results = run_children(options.kinds.split(","), given, options, folder)
    bench.record["options"] = {key: value for key, value in vars(options).items() if key != "only"}
    bench.record["results"] = results
    rows = [("kernel", "test accuracy", "best valid", "seconds", "peak MiB", "parameters")]
    for result in results:
        if "failed" in result:
            rows.append((result["kind"], result["failed"], "", "", "", ""))
            continue
        memory = "" if result["memory_mib"] is None else f"{result['memory_mib']:.0f}"
        best = max((point[2] for point in result["curve"]), default=0.0)
        accuracies = (f"{100 * result['test']:.1f} %", f"{100 * best:.1f} %")
        rows.append(
            (
                result["kind"],
                *accuracies,
                f"{result['seconds']:.0f}",
                memory,
                f"{result['parameters']:,}",
            )
        )
    print_table(rows)
    bench.save()


if __name__ == "__main__":
    main()
