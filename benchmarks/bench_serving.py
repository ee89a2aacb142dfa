"""The server against `headwise translate` on the same sentences: what HTTP, queues and joined
batches cost.

    python benchmarks/bench_serving.py [--model runs/demo] [--sentences 1024]
        [--requests 20000] [--threads 1]

Measured: sentences a second, in rounds, of (1) the translator itself in a process of its own, which
sorts the whole file by length and fills every batch, and (2) a server process asked by 64 clients
at once over keep-alive connections, one sentence a request and eight; the clients are one more
process (this one). Then, of the server: times of requests at 8 clients (p50, p99), statuses at 256
clients, the longest stall of its event loop, and its memory before and after `--requests` requests.
Without --model the model is base-size with random weights and pieces of the pocket corpus (its
outputs go to the length limit, which is set to the source's).

The floor: the sentences must be computed, so (1) is the ceiling of (2). The model computes in one
process with T threads, HTTP and the clients in two others, so with C cores they leave at most
min(1, (C - T) / (rate · h)) of the rate for h seconds of Python a request and client (0.75 + 0.1
ms: 1.0 for the demo's model on two cores with one thread). What the model itself loses: sentences
of all lengths enter a search in groups, m' = 1.13 ms of processor time instead of m = 1.01 (demo),
26.8 instead of 24.0 (base), so 0.89 in both; and the f of 64 clients who are being answered or on
their way are missing from its rows, of which a step's fixed cost (a quarter of it for the demo's
model) is not spared. p99 cannot be below the time of the longest sentence. How far we are:
docs/experiments/serving.md.
"""

import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from harness import COMPANIONS, ROOT, Bench, Contender, make_parser

CLIENTS, FEW_CLIENTS, MANY_CLIENTS, GROUP = 64, 8, 256, 8


def make_random_bundle(directory: Path, size: str) -> Path:
    """A translator that knows nothing, of a recipe's real size but for its vocabulary (1,000 pieces
    of the pocket corpus)."""
    from made_data import save_untrained

    from headwise.models.choices import build_model
    from headwise.pocket import sentences
    from headwise.randomness import torch_generator
    from headwise.tasks.recipe import load_translation_recipe
    from headwise.text.choices import learn_tokenizers

    lines = list(sentences("train", 2_000))
    changes = [
        "data.source=en",
        "data.target=de",
        "text={kind: sentencepiece, size: 1000}",
        "decoding={kind: greedy, max_length: {factor: 1.0, extra: 2}}",
    ]
    recipe = load_translation_recipe(size, changes)
    pair = learn_tokenizers(
        recipe.text, [one.text("en") for one in lines], [one.text("de") for one in lines]
    )
    sizes = {"source_size": pair.source.size, "target_size": pair.target.size}
    model = build_model(
        recipe.model, generator=torch_generator("benchmark", "weights"), **sizes
    ).eval()
    save_untrained(directory, recipe=recipe, tokenizers=pair, model=model, results={})
    return directory


def translate_forever(model: str, num_sentences: int) -> None:
    """The measured process (1): for each line that comes, all sentences once."""
    from headwise.tasks.translation.translator import Translator

    translator = Translator.load(model, device="cpu")
    texts = pocket_texts(num_sentences)
    for _ in sys.stdin:
        for _ in translator.stream(texts):
            pass
        print(len(texts), flush=True)


def pocket_texts(count: int) -> list[str]:
    from headwise.pocket import sentences

    return [one.text("en") for one in sentences("test", count)]


def child_environment(threads: int) -> dict[str, str]:
    path = f"{ROOT / 'src'}{os.pathsep}{ROOT}"
    return {
        **os.environ,
        "PYTHONPATH": path,
        "OMP_NUM_THREADS": str(threads),
        "OMP_WAIT_POLICY": "PASSIVE",
        "LC_ALL": "C.UTF-8",
    }


class Served:
    """A server process and connections to it."""

    def __init__(self, model: str, options: argparse.Namespace) -> None:
        command = [
            sys.executable,
            "-m",
            "headwise",
            "serve",
            model,
            "--port",
            "0",
            "--device",
            "cpu",
        ]
        self.process = subprocess.Popen(
            command,
            stderr=subprocess.PIPE,
            env=child_environment(options.threads),
            encoding="utf-8",
        )
        assert self.process.stderr is not None
        for line in self.process.stderr:
            found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
            if found:
                self.port = int(found[1])
                break
        while asyncio.run(self.load([("GET", "/readyz", None)], clients=1))[0][0] != 200:
            time.sleep(0.1)

    async def load(
        self, requests: Sequence[tuple[str, str, object]], *, clients: int
    ) -> list[tuple[int, float, str]]:
        """Status, seconds and text of every request, sent by so many clients, each waiting for its
        answer."""
        waiting = list(enumerate(requests))[::-1]
        results: list[tuple[int, float, str]] = [(0, 0.0, "")] * len(requests)

        async def one() -> None:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            while waiting:
                place, (method, path, body) = waiting.pop()
                content = b"" if body is None else json.dumps(body).encode()
                head = (
                    f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                    f"application/json\r\nContent-Length: {len(content)}\r\n\r\n"
                )
                began = time.perf_counter()
                writer.write(head.encode() + content)
                answer = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = int(re.search(r"content-length: (\d+)", answer)[1])
                text = (await reader.readexactly(length)).decode()
                results[place] = (int(answer.split(" ", 2)[1]), time.perf_counter() - began, text)
            writer.close()

        await asyncio.gather(*(one() for _ in range(min(clients, len(requests)))))
        return results

    def ask(
        self, texts: Sequence[str], *, clients: int, group: int = 1
    ) -> list[tuple[int, float, str]]:
        cut = [list(texts[i : i + group]) for i in range(0, len(texts), group)]
        bodies = [("POST", "/v1/translate", {"text": one, "split": False}) for one in cut]
        return asyncio.run(self.load(bodies, clients=clients))

    def metric(self, name: str) -> float:
        text = asyncio.run(self.load([("GET", "/metrics", None)], clients=1))[0][2]
        return float(re.search(rf"^{name} (\S+)$", text, re.M)[1])


def examine(bench: Bench, model: str, options: argparse.Namespace) -> None:
    texts = pocket_texts(options.sentences)
    name = Path(model).name if options.model else f"{options.size}, random"
    command = [sys.executable, __file__, "--translate", model, str(options.sentences)]
    environment = child_environment(options.threads)
    alone = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, encoding="utf-8"
    )
    served = Served(model, options)
    COMPANIONS.extend((alone.pid, served.process.pid))

    def file() -> float:
        alone.stdin.write("go\n")
        alone.stdin.flush()
        return float(alone.stdout.readline())

    def clients(group: int) -> float:
        found = served.ask(texts, clients=CLIENTS, group=group)
        assert {status for status, _, _ in found} == {200}
        return float(len(texts))

    try:
        contenders = [
            Contender("translate", lambda: file),
            Contender(f"{CLIENTS} clients, 1 sentence each", lambda: lambda: clients(1)),
            Contender(f"{CLIENTS} clients, {GROUP} sentences each", lambda: lambda: clients(GROUP)),
        ]
        bench.compare(
            f"{name}, threads {options.threads}", contenders, unit="sentence", baseline="translate"
        )
        served.metric("headwise_event_loop_stall_seconds")
        times = sorted(seconds for _, seconds, _ in served.ask(texts, clients=FEW_CLIENTS))
        p50, p99 = statistics.median(times), times[int(0.99 * len(times))]
        bench.note(f"{name}: {FEW_CLIENTS} clients, p50 ms", 1000 * p50)
        bench.note(f"{name}: {FEW_CLIENTS} clients, p99 ms", 1000 * p99)
        bench.note(f"{name}: p99 / p50", p99 / p50)
        statuses = Counter(status for status, _, _ in served.ask(texts, clients=MANY_CLIENTS))
        bench.note(f"{name}: statuses at {MANY_CLIENTS} clients", str(dict(statuses)))
        bench.note(
            f"{name}: longest stall of the event loop, ms",
            1000 * served.metric("headwise_event_loop_stall_seconds"),
        )
        if options.requests:
            watch_memory(bench, served, texts, options.requests, name)
    finally:
        COMPANIONS.clear()
        for process in (alone, served.process):
            process.kill()
            process.communicate()


def watch_memory(bench: Bench, served: Served, texts: Sequence[str], count: int, name: str) -> None:
    """A tenth of the requests warms up, the rest must change nothing."""
    some = [texts[i % len(texts)] for i in range(count)]
    served.ask(some[: count // 10], clients=FEW_CLIENTS)
    before = served.metric("process_resident_memory_bytes")
    served.ask(some, clients=FEW_CLIENTS)
    after = served.metric("process_resident_memory_bytes")
    bench.note(f"{name}: MiB before", before / 2**20)
    bench.note(f"{name}: MiB after {count} requests", after / 2**20)
    bench.note(f"{name}: growth of memory", after / before - 1)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--model", help="a trained bundle, e.g. runs/demo")
    parser.add_argument(
        "--size", default="base", choices=("pocket", "base"), help="of the random model"
    )
    parser.add_argument("--sentences", type=int, default=256)
    parser.add_argument(
        "--requests", type=int, default=0, help="for the measurement of memory; 0 leaves it out"
    )
    options = parser.parse_args(arguments)
    if options.quick:
        options.sentences, options.rounds, options.size = 16, 1, "pocket"
    bench = Bench("serving", options)
    with tempfile.TemporaryDirectory() as directory:
        model = options.model or str(
            make_random_bundle(Path(directory) / options.size, options.size)
        )
        examine(bench, model, options)
    bench.save()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--translate"]:
        translate_forever(sys.argv[2], int(sys.argv[3]))
    else:
        main()
