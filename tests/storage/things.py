"""A small directory to publish."""

from pathlib import Path

from headwise.storage import publish_directory


def publish(path: Path, text: str = "hello", *, replace: bool = False) -> None:
    with publish_directory(path, kind="thing", replace=replace) as temporary:
        (temporary / "a.txt").write_text(text, encoding="utf-8")
        (temporary / "inner").mkdir()
        (temporary / "inner" / "b.bin").write_bytes(bytes(range(7)))
