"""A scratch environment in which the example package is installed: offline, beside the packages of
this one."""

import os
import subprocess
import sys
import tomllib
import venv
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree, rmtree

PLUGIN = Path(__file__).resolve().parents[2] / "examples" / "plugin"


@dataclass(frozen=True)
class Environment:
    directory: Path

    @property
    def packages(self) -> Path:
        (found,) = self.directory.glob("lib/python*/site-packages")
        return found

    def run(self, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        """`headwise …` in this environment."""
        python = self.directory / "bin" / "python"
        variables = {**os.environ, "OMP_NUM_THREADS": "1", "LANG": "C.UTF-8"}
        variables.pop("PYTHONPATH", None)
        return subprocess.run(
            [str(python), "-m", "headwise", *arguments],
            cwd=cwd,
            env=variables,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def install(self, source: Path) -> None:
        """What pip writes for a pure Python package: its files, its name and its entry points.

        pip itself would need the build backend, which is not there offline.
        """
        project = tomllib.loads((source / "pyproject.toml").read_text())["project"]
        for package in (source / "src").iterdir():
            copytree(package, self.packages / package.name)
        name, version = project["name"], project["version"]
        facts = self.packages / f"{name.replace('-', '_')}-{version}.dist-info"
        facts.mkdir()
        (facts / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        )
        lines = []
        for group, words in project["entry-points"].items():
            lines += [f"[{group}]", *(f"{word} = {place}" for word, place in words.items())]
        (facts / "entry_points.txt").write_text("\n".join(lines) + "\n")

    def uninstall(self, name: str) -> None:
        for found in self.packages.glob(f"{name.replace('-', '_')}*"):
            rmtree(found)


def make_environment(directory: Path) -> Environment:
    """An empty environment that finds the packages of the running one."""
    venv.create(directory, with_pip=False)
    environment = Environment(directory)
    shared = [path for path in sys.path if path and Path(path).is_dir()]
    source = Path(__file__).resolve().parents[2] / "src"
    (environment.packages / "shared.pth").write_text("\n".join([str(source), *shared]) + "\n")
    return environment
