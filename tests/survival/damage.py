"""Ways a file goes bad, each done to one file of a run."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from headwise.storage import MANIFEST

ARTEFACTS = ("checkpoints/*", "best/*", "data/tokenizers", "data/train", "data/valid", "model")


def proved_files(run: Path) -> list[Path]:
    """Every file under a manifest, the manifests included: checkpoints, weights, tokenizers, token
    stores and the bundle."""
    directories = [directory for pattern in ARTEFACTS for directory in sorted(run.glob(pattern))]
    return [
        file for directory in directories for file in sorted(directory.rglob("*")) if file.is_file()
    ]


def flip_bit(file: Path, bit: int) -> None:
    """Doing it twice undoes it."""
    with file.open("r+b") as stream:
        stream.seek(bit // 8)
        byte = stream.read(1)[0]
        stream.seek(bit // 8)
        stream.write(bytes([byte ^ 1 << bit % 8]))


def draw_flips(
    files: list[Path], count: int, generator: np.random.Generator
) -> Iterator[tuple[Path, int]]:
    """Every file in turn, each time at a random bit."""
    for number in range(count):
        file = files[number % len(files)]
        yield file, int(generator.integers(8 * file.stat().st_size))


def truncate(file: Path, generator: np.random.Generator) -> None:
    with file.open("r+b") as stream:
        stream.truncate(int(generator.integers(file.stat().st_size)))


def fill_with_zeros(file: Path, generator: np.random.Generator) -> None:
    """What some file systems leave after a power cut: the size is right, a block is not."""
    size = file.stat().st_size
    start = int(generator.integers(max(1, size // 2)))
    with file.open("r+b") as stream:
        stream.seek(start)
        stream.write(bytes(min(4096, size - start)))


def remove(file: Path, generator: np.random.Generator) -> None:
    file.unlink()


def empty(file: Path, generator: np.random.Generator) -> None:
    file.write_bytes(b"")


def append(file: Path, generator: np.random.Generator) -> None:
    with file.open("ab") as stream:
        stream.write(bytes(int(generator.integers(1, 100))))


def link_out(file: Path, generator: np.random.Generator) -> None:
    """The same content, but outside the directory and free to change."""
    outside = file.parents[3] / f"outside-{file.name}"
    shutil.move(file, outside)
    file.symlink_to(outside)


def swap_between_steps(file: Path, generator: np.random.Generator) -> None:
    """The file of the same name from the other checkpoint: whole in itself, and not of this
    step."""
    others = [path for path in file.parents[1].glob(f"*/{file.name}") if path != file]
    shutil.copy(others[0], file)


def replace_by_directory(file: Path, generator: np.random.Generator) -> None:
    file.unlink()
    file.mkdir()


Damage = Callable[[Path, np.random.Generator], None]
DAMAGES: tuple[Damage, ...] = (
    truncate,
    fill_with_zeros,
    remove,
    empty,
    append,
    link_out,
    swap_between_steps,
    replace_by_directory,
)


def may_change_nothing(damage: Damage, file: Path) -> bool:
    """The recipe is the same in every checkpoint, and a link to the manifest is read through it."""
    return (damage is swap_between_steps and file.name == "recipe.yaml") or (
        damage is link_out and file.name == MANIFEST
    )
