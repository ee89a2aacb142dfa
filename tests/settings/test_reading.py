from pathlib import Path

import pytest

from headwise.errors import SettingsError
from headwise.language import use_language
from headwise.settings import MAX_RECIPE_BYTES, read_settings_file, read_yaml


def test_numbers_and_words_are_read_as_people_write_them() -> None:
    text = "a: 1e-3\nb: no\nc: true\nd: 3.0e-3\ne: 2024-01-02\nf: [1, 2.5, null]\ng: off\nh: 1_000"
    expected = {
        "a": 0.001,
        "b": "no",
        "c": True,
        "d": 0.003,
        "e": "2024-01-02",
        "f": [1, 2.5, None],
        "g": "off",
    }
    assert read_yaml(text) == {**expected, "h": 1000}
    assert read_yaml("[010, 12:30, 0x1f, 0b11, -7, +0.5, .5, 1., .inf, 190:20:30.15, '1']") == [
        "010", "12:30", "0x1f", "0b11", -7, 0.5, 0.5, 1.0, float("inf"), "190:20:30.15", "1",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: &x [1]\nb: *x", r"here:2: not readable as YAML: aliases \(\*name\) are not allowed"),
        ("a: 1\nb: 2\na: 3", "here:3: .*the key 'a' stands here twice"),
        ("a: {b: 1, b: 2}", "here:1: .*the key 'b' stands here twice"),
        ("1: 2", "here:1: .*the key 1 must be a word"),
        (
            "a: !!python/object/apply:os.system [ls]",
            r"here:1: .*tags .tag:yaml.org,2002:python/object/apply:os.system. are not",
        ),
        (
            "a: 1\nb: !!python/name:os.system",
            r"here:2: .*tags .tag:yaml.org,2002:python/name:os.system. are not allowed",
        ),
        ("a: !!int '59:59'", "here:1: .*tags .tag:yaml.org,2002:int. are not allowed"),
        ("a: ! {b: 1}", "here:1: .*tags .!. are not allowed"),
        ("a: [" + "1, " * 10_001, "here:1: .*there are more than 10,000 entries"),
        ("a: 1" + "0" * 5000, "here: .*a number has thousands of digits"),
        ("a: 1\nb: [1", "here:2: .*expected ',' or '\\]'"),
        ("a: 1\nb: c\0d", "here:2: .*special characters are not allowed"),
        ("a: " + "[" * 5000, "here: .*nested too deeply"),
    ],
)
def test_what_yaml_could_do_to_us_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        read_yaml(text, file="here")


def test_a_mistake_is_explained_in_chinese() -> None:
    use_language("zh")
    with pytest.raises(SettingsError) as caught:
        read_yaml("a: 1\na: 2", file="here")
    assert str(caught.value).startswith("here:2: 不是可读的 YAML：键 'a' 出现了两次")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty; a recipe starts with"),
        (b"- 1\n- 2\n", "holds no `key: value` lines"),
        (b"just words", "holds no `key: value` lines"),
        (b"\xff\xfe\x00a", "is not UTF-8 text; save the recipe as UTF-8"),
        ("任务: 翻译".encode("gb18030"), "is not UTF-8 text"),
        (
            b"a: 1\n" * (MAX_RECIPE_BYTES // 4),
            r"the recipe has 1,310,720 bytes; at most 1,048,576 are read",
        ),
    ],
)
def test_a_file_that_is_no_recipe(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_bytes(content)
    with pytest.raises(SettingsError, match=message) as caught:
        read_settings_file(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    (tmp_path / "recipe.yaml").write_bytes(b"\xef\xbb\xbftask: translation\r\n")
    assert read_settings_file(tmp_path / "recipe.yaml") == {"task": "translation"}


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(
        SettingsError,
        match=r"cannot be read .No such file or directory.; give the path of a recipe",
    ):
        read_settings_file(tmp_path / "none.yaml")
    with pytest.raises(SettingsError, match=r"cannot be read .Is a directory."):
        read_settings_file(tmp_path)


def test_who_changes_what_was_read_changes_nothing_for_the_next_reader() -> None:
    text = "a: {b: [1, 2]}"
    read_yaml(text)["a"]["b"].append(3)
    assert read_yaml(text) == {"a": {"b": [1, 2]}}
