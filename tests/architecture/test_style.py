"""The rules of the house that a machine can check: sizes, names, and what may never appear in the
code."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.architecture.source_tree import MODULES, ROOT, SOURCE, nodes_of, text_of, tree_of

MAX_FILE_LINES, MAX_FUNCTION_LINES, MAX_PARAMETERS, MAX_PARTS = 400, 60, 8, 10

# Functions that may have more than eight parameters, and why.
KERNEL = "a kernel is handed every pointer, stride and constant by itself"
MANY_PARAMETERS: dict[str, str] = {
    "src/headwise/gpu/cache_slot_attention.py:_attend": KERNEL,
    "src/headwise/gpu/cache_slot_attention.py:_attend_shared": KERNEL,
    "src/headwise/gpu/projection.py:_add_and_norm": KERNEL,
    "src/headwise/gpu/projection.py:_project": KERNEL,
    "src/headwise/gpu/token_ranking.py:_rank": KERNEL,
    "src/headwise/gpu/token_drawing.py:_draw": KERNEL,
    "src/headwise/gpu/beam_selection.py:_select": KERNEL,
    "src/headwise/gpu/graph_recursion.py:_walk": KERNEL,
    "src/headwise/gpu/graph_recursion.py:_link_sums": KERNEL,
    "src/headwise/gpu/softmax_rows.py:_slopes": KERNEL,
}

# Calls that are forbidden elsewhere, and why they are not here.
ALLOWED_CALLS: dict[str, str] = {
    "src/headwise/training/updates.py torch.manual_seed": (
        "dropout takes no generator: the key of a batch must set the global one"
    ),
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


TESTS = sorted((ROOT / "tests").rglob("*.py"))


@cache
def _functions() -> list[tuple[str, Function, bool]]:
    """Every function, where it stands, and whether it is a method (its first parameter is the
    object itself)."""
    found = []
    for path in MODULES:
        for node in nodes_of(path):
            for child in ast.iter_child_nodes(node):
                if isinstance(child, Function):
                    free = any(
                        isinstance(mark, ast.Name) and mark.id == "staticmethod"
                        for mark in child.decorator_list
                    )
                    is_method = isinstance(node, ast.ClassDef) and not free
                    found.append((f"{_name(path)}:{child.name}", child, is_method))
    return found


@cache
def _calls() -> list[tuple[Path, str, ast.Call]]:
    return [
        (path, ast.unparse(node.func), node)
        for path in MODULES
        for node in nodes_of(path)
        if isinstance(node, ast.Call)
    ]


def test_a_file_can_be_read_in_one_sitting() -> None:
    lengths = {_name(path): len(text_of(path).splitlines()) for path in [*MODULES, *TESTS]}
    assert {name: length for name, length in lengths.items() if length > MAX_FILE_LINES} == {}


def test_a_module_says_what_it_is() -> None:
    silent = [
        _name(path)
        for path in MODULES
        if tree_of(path).body and not ast.get_docstring(tree_of(path))
    ]
    assert silent == []


def test_functions_are_short() -> None:
    lengths = {
        place: (function.end_lineno or 0) - function.lineno + 1
        for place, function, _ in _functions()
    }
    assert {place: length for place, length in lengths.items() if length > MAX_FUNCTION_LINES} == {}


def test_functions_have_few_parameters() -> None:
    crowded = {}
    for place, function, is_method in _functions():
        positional = len(function.args.posonlyargs) + len(function.args.args) - is_method
        count = positional + len(function.args.kwonlyargs)
        # A module that is handed its parts by name may have two more.
        takes_parts = function.name == "__init__" and positional <= 3
        if count > (MAX_PARTS if takes_parts else MAX_PARAMETERS) and place not in MANY_PARAMETERS:
            crowded[place] = count
    assert crowded == {}


def test_no_tunnels() -> None:
    assert [place for place, function, _ in _functions() if function.args.kwarg is not None] == []


def test_nothing_is_printed_outside_the_command_line() -> None:
    talkers = [
        _name(path)
        for path, name, _ in _calls()
        if name == "print" and path.relative_to(SOURCE).parts[0] != "cli"
    ]
    assert talkers == []


FORBIDDEN_CALLS = {
    "eval",
    "exec",
    "compile",
    "__import__",
    "torch.load",
    "torch.save",
    "os.system",
    "torch.manual_seed",
}
FORBIDDEN_CALLS |= {"np.random.seed", "numpy.random.seed", "random.seed", "importlib.import_module"}
FORBIDDEN_IMPORTS = {"pickle", "cPickle", "dill", "joblib", "marshal", "shelve", "random"}


def test_nothing_runs_code_from_data_or_touches_a_global_seed() -> None:
    faults = [
        f"{_name(path)}:{call.lineno} {name}"
        for path, name, call in _calls()
        if name in FORBIDDEN_CALLS and f"{_name(path)} {name}" not in ALLOWED_CALLS
    ]
    faults += [
        f"{_name(path)}:{call.lineno} shell"
        for path, _, call in _calls()
        if any(keyword.arg == "shell" for keyword in call.keywords)
    ]
    for path in MODULES:
        for node in nodes_of(path):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if {name.split(".")[0] for name in names} & FORBIDDEN_IMPORTS:
                faults.append(f"{_name(path)} imports {names}")
    assert faults == []


def test_yaml_is_read_in_one_place_by_the_strict_loader() -> None:
    reads = [
        (_name(path), call)
        for path, name, call in _calls()
        if name.startswith("yaml.") and "load" in name
    ]
    assert [name for name, _ in reads] == ["src/headwise/settings/reading.py"]
    loaders = [
        ast.unparse(keyword.value)
        for _, call in reads
        for keyword in call.keywords
        if keyword.arg == "Loader"
    ]
    assert loaders == ["_PlainLoader"]


def test_shapes_are_annotations_and_not_text() -> None:
    """Annotations from the future are strings, which the checker of shapes would never see."""
    future = "from __future__ import " + "annotations"
    assert [
        _name(path) for path in MODULES if future in text_of(path) and "jaxtyping" in text_of(path)
    ] == []


def test_the_yaml_loader_is_a_safe_one() -> None:
    import yaml

    from headwise.settings import reading

    assert issubclass(reading._PlainLoader, yaml.SafeLoader)


def test_nothing_is_left_for_later() -> None:
    # The words are put together here so that this file does not find itself.
    marks = re.compile("|".join((r"\bTO" + "DO", r"\bFIX" + "ME", r"\bXX" + "X", r"\bHA" + "CK")))
    assert [_name(path) for path in [*MODULES, *TESTS] if marks.search(text_of(path))] == []


def test_no_drawer_for_odds_and_ends() -> None:
    drawers = {"utils", "util", "helpers", "helper", "common", "misc"}
    places = [path.relative_to(ROOT).with_suffix("") for path in [*MODULES, *TESTS]]
    assert [place.as_posix() for place in places if drawers & set(place.parts)] == []


def _texts() -> Iterator[Path]:
    folders = ("src", "tests", "docs", "recipes", "benchmarks", "notes", ".ci")
    for folder in folders:
        yield from (
            path
            for path in (ROOT / folder).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        )
    # In a worktree .git is a file that says where the repository is.
    yield from (path for path in ROOT.iterdir() if path.is_file() and path.name != ".git")


def test_no_path_of_this_machine() -> None:
    homes = re.compile(
        "|".join(
            (
                r"/ho" + r"me/\w+",
                r"/Us" + r"ers/\w+",
                r"/ro" + r"ot/\w",
                r"(?<!serving)/wo" + r"rk/\w",  # serving/wo… is a folder of the package
                r"[CD]:\\" + r"\w",
            )
        )
    )
    found = {}
    for path in _texts():
        if path.suffix in {
            ".py",
            ".md",
            ".toml",
            ".yaml",
            ".yml",
            ".txt",
            ".sh",
            ".cfg",
            ".json",
            "",
        }:
            match = homes.search(path.read_text(encoding="utf-8", errors="replace"))
            if match:
                found[_name(path)] = match.group()
    assert found == {}


def test_the_exceptions_are_still_needed() -> None:
    assert set(MANY_PARAMETERS) <= {place for place, _, _ in _functions()}
    assert set(ALLOWED_CALLS) <= {f"{_name(path)} {name}" for path, name, _ in _calls()}


# Where files, addresses, requests and arguments are judged.
JUDGES = """
    storage/* settings/* weights.py data/known/corpora.py data/known/download.py
    data/pairs/parallel_files.py data/text_lines.py text/sentencepiece_tokenizer.py
    text/sentencepiece_limits.py text/tokenizer_pair.py text/word_vector_files.py
    models/ngram/arpa.py tasks/bundle.py tasks/bundle_directory.py tasks/text_input.py
    tasks/named_files.py tasks/recipe.py serving/http/request_guard.py serving/http/api_keys.py
    serving/http/connection.py serving/http/route_table.py serving/http/forms.py
    cli/options/paths.py cli/options/path_checks.py
"""


def test_no_assert_judges_input() -> None:
    """`python -O` takes asserts away."""
    files = [
        path
        for pattern in JUDGES.split()
        for path in sorted(SOURCE.glob(pattern))
        if path.suffix == ".py"
    ]
    assert len(files) >= len(JUDGES.split()), "a file has moved"
    found = [
        f"{_name(path)}:{node.lineno}"
        for path in files
        for node in nodes_of(path)
        if isinstance(node, ast.Assert)
    ]
    assert not found, f"raise instead: {found}"
