"""A kind is named in its own file and in the union of its choice, and nowhere else.

A kernel, score, position encoding, norm or feed-forward part declares itself; whoever needs to know
something about it asks the declaration. A literal of its name elsewhere is a list that a new kind
would have to be added to.
"""

import ast
import json
import re
from pathlib import Path

import pytest

from headwise.attention.choices import BUILT_IN as KERNELS
from headwise.attention.score_choices import NORMALIZERS, SCORES
from headwise.blocks.choices import FEED_FORWARDS, NORMS
from headwise.positions.choices import BUILT_IN as POSITIONS
from headwise.settings.kind import Kind
from tests.architecture.source_tree import nodes_of

ROOT = Path("src/headwise")
KINDS: tuple[type[Kind], ...] = (
    *KERNELS,
    *SCORES,
    *NORMALIZERS,
    *POSITIONS,
    *NORMS,
    *FEED_FORWARDS,
)
CHOICES = {
    "attention/choices.py",
    "attention/score_choices.py",
    "positions/choices.py",
    "blocks/choices.py",
}
OTHER_MEANINGS = {
    # Words that are also used for something that is no kind of these choices.
    "batch": "a batch of training, a field of a reply",
    "cosine": "a schedule; the similarity of word vectors",
    "full": "a queue or a disk",
    "hard": "an adjective of the pocket corpus",
    "layer": "a field that numbers layers",
    "linear": "a schedule; a scale of colours",
    "window": "an encoder of sentences that reads neighbours",
}
OWN_TABLES = {
    # What another program or a kernel for a GPU can express, what is imported, and activations by
    # their torch functions.
    "src/headwise/importing/marian_network.py": {"relu", "gelu", "silu", "sinusoidal"},
    "src/headwise/blocks/inference/projection.py": {"relu", "gelu"},
    "src/headwise/gpu/projection.py": {"relu", "gelu"},
}


def homes() -> dict[str, set[str]]:
    """For each word the files that may name it."""
    found: dict[str, set[str]] = {}
    for kind in KINDS:
        file = kind.__module__.removeprefix("headwise.").replace(".", "/") + ".py"
        for word in kind.words():
            found.setdefault(word, set(CHOICES)).add(file)
    return found


EXAMPLES = {
    # Files whose help or errors show a recipe's key with some value, and have to name one.
    "cli/compare.py",
    "comparing/variants.py",
    "settings/overrides.py",
    "exporting/ctranslate2_network.py",  # what another program can compute
}
NAMED_IN_TEXT = re.compile(r"kind(?:=|: )(\w+(?:(?:, |、| or | 或 )\w+)*)")
"""`norm.kind=layer or rms` inside a message: a list of kinds in the middle of a sentence."""


def literals(path: Path) -> set[str]:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return literals_of_python(text)
    if path.suffix == ".json":
        return set(re.findall(r'"\w*?_?([a-z0-9_]+)":', json.dumps(json.loads(text))))
    return set(re.findall(r"""["'`](\w+)["'`]""", text))


def literals_of_python(text: str) -> set[str]:
    """All strings, and the kinds that the parts of longer strings name; what describes a function
    or module is no part of the program."""
    tree, described = ast.parse(text), set()
    for node in ast.walk(tree):
        body = getattr(node, "body", [])
        for part in body if isinstance(body, list) else []:
            if isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant):
                described.add(id(part.value))
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
            if id(node) not in described:
                for named in NAMED_IN_TEXT.findall(node.value):
                    found.update(re.split(", |、| or | 或 ", named))
    return found


SOURCES = [
    *sorted(ROOT.rglob("*.py")),
    *sorted((ROOT / "explorer/static").rglob("*.js")),
    *sorted((ROOT / "explorer/static").rglob("*.json")),
]


def test_no_file_names_a_kind_that_is_not_its_own() -> None:
    allowed, named = homes(), []
    for path in SOURCES:
        place = str(path.relative_to(ROOT))
        for word in literals(path) & set(allowed):
            is_own = place in allowed[word] or word in OWN_TABLES.get(str(path), set())
            if not is_own and place not in EXAMPLES and word not in OTHER_MEANINGS:
                named.append(f"{path}: {word}")
    assert named == []


@pytest.mark.parametrize(
    "message",
    [
        'f"norm.kind={norm.kind} counts every batch; use norm.kind=layer or rms"',
        'f"{norm}：请用 norm.kind=layer、rms"',
        'raise_error("it needs norm: {kind: rms}")',
        'f"norm.kind=rms warms up for {count} batches"',
    ],
)
def test_a_kind_inside_a_longer_message_is_found(message: str) -> None:
    assert "rms" in literals_of_python(message) & set(homes())


def test_words_with_other_meanings_are_kinds_at_all() -> None:
    assert set(OTHER_MEANINGS) <= set(homes())


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.__name__}")
def test_a_kind_declares_itself_in_both_languages(kind: type[Kind]) -> None:
    declared = kind.declare()
    assert declared["kind"] == kind.word()
    for words in (declared["title"], declared["summary"]):
        assert words["en"]
        assert words["zh"]
    assert isinstance(kind.example(), kind)
    assert isinstance(declared["paper"], str)


def test_an_alternative_is_read_from_the_declarations() -> None:
    """A message that writes `attention.kind=fused` would be a list of kernels of its own."""
    words = {word for kind in KERNELS for word in kind.words()}
    written = re.compile(r"attention\.kind=(\w+)")
    named = []
    for path in sorted((ROOT / "attention").rglob("*.py")):
        own = {kind.word() for kind in KERNELS if path.stem in kind.__module__.split(".")}
        for node in nodes_of(path):
            if isinstance(node, ast.Call) and "Error" in ast.unparse(node.func):
                found = set(written.findall(ast.unparse(node))) & words - own
                named += [f"{path}:{node.lineno}: {word}" for word in found]
    assert named == []
