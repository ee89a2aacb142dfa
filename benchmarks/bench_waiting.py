"""How threads wait for each other: OMP_WAIT_POLICY, on an idle machine and beside busy programs
(docs/decisions/13).

    python benchmarks/bench_waiting.py [--size pocket] [--steps 10] [--busy 2]

Measured: training steps of our model (forward, loss, backward, AdamW) on one batch in fp32, target
tokens a second, in one process for each policy, since the policy is read when torch is loaded:

    default    a thread that has finished spins a while, then sleeps
    active     it spins for ever
    passive    it sleeps at once: what the command line sets

Then the same beside `--busy` processes that only count; those take turns with every policy alike.

The floor: the work is the same under all policies, and on an idle machine they differ by a few per
cent. Beside N busy processes on C cores a fair share is C / (C + N) of the idle rate for threads
that never wait, so a rate far below that is time lost in waiting. How far we are: docs/decisions/13
and docs/experiments/serving.md.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from functools import partial

POLICIES = ("default", "active", "passive")
BATCH = (8, 64)


def serve(size_name: str, num_steps: int) -> None:
    """The measured process: for each line that comes, `num_steps` training steps, answered by the
    number of tokens."""
    import harness  # noqa: F401 - finds the package
    import torch
    from sizes import SIZES, build_ours

    from headwise.randomness import torch_generator
    from headwise.training.losses import cross_entropy

    model = build_ours(SIZES[size_name]).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    generator = torch_generator("benchmark", "waiting")
    source, target = (
        torch.randint(4, SIZES[size_name].vocab, BATCH, generator=generator) for _ in range(2)
    )
    position = torch.arange(BATCH[1]).expand(BATCH)
    segments = {
        "source_segment": torch.ones_like(source),
        "target_segment": torch.ones_like(target),
    }
    for _ in sys.stdin:
        for _ in range(num_steps):
            hidden = model(
                source, target, **segments, source_position=position, target_position=position
            )
            sums = cross_entropy(
                hidden.flatten(0, 1), model.output.weight, targets=target.flatten(), smoothing=0.1
            )
            sums.loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        print(num_steps * target.numel(), flush=True)


def start(policy: str, options: argparse.Namespace) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    environment["OMP_NUM_THREADS"] = str(options.threads)
    if policy != "default":
        environment["OMP_WAIT_POLICY"] = policy
    command = [sys.executable, __file__, "--serve", options.size, str(options.steps)]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, encoding="utf-8"
    )


def ask(process: subprocess.Popen[str]) -> float:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("go\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def main(arguments: Sequence[str] | None = None) -> None:
    from harness import COMPANIONS, Bench, Contender, make_parser
    from sizes import SIZES

    parser = make_parser(__doc__)
    parser.add_argument("--size", choices=sorted(SIZES), default="pocket")
    parser.add_argument("--steps", type=int, default=10, help="training steps in a round")
    parser.add_argument("--busy", type=int, default=2, help="busy processes in the second table")
    options = parser.parse_args(arguments)
    if options.quick:
        options.size, options.steps, options.rounds = "tiny", 1, 1
    bench = Bench("waiting", options)
    servers = {policy: start(policy, options) for policy in POLICIES}
    busy: list[subprocess.Popen] = []
    COMPANIONS.extend(server.pid for server in servers.values())
    try:
        contenders = [
            Contender(policy, lambda server=server: partial(ask, server))
            for policy, server in servers.items()
        ]
        bench.compare(f"{options.size}, idle machine", contenders, unit="token", baseline="default")
        busy = [
            subprocess.Popen([sys.executable, "-c", "while True: pass"])
            for _ in range(options.busy)
        ]
        COMPANIONS.extend(process.pid for process in busy)
        title = f"{options.size}, beside {options.busy} busy processes"
        bench.compare(title, contenders, unit="token", baseline="default")
    finally:
        COMPANIONS.clear()
        for process in (*servers.values(), *busy):
            process.kill()
            process.communicate()  # waits, and closes the pipes
    bench.save()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2], int(sys.argv[3]))
    else:
        main()
