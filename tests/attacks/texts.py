"""Recipes and manifests that mean harm; a generator gives the text."""

import json
from collections.abc import Callable

RUN_CODE = "!!python/object/apply:os.mkdir ['exploded']"


def billion_laughs() -> str:
    """Nine levels of ten aliases: a billion words from four hundred bytes."""
    lines = ["level0: &level0 [ha, ha, ha, ha, ha, ha, ha, ha, ha, ha]"]
    for level in range(1, 10):
        lines.append(f"level{level}: &level{level} [{', '.join([f'*level{level - 1}'] * 10)}]")
    return "\n".join(lines)


YAML: dict[str, Callable[[], str]] = {
    "python object": lambda: f"task: {RUN_CODE}\n",
    "python object as key": lambda: f"? {RUN_CODE}\n: 1\n",
    "python name": lambda: "task: !!python/name:os.system\n",
    "python module": lambda: "task: !!python/module:os\n",
    "billion laughs": billion_laughs,
    "alias of itself": lambda: "a: &a [*a]\n",
    "merge key": lambda: "a: &a {b: 1}\nc: {<<: *a}\n",
    "deep lists": lambda: "a: " + "[" * 20_000,
    "deep mappings": lambda: "".join(" " * depth + "a:\n" for depth in range(1000)),
    "a million keys": lambda: "\n".join(f"k{number}: 1" for number in range(90_000)),
    "ten megabytes": lambda: "a: " + "x" * (10 << 20),
    "a huge number": lambda: "training: {steps: 1" + "0" * 300_000 + "}\n",
    "a number in base sixty": lambda: "training: {steps: " + "59:" * 100_000 + "59}\n",
    "binary": lambda: "task: !!binary " + "QUFB" * 100_000 + "\n",
    "no text": lambda: "\x00\x01\x02",
}

DIGEST = "0" * 64


def _manifest(files: object, **changes: object) -> str:
    return json.dumps({"format": 1, "kind": "bundle", "files": files, **changes})


def _file(size: object = 5, digest: object = DIGEST) -> dict[str, object]:
    return {"bytes": size, "sha256": digest}


MANIFESTS: dict[str, Callable[[], str]] = {
    "path upwards": lambda: _manifest({"../../secret": _file()}),
    "absolute path": lambda: _manifest({"/etc/passwd": _file()}),
    "path upwards inside": lambda: _manifest({"tokenizer/../../../secret": _file()}),
    "NUL in a path": lambda: _manifest({"a\0b": _file()}),
    "a path of a megabyte": lambda: _manifest({"a" * (1 << 19): _file()}),
    "a thousand levels": lambda: _manifest({"a/" * 1000 + "b": _file()}),
    "a device": lambda: _manifest({"/dev/zero": _file()}),
    "ten thousand files": lambda: _manifest({f"file{number}": _file() for number in range(10_000)}),
    "negative size": lambda: _manifest({"weights.safetensors": _file(size=-1)}),
    "size as text": lambda: _manifest({"weights.safetensors": _file(size="5")}),
    "no digest": lambda: _manifest({"weights.safetensors": {"bytes": 5}}),
    "entry is a list": lambda: _manifest({"weights.safetensors": []}),
    "files is a list": lambda: _manifest([]),
    "kind is a list": lambda: _manifest({}, kind=["bundle"]),
    "format of the future": lambda: _manifest({}, format=10**30),
    "nothing listed": lambda: _manifest({}),
    "deep": lambda: "[" * 200_000,
    "a number of a megabyte": lambda: '{"format": ' + "9" * 1_000_000 + "}",
    "two megabytes": lambda: " " * (2 << 20),
    "not JSON": lambda: "format: 1",
}
