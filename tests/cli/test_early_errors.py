"""A mistake is answered before torch is loaded: a wrong option, a missing model, recipe or text, a
model of another task, options that do not go together, a wrong key or value of a recipe."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from headwise.cli.main import COMMANDS
from tests.cli.named_tasks import name_task

# Each command line in a process of its own, forked from one that has answered three mistakes: what
# every answer needs is loaded once, and anything heavy among it would be found in each of them.
SCRIPT = """
import contextlib, io, json, os, sys
from headwise.cli.main import main
for words in ("train pocket trainin.steps=3 --run new", "serve nowhere", "describe pockte"):
    with contextlib.redirect_stderr(io.StringIO()), contextlib.suppress(SystemExit):
        main(words.split())
for words in json.load(sys.stdin):
    said = io.StringIO()
    if os.fork() == 0:
        try:
            with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
                status = main(words)
        except SystemExit as stop:
            status = stop.code
        large = ("torch", "sentencepiece", "matplotlib.pyplot")
        heavy = [name for name in large if name in sys.modules]
        os.write(1, (json.dumps([words, status, heavy, said.getvalue()]) + "\\n").encode())
        os._exit(0)
    os.wait()
"""
MISSING = "nowhere"
MODELS = {
    "model": "translation",
    "language": "language_modeling",
    "labels": "classification",
    "words": "word_vectors",
    "masked": "masked_language",
}
CASES: dict[str, list[list[str]]] = {
    "demo": [["--run", "text/run"], ["--pair", "en-en"]],
    "plan": [
        [MISSING],
        ["pockte"],
        ["pocket", "training.steps"],
        ["pocket", "trainin.steps=3"],
        ["pocket", "model.feed_forward.kind=swiglu"],
    ],
    "train": [
        [MISSING, "--run", "new"],
        ["pockte", "--run", "new"],
        ["pocket"],
        ["pocket", "--resume"],
        ["pocket", "training.steps", "--run", "new"],
        ["pocket", "--run", "text/run"],
        ["pocket", "--run", "new", "--steps", "20"],
        ["pocket", "--run", "new", "training.steps=abc"],
        ["pocket", "--run", "new", "model.norm.kind=rmss", "trainin.steps=3"],
        ["pocket", "--run", "new", "data.train=no/train"],
        ["pocket", "--check", "data.train=no/train", "data.valid=no/valid"],
    ],
    "compare": [
        [MISSING, "a=1,2", "--directory", "new"],
        ["pocket", "--directory", "new", "--kinds", "full"],
        ["attention", "--directory", "new", "--lengths", "many"],
        ["lineage", "--directory", "new", "--jobs", "2"],
        ["pocket", "model.dim=8,16"],
        ["parallel", MISSING],
        ["parallel", "words"],
        ["parallel", "model", "--batches", "0"],
        ["parallel", "model", "--source", "text"],
        ["parallel", "model", "--directory", "new"],
    ],
    "distil": [
        [MISSING, "--output", "new"],
        ["labels", "--output", "new"],
        ["model"],
        ["model", "--output", "text/new"],
        ["model", "--output", "new", "--data", "pockte"],
        ["model", "--output", "new", "--data", "pocket", "--source", "text"],
        ["model", "--output", "new", "--source", MISSING],
        ["model", "--output", "new", "--source", "bad"],
        ["model", "--output", "new", "--source", "text", "--mode", "closest"],
    ],
    "adapt": [
        [MISSING, "--data", "text", "--run", "new"],
        ["labels", "--data", "text", "--run", "new"],
        ["model", "--data", "text"],
        ["model", "--run", "new"],
    ],
    "memory": [
        ["build", MISSING, "--output", "new", "text"],
        ["build", "labels", "--output", "new", "text"],
        ["build", "model", "text"],
        ["build", "model", "--output", "new"],
        ["describe", MISSING],
        ["add", "text", "text"],
        ["tune", "model", "text", "--predictions", "0"],
    ],
    "import": [[MISSING, "new"], ["text", "new"], ["empty", "text"]],
    "translate": [
        ["--model", MISSING, "text"],
        ["--model", "words", "text"],
        ["--model", "model", MISSING],
        ["--model", "model", "bad"],
        ["--model", "model", "text", "--text", "a"],
        ["--model", "model", "text", "--attention", "x.txt"],
    ],
    "explore": [[MISSING], ["masked"], ["a b=model"]],
    "serve": [[MISSING], ["masked"], ["model", "--keys", MISSING], ["model", "--runs", MISSING]],
    "key": [["alice", "--keys", "text/keys"], ["no name", "--keys", "new"]],
    "evaluate": [
        ["--model", MISSING, "--source", "text", "--reference", "text"],
        ["--model", "words", "--source", "text", "--reference", "text"],
        ["--model", "model", "--source", MISSING, "--reference", "text"],
        ["--model", "model", "--source", "text", "--reference", MISSING],
        ["--model", "model", "--source", "text", "--reference", "text", "--output", "text"],
        ["--reference", "text"],
        ["--model", "model", "--reference", "text"],
    ],
    "exposure": [
        [MISSING, "--source", "text", "--reference", "text"],
        ["words", "--source", "text", "--reference", "text"],
    ],
    "export": [
        [MISSING, "new"],
        ["model", "text"],
        ["words", "new"],
        ["model", "new", "--probes", MISSING],
    ],
    "attend": [["--keys", "1"], ["--example", "waist", "--plot", "x.txt"]],
    "score": [
        ["--model", MISSING, "a"],
        ["--model", "m.arpa", "a"],
        ["--model", "language", "--file", MISSING],
        ["--model", "model", "a"],
    ],
    "predict": [
        ["--model", MISSING, "a"],
        ["--model", "language", "--file", MISSING],
        ["--model", "model", "a"],
        ["--model", "language", "a", "--file", "b"],
    ],
    "generate": [["--model", MISSING, "a"], ["--model", "labels", "a"]],
    "classify": [
        ["--model", MISSING, "a"],
        ["--model", "labels", "--file", MISSING],
        ["--model", "language", "a"],
    ],
    "tag": [
        ["--model", MISSING, "a"],
        ["--model", "labels", "a"],
        ["--model", "model", "a", "--file", "text"],
    ],
    "arpa": [
        [MISSING, "new.arpa"],
        ["model", "new.arpa"],
        ["language", "text"],
        ["language", "new.txt"],
    ],
    "nearest": [
        ["a", "--model", MISSING],
        ["a", "--model", "model"],
        ["a", "--model", "words", "--plot", "x.txt"],
    ],
    "vectors": [
        ["score", "--model", MISSING, "text"],
        ["score", "--model", "words", MISSING],
        ["score", "--model", "model", "text"],
        ["export", "--model", "words", "text"],
        ["import", MISSING, "--to", "new"],
    ],
    "senses": [
        ["--model", MISSING],
        ["--model", "model"],
        ["--model", "words", "--train", MISSING],
        ["--model", "words", "--plot", "x.txt"],
    ],
    "rerank": [
        ["text", "--channel", MISSING, "--weight", "channel=1"],
        [MISSING, "--channel", "model", "--weight", "channel=1"],
        ["text"],
    ],
    "describe": [[MISSING], ["pockte"], ["empty"]],
    "doctor": [[MISSING]],
    "data": [["fetch", "mult30k"], ["check", MISSING]],
    "recipes": [[MISSING]],
    "schema": [[MISSING]],
}


@pytest.fixture(name="answers", scope="module")
def _answers(
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, list[tuple[list[str], object, list[str], str]]]:
    folder = tmp_path_factory.mktemp("early")
    (folder / "text").write_text("a\n", encoding="utf-8")
    (folder / "bad").write_bytes(b"\xff\n")
    (folder / "empty").mkdir()
    for name, task in MODELS.items():
        name_task(folder / name, task)
    lines = [
        [command, *words]
        for command, cases in CASES.items()
        for words in [*cases, ["--wrong-option"]]
    ]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        input=json.dumps(lines),
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=300,
        check=True,
        env={**os.environ, "LC_ALL": "C.UTF-8", "HEADWISE_DATA": str(folder / "known")},
    )
    found: dict[str, list[tuple[list[str], object, list[str], str]]] = {
        command: [] for command in CASES
    }
    for line in done.stdout.splitlines():
        words, status, heavy, said = json.loads(line)
        found[words[0]].append((words, status, heavy, said))
    assert sum(map(len, found.values())) == len(lines)
    assert sorted(path.name for path in Path(folder).iterdir()) == sorted(
        ["bad", "empty", "text", *MODELS]
    )
    return found


def test_every_command_is_looked_at() -> None:
    assert set(CASES) == set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_mistake_is_answered_before_anything_heavy_is_loaded(command: str, answers: dict) -> None:
    for words, status, heavy, said in answers[command]:
        assert status in (2, 3), (words, said)
        assert heavy == [], (words, said)
