"""A directory in which modules lie that must never be run: each would leave a file behind that says
so."""

import os
from pathlib import Path

NAMES = (
    "numpy",
    "torch",
    "random",
    "json",
    "yaml",
    "sentencepiece",
    "headwise",
    "sitecustomize",
    "usercustomize",
)
MODULE = (
    "import pathlib\npathlib.Path(__file__).with_suffix('.ran').touch()\nraise "
    "SystemExit(f'hostile {__name__}')\n"
)


def make_hostile(directory: Path, *, leave_out: tuple[str, ...] = ()) -> Path:
    """Put them there; the corpus and everything else goes beside them."""
    directory.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        if name not in leave_out:
            (directory / f"{name}.py").write_text(MODULE)
    return directory


def modules_that_ran(directory: Path) -> list[str]:
    return sorted(path.stem for path in directory.glob("*.ran"))


def clean_environment() -> dict[str, str]:
    """The tests' own PYTHONPATH, if there is one, would hide what is tested."""
    return {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "PYTHONSAFEPATH")
    }
