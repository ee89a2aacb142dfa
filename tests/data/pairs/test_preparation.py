from pathlib import Path

import pytest

from headwise.data.pairs.choices import DataSettings
from headwise.data.pairs.preparation import describe_inputs, open_prepared, prepare_data, read_part
from headwise.errors import CheckpointError, DataError, SettingsError
from headwise.storage import manifest_digest, write_sealed_json
from headwise.text.choices import SentencePieceSettings
from tests.data.made import write_lines
from tests.text.corpus import chinese, english

TEXT = SentencePieceSettings(size=340)


@pytest.fixture
def corpus(tmp_path: Path) -> DataSettings:
    """400 good pairs and one of each defect, and a validation set with a duplicate that must
    stay.
    """
    sources, targets = english(), chinese()
    sources += [sources[0], "same", "", "nul\x00", "x" * 70_000, "q z " * 450, "a b"]
    targets += [targets[0], "same", "空", "空", "空", "空", "猫" * 110]
    write_lines(tmp_path / "train.en", sources)
    write_lines(tmp_path / "train.zh", targets)
    write_lines(tmp_path / "valid.en", sources[:5] * 2)
    write_lines(tmp_path / "valid.zh", targets[:5] * 2)
    return DataSettings.model_validate(
        {
            "source": "en",
            "target": "zh",
            "train": str(tmp_path / "train"),
            "valid": str(tmp_path / "valid"),
            "filter": {"max_ratio": 12},
        }
    )


def test_what_is_stored_is_what_was_kept(corpus: DataSettings, tmp_path: Path) -> None:
    stages = []
    prepared = prepare_data(
        corpus, TEXT, tmp_path / "data", progress=lambda *stage: stages.append(stage)
    )
    report = prepared.train.details["report"]
    assert (report["read"], report["kept"]) == (407, len(prepared.train))
    expected = (
        "duplicate",
        "identical",
        "empty",
        "control_characters",
        "long_line",
        "max_tokens",
        "max_ratio",
    )
    assert report["dropped"] == dict.fromkeys(expected, 1)
    texts = [
        prepared.tokenizers.source.decode(prepared.train.source(i).tolist())
        for i in range(len(prepared.train))
    ]
    assert texts == english()
    targets = [
        prepared.tokenizers.target.decode(prepared.train.target(i).tolist())
        for i in range(len(prepared.train))
    ]
    assert targets == chinese()
    assert len(prepared.valid) == 10
    assert stages == [("train", 407), ("valid", 10)]
    assert prepared.source_row % 2 == 0
    assert prepared.target_row == 128


def test_the_same_again_is_opened_and_a_change_is_made_anew(
    corpus: DataSettings, tmp_path: Path
) -> None:
    first = prepare_data(corpus, TEXT, tmp_path / "data")
    stages = []
    again = prepare_data(
        corpus, TEXT, tmp_path / "data", progress=lambda *stage: stages.append(stage)
    )
    assert not stages
    assert again.fingerprint == first.fingerprint
    path = tmp_path / "train.en"
    path.write_text(path.read_text().replace("cat", "cow"))
    changed = prepare_data(
        corpus, TEXT, tmp_path / "data", progress=lambda *stage: stages.append(stage)
    )
    assert stages
    assert changed.fingerprint != first.fingerprint


def test_damage_is_repaired_by_preparing_again(corpus: DataSettings, tmp_path: Path) -> None:
    first = prepare_data(corpus, TEXT, tmp_path / "data")
    (tmp_path / "data/train/source.tokens").write_bytes(b"xx")
    with pytest.raises(CheckpointError, match="it is damaged"):
        open_prepared(tmp_path / "data")
    assert prepare_data(corpus, TEXT, tmp_path / "data").fingerprint == first.fingerprint
    (tmp_path / "data/prepared.json").write_text('{"valid": false}')
    with pytest.raises(
        CheckpointError, match=r"a required entry is missing.; prepare the data again"
    ):
        open_prepared(tmp_path / "data")
    write_sealed_json(
        tmp_path / "data/prepared.json",
        {"inputs": "", "source_row": "x", "target_row": 1, "valid": True},
    )
    with pytest.raises(CheckpointError, match=r"an entry is not a number.; prepare the data again"):
        open_prepared(tmp_path / "data")


def test_nothing_left_shows_the_report(corpus: DataSettings, tmp_path: Path) -> None:
    strict = corpus.model_copy(
        update={"filter": corpus.filter.model_copy(update={"max_tokens": 1})}
    )
    with pytest.raises(
        DataError,
        match=r"no pair of data\.train is left after filtering; (.|\n)*read 407 pairs, kept 0",
    ):
        prepare_data(strict, TEXT, tmp_path / "data")
    assert not (tmp_path / "data/train").exists()
    assert not (tmp_path / "data/prepared.json").exists()


def test_unequal_files_leave_nothing(corpus: DataSettings, tmp_path: Path) -> None:
    with (tmp_path / "train.zh").open("a", encoding="utf-8") as file:
        file.write("多一行\n")
    with pytest.raises(DataError, match=r"has 407 lines, train\.zh has 408"):
        prepare_data(corpus, TEXT, tmp_path / "data")
    assert list((tmp_path / "data").iterdir()) == []


def test_a_vocabulary_too_large_leaves_nothing(corpus: DataSettings, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"text\.size is 90,000"):
        prepare_data(corpus, SentencePieceSettings(size=90_000), tmp_path / "data")
    assert list((tmp_path / "data").iterdir()) == []


def test_texts_of_a_part(corpus: DataSettings) -> None:
    assert [pair.source for pair in read_part(corpus, "valid")] == english()[:5] * 2


def test_the_test_set_decides_about_training_pairs_only_where_leaks_are_dropped(
    corpus: DataSettings, tmp_path: Path
) -> None:
    for name, lines in (
        ("one", (english()[7], chinese()[7])),
        ("two", (english()[11], chinese()[11])),
    ):
        write_lines(tmp_path / f"{name}.en", [lines[0]])
        write_lines(tmp_path / f"{name}.zh", [lines[1]])
    for dropping in (False, True):
        settings = [
            DataSettings.model_validate(
                {
                    **corpus.model_dump(),
                    "test": str(tmp_path / name),
                    "filter": {"drop_leaked": dropping},
                }
            )
            for name in ("one", "two")
        ]
        first, second = (describe_inputs(data, TEXT, 1) for data in settings)
        assert (first != second) == dropping


def test_words_that_are_kept_to_warn_do_not_make_it_another_vocabulary(
    corpus: DataSettings, tmp_path: Path
) -> None:
    """A run that began before they were kept must know its data again."""
    prepared = prepare_data(corpus, TEXT, tmp_path / "data")
    tokenizers = tmp_path / "data" / "tokenizers"
    assert prepared.vocabulary == manifest_digest(tokenizers, without=["known_words.json"])
    assert prepared.vocabulary != manifest_digest(tokenizers)
