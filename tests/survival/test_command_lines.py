"""Bad command lines by the thousand: whatever is typed, the answer is a message and a status, and
what lies on disk stays as it was.

Half of the lines are drawn from a command's own options with values of every sort, half are good
lines with a few words changed, dropped, doubled or exchanged, which get much further in. Each runs
in this process with its output caught. What trains, serves or downloads ends where it would begin
to: after all that can be refused was looked at.
"""

import argparse
import contextlib
import io
import os
import random
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from headwise.cli.main import COMMANDS, build_parser, main
from headwise.cli.options.parser import find_leaf
from headwise.cli.options.paths import Output
from headwise.comparing.variants import plan_comparison
from headwise.errors import UsageError
from headwise.language import use_language
from headwise.tasks.recipe import load_recipe
from tests.tasks.tiny import train_tiny

FEW, MANY = 100, 6000
VALUES = (
    "", " ", "-", "--", "=", "x=", "=x", "a.b=c", "0", "-1", "1", "3", "1e999", "nan", "9" * 400,
    "1,2", "1,,2", "1;2", "x" * 300, "x" * 5000, "\0", "a\0b", "a\nb", "\u2028", "\udcff", "世界",
    "{", "[1", "{kind: x}", "!!python/object/apply:os.system [ls]", "&a [*a]", "*", "~", "~root",
    "/", "links/device", "/proc/self/mem", ".", "..", "../..", "text", "text/x", "links/text",
    "hard", "latin", "bytes.bin", "table.tsv", "packed.gz", "notpacked.gz", "missing",
    "missing/deep/x", "loop", "loop/x", "empty", "model", "run", "run/model", "run/model/new",
    "run/recipe.yaml", "run/model/weights.safetensors", "run/LATEST", "my.yaml", "bad.yaml",
    "m.arpa", "x.png", "x.svg", "x.html", "x.json", "out", "deep/er/out", "pocket", "base",
    "pockte", "known:", "known:multi30k", "known:multi30k/test", "known:x/y", "en-de", "en", "beam",
    "size=8", "kind=beam", "training.steps=3", "training.stepz=3", "model.norm.kind=layer,rms",
    "kind=greedy", "max_length=-1", "size=" + "9" * 30, "greedy", "attention", "lineage", "list",
    "fetch", "export", "cpu", "cuda", "int8", "zh", "localhost", "99999", "name=run", "=run",
    "The dog is old.", "the ____ dog", "--model", "--help",
)  # fmt: skip
GOOD = (
    "translate --model run text", "translate --model run/model --text a --n-best 2 --json",
    "translate --model run --checkpoint last --text a",
    "translate --model run text --attention out/a.html",
    "translate --model run --set kind=beam --set size=3 --text a --forbid b",
    "evaluate --model run --source text --reference text --output out/hyp",
    "evaluate --hypothesis text --reference text --against hard --json",
    "train pocket --run out data.train=text training.steps=3", "train --run run --resume",
    "train my.yaml --run out --check", "demo --pair en-de --run out",
    "compare pocket model.norm.kind=layer,rms --seeds 1,2 --directory out",
    "compare attention --lengths 8,16 --directory out", "describe run --length 3",
    "compare parallel run --batches 1,2 --plot x.png",
    "describe pocket model.dim=64 --json", "doctor run", "doctor run/model --json",
    "plan pocket --device cpu", "recipes pocket", "schema tagging", "data list --json",
    "data check", "data fetch multi30k", "export run out",
    "export run out --quantization int8 --probes text", "arpa run out.arpa",
    "score --model run a b", "score --model m.arpa --file text",
    "predict --model m.arpa the --top 3", "predict --model run --file text",
    "generate --model run a --length 3 --samples 2", "classify --model run --file text",
    "tag --model run a", "nearest a --model run --plot x.png", "vectors score --model run text",
    "vectors export --model run out.bin", "vectors import bytes.bin --to out",
    "senses --model run --train table.tsv --test table.tsv", "attend --example waist --json",
    "attend --keys 1,2 --values 3,4 --queries 1 --plot x.svg", "key alice --keys out/keys",
    "serve run --port 0", "distil run --source text --output out",
    "adapt run --data text --run out", "memory build run --output out text", "import empty out",
    "explore run --no-browser --port 0",
)  # fmt: skip


@pytest.fixture(name="scratch", scope="module")
def _scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of every sort, good and bad, and a finished run."""
    folder = tmp_path_factory.mktemp("lines")
    train_tiny(folder / "run")
    (folder / "text").write_text("The dog is old.\n\nThe cat sleeps.\n", encoding="utf-8")
    (folder / "latin").write_bytes("schön\n".encode("latin-1"))
    (folder / "bytes.bin").write_bytes(bytes(range(256)))
    (folder / "table.tsv").write_text(
        "bank\tmoney\t0\tbank notes\nbank\triver\t1\tthe bank\n", encoding="utf-8"
    )
    (folder / "notpacked.gz").write_bytes(b"not packed")
    (folder / "my.yaml").write_text(
        "task: translation\ndata: {source: en, target: de, train: text}\n", encoding="utf-8"
    )
    (folder / "bad.yaml").write_bytes(b"a: [\xff")
    (folder / "m.arpa").write_text(
        "\\data\\\nngram 1=3\n\n\\1-grams:\n-1\t<s>\n-1\t</s>\n-1\ta\n\n\\end\\\n", encoding="utf-8"
    )
    (folder / "empty").mkdir()
    (folder / "links").mkdir()
    (folder / "links" / "text").symlink_to("../text")
    # A link, so that a mistake of ours replaces no device.
    (folder / "links" / "device").symlink_to("/dev/null")
    os.link(folder / "text", folder / "hard")
    (folder / "loop").symlink_to("loop")
    return folder


def _snapshot(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): os.readlink(path).encode()
        if path.is_symlink()
        else path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


@pytest.fixture(autouse=True)
def _nothing_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work that takes minutes, or other machines, is refused where it would begin."""

    def stop(*arguments: Any, **options: Any) -> NoReturn:
        raise UsageError("the work would begin here", "工作从此处开始")

    def stop_after_recipe(
        recipe: Any, *arguments: Any, overrides: Any = (), **options: Any
    ) -> NoReturn:
        load_recipe(recipe, arguments[0] if arguments else overrides)
        stop()

    def stop_after_plan(
        words: Any, *, directory: Path, seeds: Any = (), **options: Any
    ) -> NoReturn:
        plan_comparison(words, seeds=seeds, directory=directory)
        stop()

    for place in (
        "demo.run_demo",
        "data.known.corpora.fetch_corpus",
        "comparing.attention.compare_attention",
        "comparing.lineage.compare_lineage",
        "comparing.parallel.compare_parallel",
        "exporting.export.export_translator",
        "serving.uvicorn_server.serve",
    ):
        monkeypatch.setattr(f"headwise.{place}", stop)
    for place in ("tasks.run.train", "tasks.run.check_run", "tasks.planner.plan_recipe"):
        monkeypatch.setattr(f"headwise.{place}", stop_after_recipe)
    monkeypatch.setattr("headwise.comparing.recipes.compare", stop_after_plan)
    monkeypatch.setattr("webbrowser.open", stop)


def _draw_line(draw: random.Random, parser: argparse.ArgumentParser) -> list[str]:
    """A command and some of its options, each with a value of any sort."""
    words = [draw.choice(COMMANDS)]
    leaf = find_leaf(parser, words)
    for action in leaf._actions:
        if isinstance(action, argparse._SubParsersAction):
            words.append(draw.choice([*action.choices, draw.choice(VALUES)]))
            leaf = find_leaf(parser, words)
    for action in draw.sample(leaf._actions, draw.randint(0, len(leaf._actions))):
        if "--help" in action.option_strings and draw.random() < 0.9:
            continue
        choices = [str(choice) for choice in action.choices or ()] * 3
        words += action.option_strings[-1:]
        if action.nargs != 0:
            words += [draw.choice([*choices, *VALUES]) for _ in range(draw.choice((1, 1, 1, 2)))]
    return words


def _change_line(draw: random.Random) -> list[str]:
    """A good line with at most three words changed; a quarter of the lines stay good."""
    words = draw.choice(GOOD).split()
    for _ in range(draw.randint(0, 3)):
        place = draw.randrange(len(words))
        match draw.randrange(6):
            case 0:
                words[place] = draw.choice(VALUES)
            case 1:
                words.insert(place, draw.choice(VALUES))
            case 2 if len(words) > 1:
                del words[place]
            case 3:
                words.append(words[place])
            case 4:
                words[0:1], words[place : place + 1] = words[place : place + 1], words[0:1]
            case _:
                letter = draw.randrange(len(words[place]) + 1)
                words[place] = (
                    words[place][:letter]
                    + draw.choice(("", "x", "-", "=", "é", "\0"))
                    + words[place][letter + 1 :]
                )
    return words or ["translate"]


def _run(words: list[str]) -> tuple[int, str]:
    """The status, and all that was printed; what is typed at a prompt is two lines, the second one
    not UTF-8."""
    said = io.StringIO()
    standard_input = io.TextIOWrapper(io.BytesIO(b"The dog is old.\nb\xffd\n"), encoding="utf-8")
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), _input(standard_input):
        try:
            status = main(words)
        except SystemExit as stop:
            status = stop.code if isinstance(stop.code, int) else 1
    return status, said.getvalue()


@contextlib.contextmanager
def _input(stream: io.TextIOWrapper) -> Iterator[None]:
    before, sys.stdin = sys.stdin, stream
    try:
        yield
    finally:
        sys.stdin = before
        use_language(None)


def _written(parser: argparse.ArgumentParser, words: list[str]) -> set[str]:
    """The files that a line says it writes."""
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        try:
            parsed = parser.parse_known_args(words)[0]
        except SystemExit:
            return set()
    return {
        os.path.realpath(value)
        for value in vars(parsed).values()
        if isinstance(value, Output) and "\0" not in value
    }


@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.prove)])
def test_any_command_line_is_answered_and_does_no_harm(
    count: int, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(scratch)
    monkeypatch.setenv("HEADWISE_DATA", str(scratch / "known"))
    parser, before = build_parser(), _snapshot(scratch)
    statuses: dict[int, int] = {}
    for seed in range(count):
        draw = random.Random(seed)
        words = _draw_line(draw, parser) if seed % 2 else _change_line(draw)
        place = f"line {seed}: {words!r:.2000}"
        try:
            status, said = _run(words)
        except BaseException as error:
            raise AssertionError(place) from error
        statuses[status] = statuses.get(status, 0) + 1
        assert status in (0, 1, 2, 3), (place, status, said)
        assert "Traceback" not in said, (place, said)
        assert said, place
        after, allowed = _snapshot(scratch), _written(parser, words)
        for name, content in before.items():
            if after.get(name) != content:
                assert status == 0 and os.path.realpath(name) in allowed, (place, name, said)  # noqa: PT018
                (scratch / name).write_bytes(content)
        for name in after.keys() - before.keys():
            (scratch / name).unlink()
        for path in sorted(scratch.rglob("*"), reverse=True):
            if (
                path.is_dir()
                and not path.is_symlink()
                and not any(path.iterdir())
                and path.name != "empty"
            ):
                shutil.rmtree(path)
    assert statuses.get(0, 0) > count // 100, "some lines are good"
    assert statuses[2] > count // 5, "most are the caller's mistake"
    assert statuses[3] > count // 50, "some meet bad data"
    assert statuses.get(1, 0) == 0, "none is our own failure"
