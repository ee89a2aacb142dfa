"""An imported translator for CTranslate2: compared on probes before it is written, as any other."""

from pathlib import Path

import pytest

from headwise.exporting.ctranslate2_export import export_translator
from headwise.importing.marian_import import import_marian
from headwise.tasks.translation.bundle import load_translator_bundle

pytest.importorskip("ctranslate2")


def test_an_imported_translator_is_exported(marian: Path, tmp_path: Path, texts: list[str]) -> None:
    import_marian(marian, tmp_path / "bundle", prefix=">>deu<<")
    probes = tmp_path / "probes"
    probes.write_text("\n".join(texts[:20]) + "\n", encoding="utf-8")
    bundle = load_translator_bundle(tmp_path / "bundle")
    found = export_translator(bundle, tmp_path / "there", probes=probes)
    assert found.exact.num_probes == 20
    assert found.exact.difference < 1e-3
    for side in ("source", "target"):
        assert (tmp_path / "there" / f"{side}.model").read_bytes() == (
            marian / f"{side}.spm"
        ).read_bytes()
    readme = (tmp_path / "there/README.md").read_text(encoding="utf-8")
    assert "pieces = ['>>deu<<'] + source.encode(line, out_type=str)" in readme
    assert "U+F8FE" not in readme
