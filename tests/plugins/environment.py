"""A scratch folder of packages in which the example package is installed: offline, and found by the
processes that are started here beside the packages of this one."""

import os
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree, rmtree

from tests.processes import run_python

ROOT = Path(__file__).resolve().parents[2]
PLUGIN, SOURCE = ROOT / "examples" / "plugin", ROOT / "src"


@dataclass(frozen=True)
class Environment:
    packages: Path

    def run(self, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        """`headwise …` in this environment."""
        return self._python("-m", "headwise", *arguments, cwd=cwd)

    def run_code(self, code: str, *, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Python code in this environment."""
        return self._python("-c", code, cwd=cwd)

    def _python(self, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        variables = {**os.environ, "OMP_NUM_THREADS": "1", "LANG": "C.UTF-8"}
        variables["PYTHONPATH"] = f"{self.packages}{os.pathsep}{SOURCE}"
        return run_python(
            [sys.executable, *arguments], cwd=cwd, env=variables, capture_output=True, text=True
        )

    def install(self, source: Path) -> None:
        """What pip writes for a pure Python package: its files, its name and its entry points.

        pip itself would need the build backend, which is not there offline.
        """
        for package in (source / "src").iterdir():
            copytree(package, self.packages / package.name)
        write_metadata(source, self.packages)

    def uninstall(self, source: Path) -> None:
        """Take the files of a package away again."""
        names = [package.name for package in (source / "src").iterdir()]
        for name in (*names, *(facts.name for facts in self.packages.glob("*.dist-info"))):
            rmtree(self.packages / name)


def write_metadata(source: Path, packages: Path) -> None:
    """The name and the entry points of a package, where Python looks for them."""
    project = tomllib.loads((source / "pyproject.toml").read_text())["project"]
    name, version = project["name"], project["version"]
    facts = packages / f"{name.replace('-', '_')}-{version}.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = []
    for group, words in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{word} = {place}" for word, place in words.items())]
    (facts / "entry_points.txt").write_text("\n".join(lines) + "\n")


def make_environment(directory: Path) -> Environment:
    """An environment without a package of its own."""
    directory.mkdir(exist_ok=True)
    return Environment(directory)
