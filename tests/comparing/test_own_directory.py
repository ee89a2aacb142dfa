"""A comparison is not mixed with a run or with files of the user's."""

from pathlib import Path

import pytest

from headwise.comparing.lineage import compare_lineage
from headwise.comparing.own_directory import require_own_directory
from headwise.comparing.recipes import compare
from headwise.errors import UsageError
from headwise.language import use_language

WORDS = ["pocket", "model.dim=8,16"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("recipe.yaml", "holds a run; choose a new or empty directory"),
        ("letter.txt", "holds files that are not a comparison; choose a new or empty directory"),
    ],
)
def test_another_directory_is_refused(name: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("kind: other", encoding="utf-8")
    with pytest.raises(UsageError, match=message):
        compare(WORDS, directory=tmp_path)
    with pytest.raises(UsageError, match=message):
        compare_lineage(directory=tmp_path)
    assert [child.name for child in tmp_path.iterdir()] == [name]


def test_a_run_is_refused_even_if_a_comparison_was_mixed_into_it(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "recipe.yaml").touch()
    with pytest.raises(UsageError, match="holds a run"):
        require_own_directory(tmp_path, own=("runs",))


@pytest.mark.parametrize("name", ["runs", "prepared", "comparison.json"])
def test_what_the_comparison_wrote_is_its_own(name: str, tmp_path: Path) -> None:
    require_own_directory(tmp_path / "new", own=(name,))
    require_own_directory(tmp_path, own=(name,))
    (tmp_path / name).mkdir()
    (tmp_path / "notes.txt").touch()
    require_own_directory(tmp_path, own=(name,))


def test_in_chinese() -> None:
    use_language("zh")
    with pytest.raises(UsageError) as caught:
        require_own_directory(Path(__file__).parent, own=())
    assert "中有不属于比较的文件；请选择新的或空的目录" in caught.value.zh
