import errno
import json
import logging
from io import FileIO

from headwise.training import log_file as journal
from headwise.training.log_file import LogFile, read_log


def test_lines_are_valid_json_and_cut_back(tmp_path):
    log = LogFile(tmp_path / "log.jsonl")
    for step in (1, 2, 3):
        log.write({"kind": "train", "step": step, "loss": float("nan"), "word": "词"})
        log.write({"kind": "valid", "step": step, "loss": 1.5})
    log.sync()
    text = log.path.read_text(encoding="utf-8")
    assert "NaN" not in text
    assert [json.loads(line)["loss"] for line in text.splitlines()] == [None, 1.5] * 3
    with log.path.open("a", encoding="utf-8") as file:
        file.write('not json\n[1]\n{"kind": "train", "step": 1')  # the last line was cut by a kill
    log.cut_back(logged=2, validated=1)
    assert [(line["kind"], line["step"]) for line in read_log(log.path)] == [
        ("train", 1),
        ("valid", 1),
        ("train", 2),
    ]
    log.write({"kind": "train", "step": 3})
    log.close()
    assert read_log(log.path)[-1]["step"] == 3


def test_a_full_disk_loses_lines_but_not_the_file(tmp_path, monkeypatch, caplog):
    class Full(FileIO):
        full = False

        def write(self, content):
            return super().write(content[:5]) if Full.full else super().write(content)

    monkeypatch.setattr(journal, "FileIO", Full)
    log = LogFile(tmp_path / "log.jsonl")
    log.write({"kind": "train", "step": 1})
    Full.full = True
    with caplog.at_level(logging.WARNING):
        log.write({"kind": "train", "step": 2})
        log.write({"kind": "train", "step": 3})
    Full.full = False
    log.write({"kind": "train", "step": 4})
    log.close()
    assert caplog.text.count("the disk is full") == 1
    assert [line["step"] for line in read_log(log.path)] == [1, 4]
    assert errno.ENOSPC in journal.DISK_FULL
