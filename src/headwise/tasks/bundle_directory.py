"""Where a model is: a bundle directory, or a run directory with a finished bundle inside.

Nothing here loads torch: a wrong directory is answered at once. What is in a bundle is read in `bundle.py`.
"""

from pathlib import Path

from headwise.errors import CheckpointError
from headwise.storage import MANIFEST

FOLDER = "model"
"""Of the bundle inside a run directory."""


def find_bundle(path: Path, *, recipe: str | None = None) -> Path:
    """The bundle itself, or the bundle inside a run directory; `recipe` makes one of the kind that is asked for (None: the demo does)."""
    if (path / MANIFEST).is_file():
        return path
    if (path / FOLDER / MANIFEST).is_file():
        return path / FOLDER
    example = "runs/demo/model" if recipe is None else f"runs/{recipe}"
    command = "headwise demo" if recipe is None else f"headwise train {recipe} --run {example}"
    raise CheckpointError(
        f"is not a model: a bundle has a MANIFEST.json; give e.g. {example} (`{command}` makes one), "
        "or see what is wrong with `headwise doctor DIR`",
        f"不是模型：模型目录应含 MANIFEST.json；请给出例如 {example}（`{command}` 会生成），"
        "或用 `headwise doctor DIR` 查看问题",
        file=path,
    )


def require_run(path: Path) -> Path:
    """A directory to be examined."""
    if not path.is_dir():
        raise CheckpointError(
            "is not a directory; give a run directory such as runs/demo",
            "不是目录；请给出运行目录，例如 runs/demo",
            file=path,
        )
    return path
