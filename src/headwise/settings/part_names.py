"""`PartNames`: the names that a module gives its parts in the table of `headwise describe`.

    class DecoderOnly(nn.Module):
        part_names: ClassVar[PartNames] = {"norm": ("normalisation", "归一化")}

A key is the path of a part below the module, as its weights are named, with `*` for the number of a
layer. A module names what it owns; the modules inside name their own parts, and theirs count,
unless an outer module names the whole path. inspecting/part_costs.py reads the names.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from headwise.settings.kind import Words

PartNames = Mapping[str, Words]


def name_of_part(module: Any, path: str) -> Words:
    """What the part at a path is called; the path itself where no module names it."""
    words = path.split(".")
    found: Words = (path, path)
    for owner, rest in _owners(module, words):
        names: PartNames = getattr(owner, "part_names", {})
        for count in range(len(rest), 0, -1):
            title = names.get(".".join(rest[:count]))
            if title is not None:
                if count == len(rest):
                    return title
                found = title
                break
    return found


def _owners(module: Any, words: list[str]) -> Iterator[tuple[Any, list[str]]]:
    """Each module on the way to a part, with the rest of the way; of layers the first."""
    for place, word in enumerate(words):
        yield module, words[place:]
        children = dict(module.named_children())
        name = next(iter(children), "") if word == "*" else word
        if name not in children:
            return
        module = children[name]
