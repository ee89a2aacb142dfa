import json

import pytest

from headwise.data.known.coarse_wsd import WORDS, join_senses

AT = "https://example.org/*/train.data.txt"


def taken_apart(rows: list[tuple[str, str, str]]) -> dict[str, bytes]:
    """The publisher's files of a table of (word, sense, place and sentence)."""
    files = {}
    for word in WORDS:
        own = [row for row in rows if row[0] == word]
        names = sorted({sense for _, sense, _ in own})
        folder = f"https://example.org/{word}/"
        files[folder + "classes_map.txt"] = json.dumps(
            {str(n): name for n, name in enumerate(names)}
        ).encode()
        files[folder + "train.gold.txt"] = "\n".join(
            str(names.index(sense)) for _, sense, _ in own
        ).encode()
        files[folder + "train.data.txt"] = "".join(f"{line}\n" for _, _, line in own).encode()
    return files


ROWS = [
    (word, f"{word}_{n % 2}", f"{n}\tsaw \u2028 the {word} .") for word in WORDS for n in range(3)
]


def test_the_table_comes_back() -> None:
    table = join_senses(taken_apart(ROWS).__getitem__, AT)
    assert table.decode() == "".join("\t".join(row) + "\n" for row in ROWS)


@pytest.mark.parametrize(
    ("name", "content"),
    [("train.gold.txt", b"0"), ("train.gold.txt", b"0\n1\n7"), ("classes_map.txt", b"no names")],
)
def test_folders_that_do_not_fit_give_no_table(name: str, content: bytes) -> None:
    files = {**taken_apart(ROWS), f"https://example.org/bank/{name}": content}
    assert join_senses(files.__getitem__, AT) == b""
