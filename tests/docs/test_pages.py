"""What holds the pages together: links, the two languages, names that exist, and nothing of the
writer's machine."""

import ast
import re

import pytest

import headwise
from headwise.settings import read_yaml
from tests.docs.pages import GUIDE, READMES, ROOT, Page, all_pages, guide_names, read_page, twins

LONGEST_README = 120


def _names(value: Page | tuple[Page, Page]) -> str:
    return value.name if isinstance(value, Page) else value[0].name


@pytest.mark.parametrize("page", all_pages(), ids=_names)
def test_links_lead_somewhere(page: Page) -> None:
    here = [link for link in page.links() if not re.match(r"https?:|mailto:", link)]
    missing = []
    for link in here:
        path, _, anchor = link.partition("#")
        target = page.path.parent / path if path else page.path
        if not target.exists() or (anchor and anchor not in _anchors(read_page(target))):
            missing.append(link)
    assert missing == []


def _anchors(page: Page) -> set[str]:
    """Headings as GitHub names them."""
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for _, heading in page.headings
    }


@pytest.mark.parametrize("page", all_pages(), ids=_names)
def test_no_page_knows_the_machine_it_was_written_on(page: Page) -> None:
    text = page.path.read_text(encoding="utf-8")
    assert re.findall(r"(?<![\w.])/(?:work|root|home|tmp|Users|mnt)/\S*", text) == []


def test_both_languages_have_the_same_chapters() -> None:
    assert guide_names("en") == guide_names("zh")
    assert {path.name for path in GUIDE.iterdir()} == {"en", "zh"}


@pytest.mark.parametrize("pair", twins(), ids=_names)
def test_both_languages_have_the_same_build(pair: tuple[Page, Page]) -> None:
    english, chinese = pair
    assert [level for level, _ in english.headings] == [level for level, _ in chinese.headings]
    assert [(block.language, block.is_run) for block in english.blocks] == [
        (block.language, block.is_run) for block in chinese.blocks
    ]
    assert [command for _, command in english.commands()] == [
        command for _, command in chinese.commands()
    ]
    for one, other in zip(english.blocks, chinese.blocks, strict=True):
        where = f"{chinese.name}:{other.line}"
        match one.language:
            case "python":  # comments may differ, code may not
                assert ast.dump(ast.parse(one.text)) == ast.dump(ast.parse(other.text)), where
                assert (one.output is None) == (other.output is None), where
            case "yaml":
                assert read_yaml(one.text) == read_yaml(other.text), where
            case "text" if one.text != other.text:
                assert "│" in one.text or "  " in one.text, (
                    f"{where}: only annotated listings may differ"
                )


@pytest.mark.parametrize("pair", twins(), ids=_names)
def test_chinese_pages_are_chinese(pair: tuple[Page, Page]) -> None:
    headings = [
        heading for _, heading in pair[1].headings if not heading.startswith(("`", "0", "1"))
    ]
    assert all(re.search(r"[\u4e00-\u9fff]|^Headwise$", heading) for heading in headings)
    assert re.findall(r"[\u4e00-\u9fff][,;:?!]", "\n".join(line for _, line in pair[1].prose)) == []


def test_the_readme_is_short_and_names_the_two_commands() -> None:
    for path in READMES.values():
        text = path.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= LONGEST_README
        assert "make demo" in text
        assert "make test" in text


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_map_of_the_code_is_the_tree(language: str) -> None:
    folders = {
        path.name
        for path in (ROOT / "src" / "headwise").iterdir()
        if (path / "__init__.py").exists()
    }
    text = (GUIDE / language / "25-code-map.md").read_text(encoding="utf-8")
    assert {folder for folder in folders if f"  {folder}/" not in text} == set()


@pytest.mark.parametrize("page", all_pages(), ids=_names)
def test_source_files_that_a_page_names_exist(page: Page) -> None:
    """A path in code quotes such as `decoding/search/beam.py` is one of the package, the tests or
    the tree."""
    roots = (ROOT / "src" / "headwise", ROOT / "tests", ROOT)
    named = {
        name
        for _, line in page.prose
        for name in re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.(?:py|js))`", line)
    }
    assert [
        name for name in sorted(named) if not any((root / name).exists() for root in roots)
    ] == []


SHADOWING = {"numpy.py", "random.py", "sitecustomize.py", "torch.py"}
"""Files of this name in the user's directory, of which two pages tell what does not happen."""


def _bare_names(text: str) -> set[str]:
    """Python files that are named without their folder."""
    return set(re.findall(r"(?<![\w/.*-])[a-z_0-9]+\.py\b", text)) - SHADOWING


def test_files_that_are_named_without_their_folder_exist() -> None:
    """Of the pages, and of the headers, comments and messages of the package and the benchmarks."""
    code = [*(ROOT / "src").rglob("*.py"), *(ROOT / "benchmarks").glob("*.py")]
    there = {path.name for folder in ("tests", "examples") for path in (ROOT / folder).rglob("*")}
    there |= {path.name for path in code}
    pages = {page.name: "\n".join(line for _, line in page.prose) for page in all_pages()}
    texts = pages | {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in code
    }
    missing = {name: sorted(_bare_names(text) - there) for name, text in texts.items()}
    assert {name: files for name, files in missing.items() if files} == {}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_index_of_the_guide_has_every_chapter_under_its_title(language: str) -> None:
    index = read_page(GUIDE / language / "README.md")
    rows = [line for _, line in index.prose if re.match(r"\| \d+ \| ", line)]
    chapters = [name for name in guide_names(language) if name != "README.md"]
    assert [re.findall(r"\(([^)]+)\)", row)[0] for row in rows] == chapters
    assert [int(row.split("|")[1]) for row in rows] == [int(name[:2]) for name in chapters]


def test_every_shipped_recipe_is_named_in_the_guide() -> None:
    recipes = [path.stem for path in (ROOT / "recipes").glob("*.yaml")]
    for language in ("en", "zh"):
        text = (GUIDE / language / "04-recipes.md").read_text(encoding="utf-8")
        assert [name for name in recipes if f"`{name}`" not in text] == []


def test_make_targets_are_described_where_people_work() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for target in ("test", "prove", "bench", "format"):
        assert f"make {target}" in text


def test_the_changelog_is_at_the_packages_version() -> None:
    """The newest released version, with its date, is the package's; only `Unreleased` is above."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    heads = re.findall(r"^## (.+)$", text, flags=re.MULTILINE)
    released = heads[1:] if heads[0] == "Unreleased" else heads
    versions = [
        re.fullmatch(r"(\d+\.\d+\.\d+)(?: \(\d{4}-\d\d-\d\d\))?", head) for head in released
    ]
    assert None not in versions, released
    assert versions[0] is not None
    assert versions[0][1] == headwise.__version__
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'\nversion = "{headwise.__version__}"\n' in project


def test_decisions_are_numbered_and_whole() -> None:
    pages = [
        page
        for page in all_pages()
        if page.path.parent.name == "decisions" and page.path.name != "README.md"
    ]
    assert [int(page.path.name[:2]) for page in pages] == list(range(1, len(pages) + 1))
    index = (ROOT / "docs" / "decisions" / "README.md").read_text(encoding="utf-8")
    for page in pages:
        assert [heading for _, heading in page.headings][1:] == ["Context", "Choice", "Price"], (
            page.name
        )
        assert f"({page.path.name})" in index, page.name
