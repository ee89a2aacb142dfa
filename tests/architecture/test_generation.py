"""Outside `decoding`, generators, settings, rules and results are known, and no search from inside.

So a new way to generate costs one file in `decoding` and its lines in `choices.py`. The kinds are
named elsewhere only where the tables below say why.
"""

import ast
from functools import cache

from headwise.decoding.choices import decoding_kinds
from tests.architecture.source_tree import MODULES, SOURCE, nodes_of

KNOWN = {
    "batches",
    "choices",
    "ensemble",  # what several models offer together, in place of what one offers
    "generation_settings",
    "generator",
    "records",
    "request_option",
    "results",
    "rules.constraints",
    "rules.length_limit",
    "rules.phrases",
    "rules.text_rules",
    "search.beam",  # their settings
    "search.distinct_samples",  # what a training draws without replacement
    "search.greedy",
    "search.length_penalty",
    "search.samples",  # what a training draws
    "search.sampling",
}
SETTINGS_ONLY = {"search.beam", "search.greedy", "search.sampling"}

NAMED_KINDS = {
    ("serving/api/text_trace.py", "beam"),  # a field of the body
    ("serving/schemas/trace.py", "beam"),  # that field in an example
    ("serving/schemas/trace.py", "drafted"),  # another example
    ("serving/schemas/translation.py", "beam"),  # an example
    ("settings/usual_names.py", "beam"),  # what other programs call decoding.size
}
SETTINGS_USED = {
    "cli/generate.py",  # a language model has no recipe for decoding: options choose
    "exporting/ctranslate2_check.py",  # what CTranslate2 can express; all else is refused
    "exporting/ctranslate2_peer.py",  # greedy search, which it is compared with
    "exporting/ctranslate2_search.py",
    "importing/marian_import.py",  # the search that a Marian model comes with
    "serving/api/decoding_options.py",  # beam search, where one candidate is not enough
    "serving/api/trace.py",  # the beam that a request describes
    "tasks/translation/distillation_search.py",  # a beam for the best, draws for samples
    "tasks/translation/recipe.py",  # the default
    "tasks/translation/validation.py",  # greedy search, if the model generates token by token
}


@cache
def _imports() -> list[tuple[str, str, str]]:
    """(file, module of decoding, name) of every import from outside."""
    found = []
    for path in MODULES:
        if path.is_relative_to(SOURCE / "decoding"):
            continue
        for node in nodes_of(path):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
                "headwise.decoding"
            ):
                module = (node.module or "").removeprefix("headwise.decoding").removeprefix(".")
                names = [alias.name for alias in node.names]
                found += [(path.relative_to(SOURCE).as_posix(), module, name) for name in names]
    return found


def test_only_the_door_is_known_outside() -> None:
    assert [one for one in _imports() if one[1] not in KNOWN] == []


def test_of_a_search_only_its_settings_are_known_outside() -> None:
    inside = [one for one in _imports() if one[1] in SETTINGS_ONLY]
    assert [one for one in inside if not one[2].endswith("Settings")] == []


def test_kinds_are_named_in_few_stated_places() -> None:
    kinds = {kind.model_fields["kind"].default for kind in decoding_kinds()}
    found = {
        (path.relative_to(SOURCE).as_posix(), node.value)
        for path in MODULES
        if not path.is_relative_to(SOURCE / "decoding")
        for node in nodes_of(path)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in kinds
    }
    assert found == NAMED_KINDS


def test_settings_of_one_kind_are_used_in_few_stated_places() -> None:
    names = {kind.__name__ for kind in decoding_kinds()}
    assert {file for file, _, name in _imports() if name in names} == SETTINGS_USED
