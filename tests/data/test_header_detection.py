import pytest

from headwise.data.header_detection import heads_labels, heads_pairs, heads_texts, pick_cells


@pytest.mark.parametrize(
    ("cells", "is_heading"),
    [
        (("en", "de"), True),
        ((" EN", "German "), True),
        (("source", "target"), True),
        (("src", "de"), True),
        (("de", "en"), False),
        (("English is hard.", "German"), False),
        (("en", ""), False),
        (("French", "de"), False),
    ],
)
def test_names_of_languages_and_roles(cells: tuple[str, str], is_heading: bool) -> None:
    assert heads_pairs(*cells, source="en", target="de-AT") == is_heading


def test_other_tables() -> None:
    assert heads_labels("Sentence", "label")
    assert not heads_labels("Sentence", "1")
    assert heads_texts("中文", language="zh")
    assert not heads_texts("中文书", language="zh")


def test_cells_that_are_not_there() -> None:
    assert pick_cells("a\tb\tc", (2, 0)) == ["c", "a"]
    assert pick_cells("a\tb", (0, 2)) is None
    assert pick_cells(None, (0,)) is None
