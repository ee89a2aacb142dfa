import json
from pathlib import Path

import pytest

from headwise.errors import CheckpointError
from headwise.text.choices import (
    CharacterSettings,
    SentencePieceSettings,
    WordSettings,
    learn_tokenizers,
)
from headwise.text.tokenizer_pair import load_tokenizers

from .corpus import chinese, english

KINDS = [
    SentencePieceSettings(size=330),
    WordSettings(lowercase=True),
    CharacterSettings(shared=False),
]


def save(settings, directory: Path):
    pair = learn_tokenizers(settings, english(), chinese())
    pair.save(directory)
    return pair


@pytest.mark.parametrize("settings", KINDS, ids=lambda s: s.kind)
def test_saved_and_loaded_is_the_same(settings, tmp_path: Path) -> None:
    pair, loaded = save(settings, tmp_path), load_tokenizers(tmp_path)
    assert loaded.shared == pair.shared
    for line in [*english(11), *chinese(11), "unseen words 🙂"]:
        assert loaded.source.encode(line) == pair.source.encode(line)
        assert loaded.target.encode(line) == pair.target.encode(line)
        assert loaded.source.decode(loaded.source.encode(line)) == pair.source.decode(
            pair.source.encode(line)
        )


def test_a_probe_that_gives_other_ids_stops_the_load(tmp_path: Path) -> None:
    save(KINDS[0], tmp_path)
    probes = json.loads((tmp_path / "probes.json").read_text())
    probes[-1]["ids"][0] += 1
    (tmp_path / "probes.json").write_text(json.dumps(probes))
    with pytest.raises(CheckpointError, match="gives other ids than when it was saved"):
        load_tokenizers(tmp_path)


def test_another_tokenizer_in_its_place_is_noticed(tmp_path: Path) -> None:
    for name, lines in (("one", english()), ("two", chinese())):
        (tmp_path / name).mkdir()
        learn_tokenizers(SentencePieceSettings(size=300), lines, []).save(tmp_path / name)
    (tmp_path / "one/shared/pieces.model").write_bytes(
        (tmp_path / "two/shared/pieces.model").read_bytes()
    )
    with pytest.raises(CheckpointError, match="gives other ids"):
        load_tokenizers(tmp_path / "one")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tokenizers.json", "{}"),
        ("tokenizers.json", "[]"),
        ("probes.json", "[]"),
        ("probes.json", '[{"side": "other", "text": "a", "ids": []}]'),
        ("probes.json", "[3]"),
        ("shared/pieces.json", "{}"),
        ("shared/pieces.json", '{"kind": 1'),
    ],
)
def test_damage_is_a_checkpoint_error(name: str, content: str, tmp_path: Path) -> None:
    save(KINDS[0], tmp_path)
    (tmp_path / name).write_text(content)
    with pytest.raises(CheckpointError, match="is damaged"):
        load_tokenizers(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"kind": "runes"}', "is damaged"),
        ('{"kind": "words", "entries": ["a", "a"]}', "not a words vocabulary"),
        ('{"kind": "words", "entries": [1]}', "not a words vocabulary"),
        ('{"kind": "characters"}', "not a characters vocabulary"),
    ],
)
def test_a_damaged_vocabulary(content: str, message: str, tmp_path: Path) -> None:
    save(WordSettings(shared=True), tmp_path)
    (tmp_path / "shared/vocabulary.json").write_text(content)
    with pytest.raises(CheckpointError, match=message):
        load_tokenizers(tmp_path)


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="cannot be read"):
        load_tokenizers(tmp_path)
