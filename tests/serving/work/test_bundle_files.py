"""Replaced files can still be read through open descriptors; a bundle replaced while it is read is
an error.
"""

import shutil
from pathlib import Path

import pytest

from headwise.errors import DataError
from headwise.serving.work import loaded_models
from headwise.serving.work.bundle_files import BundleFiles, copied_files, hash_manifest
from headwise.serving.work.loaded_models import load_model
from headwise.tasks.translation.translator import Translator
from tests.serving.conftest import BUNDLE


def test_deleted_files_are_copied_whole_and_the_copy_goes(tmp_path: Path) -> None:
    bundle = tmp_path / "model"
    shutil.copytree(BUNDLE, bundle)
    held = BundleFiles(bundle)
    shutil.rmtree(bundle)
    assert hash_manifest(bundle) == "gone"
    for _ in range(2):  # a second process reads from the beginning, too
        with copied_files(held.descriptors) as directory:
            assert hash_manifest(directory) == held.manifest
            for path in BUNDLE.rglob("*"):
                if path.is_file():
                    assert (directory / path.relative_to(BUNDLE)).read_bytes() == path.read_bytes()
        assert not directory.exists()


def test_a_bundle_replaced_while_it_is_read_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = tmp_path / "model"
    shutil.copytree(BUNDLE, bundle)

    class Replaced:
        @staticmethod
        def load(path: Path, **_: object) -> Translator:
            found = Translator.load(path, device="cpu", precision="fp32")
            (path / "MANIFEST.json").write_text("{}", encoding="utf-8")
            return found

    monkeypatch.setattr(loaded_models, "Translator", Replaced)
    with pytest.raises(DataError, match="was replaced while it was being read"):
        load_model("x", bundle)
