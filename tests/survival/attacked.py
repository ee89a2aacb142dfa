"""A process that opens hostile files in forked children and tells what each cost:
`python -m tests.survival.attacked DIR MODEL SIZE`.

A child starts with the memory of its parent (torch imported, nothing loaded); what it takes beyond
that at its highest is the cost of the attack. Prints JSON: for each attack the exit status, the
message, the growth in MiB and the seconds of processor time, which other processes do not lengthen.
"""

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from headwise.data.pairs.choices import DataSettings
from headwise.data.pairs.preparation import prepare_data
from headwise.errors import HeadwiseError
from headwise.storage import MANIFEST, write_manifest
from headwise.tasks.bundle_form import KIND
from headwise.tasks.recipe import load_recipe
from headwise.tasks.translation.bundle import load_translator_bundle
from headwise.text.choices import CharacterSettings
from tests.attacks.corpora import CORPORA, Corpus
from tests.attacks.texts import MANIFESTS, YAML
from tests.attacks.tokenizers import TOKENIZERS
from tests.attacks.weights import WEIGHTS

Case = tuple[str, Callable[[], object]]


def memory(name: str) -> int:
    """VmRSS or VmHWM (its highest) of this process in bytes; getrusage would count the parent
    before an exec."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(f"{name}:"))


def measure(work: Callable[[], object]) -> dict[str, Any]:
    """In a child: the status and message of the error that `work` ends with, and the memory and
    time it took."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        before, start = memory("VmRSS"), time.process_time()
        answer: dict[str, Any] = {"status": 0, "message": ""}
        try:
            answer["message"] = str(work())
        except HeadwiseError as error:
            answer = {"status": error.exit_status, "message": str(error)}
        except BaseException as error:
            answer = {"status": -1, "message": f"{type(error).__name__}: {error}"}
        answer |= {
            "growth": (memory("VmHWM") - before) / 2**20,
            "seconds": time.process_time() - start,
        }
        answer["length"], answer["message"] = len(answer["message"]), answer["message"][:4000]
        os.write(writer, json.dumps(answer).encode())
        os._exit(0)
    os.close(writer)
    with open(reader, "rb") as stream:
        content = stream.read()
    os.waitpid(child, 0)
    return (
        json.loads(content)
        if content
        else {"status": -9, "message": "the child died", "growth": 0.0, "seconds": 0.0}
    )


def copied(model: Path, place: Path) -> Path:
    return Path(shutil.copytree(model, place))


def attacks(directory: Path, model: Path, size: int) -> Iterator[Case]:
    for name, generate in WEIGHTS.items():
        bundle = copied(model, directory / f"weights {name}")
        generate(bundle / "weights.safetensors")
        # Every checksum is right: the attacker can compute them too.
        write_manifest(bundle, kind=KIND)
        yield f"weights: {name}", lambda bundle=bundle: load_translator_bundle(bundle)
    for name, attack in TOKENIZERS.items():
        bundle = copied(model, directory / f"tokenizer {name}")
        attack(bundle / "tokenizer" / "shared")
        write_manifest(bundle, kind=KIND)
        yield f"tokenizer: {name}", lambda bundle=bundle: load_translator_bundle(bundle)
    for name, text in MANIFESTS.items():
        bundle = copied(model, directory / f"manifest {name}")
        (bundle / MANIFEST).write_text(text(), encoding="utf-8")
        yield f"manifest: {name}", lambda bundle=bundle: load_translator_bundle(bundle)
    for name, text in YAML.items():
        recipe = directory / f"{name}.yaml"
        recipe.write_text(text(), encoding="utf-8")
        yield f"recipe: {name}", lambda recipe=recipe: load_recipe(recipe)
    for name, make in CORPORA.items():
        place = directory / f"corpus {name}"
        write_corpus(make(size), place)
        yield f"corpus: {name}", lambda place=place: prepare(place)


def write_corpus(corpus: Corpus, place: Path) -> None:
    place.mkdir()
    for language, content in (("en", corpus.source), ("de", corpus.target)):
        (place / f"t.{language}{corpus.suffix}").write_bytes(content)


def prepare(place: Path) -> object:
    data = DataSettings.model_validate({"source": "en", "target": "de", "train": str(place / "t")})
    return json.dumps(
        prepare_data(data, CharacterSettings(), place / "data").train.details["report"]
    )


if __name__ == "__main__":
    place, model = map(Path, sys.argv[1:3])
    os.chdir(place)
    torch.set_num_threads(1)  # threads do not survive a fork
    load_translator_bundle(model)  # what the first load imports, no attack is to be charged with
    print(
        json.dumps({name: measure(work) for name, work in attacks(place, model, int(sys.argv[3]))})
    )
