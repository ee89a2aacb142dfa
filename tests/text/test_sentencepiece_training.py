"""Pieces learnt in a process of their own: the same model, told as it goes, ended by a signal."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headwise.errors import HeadwiseError, SettingsError
from headwise.text import sentencepiece_training as piece_training
from headwise.text.chinese_words import marker_of
from headwise.text.sentencepiece_tokenizer import Cuts, PieceTokenizer, learn_pieces, weigh_lines
from tests.text.corpus import chinese, english

LONG = """
import random, sys
from headwise.text.sentencepiece_tokenizer import learn_pieces
draw = random.Random(1)
words = ["".join(draw.choices("abcdefghijklmnop", k=17)) for _ in range(13 * 20_000)]
lines = [" ".join(words[13 * i : 13 * (i + 1)]) for i in range(20_000)]
def watch(share):
    print("at work", flush=True)
options = {"byte_fallback": True, "coverage": 1.0, "normalization": "identity"}
learn_pieces(lines, algorithm="unigram", size=300, watch=watch, **options)
"""


def learn(
    lines: list[str], algorithm: str, *, size: int = 400, han: bool = False, **more: object
) -> PieceTokenizer:
    return learn_pieces(
        lines,
        algorithm=algorithm,
        size=size,
        byte_fallback=True,
        coverage=0.9995,
        normalization="identity",
        cuts=Cuts(marker_of("words", None)) if han else Cuts(),
        **more,  # type: ignore[arg-type]
    )


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(piece_training, "SMALL_CHARACTERS", 0)


@pytest.mark.parametrize(
    ("algorithm", "han"), [("bpe", False), ("unigram", False), ("unigram", True)]
)
def test_a_process_of_its_own_gives_the_same_bytes(
    algorithm: str, han: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [*english(), *chinese(), "a tab\tand ▁ a mark", "a\rreturn and \u2028 a separator"]
    here = learn(lines, algorithm, han=han)
    monkeypatch.setattr(piece_training, "SMALL_CHARACTERS", 0)
    shares: list[float] = []
    assert learn(lines, algorithm, han=han, watch=shares.append).model == here.model
    assert shares
    assert all(0 <= share <= 1 for share in shares)


def test_the_share_is_read_from_the_log() -> None:
    bpe = piece_training._Child({"model_type": "bpe", "vocab_size": 200})
    assert bpe._share() == 0
    bpe._read_log(
        [b"bpe_model_trainer.cc:321] Added: freq=713 size=40 all=2894 active=2821 piece=xy\n"]
    )  # type: ignore[arg-type]
    assert bpe._share() == 0.2
    unigram = piece_training._Child({"model_type": "unigram", "vocab_size": 100})
    sizes = [1760, 880, 440, 220, 110]
    told = []
    for size in sizes:
        unigram._read_log([b"EM sub_iter=1 size=%d obj=8.1 num_tokens=5\n" % size])  # type: ignore[arg-type]
        told.append(unigram._share())
    assert told == pytest.approx([0, 0.25, 0.5, 0.75, 1])


@pytest.mark.usefixtures("apart")
def test_a_refusal_is_told_in_our_words() -> None:
    with pytest.raises(
        SettingsError,
        match=r"text.size is 90,000, but this text has room for a vocabulary of at most",
    ):
        learn(english(), "unigram", size=90_000)


@pytest.mark.usefixtures("apart")
def test_a_process_that_is_killed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    start = subprocess.Popen

    def start_and_kill(*arguments: object, **options: object) -> subprocess.Popen[bytes]:
        process = start(*arguments, **options)  # type: ignore[call-overload]
        process.kill()
        return process

    monkeypatch.setattr(piece_training.subprocess, "Popen", start_and_kill)
    with pytest.raises(HeadwiseError, match=r"learns the vocabulary ended by itself \(status -9\)"):
        learn(english(), "bpe")


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGTERM, -signal.SIGTERM), pytest.param(signal.SIGINT, None, marks=pytest.mark.prove)],
)
def test_a_signal_ends_it(number: int, status: int | None) -> None:
    """The text would take minutes; whoever waits is woken at once, and the child ends with its
    parent.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", LONG], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "at work\n"
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    assert len(children) == 1
    process.send_signal(number)
    process.wait(timeout=20)
    process.stdout.close()
    assert status is None or process.returncode == status
    until = time.monotonic() + 20
    while Path(f"/proc/{children[0]}/stat").exists():
        state = Path(f"/proc/{children[0]}/stat").read_text().rpartition(")")[2].split()[0]
        assert state == "Z" or time.monotonic() < until
        if state == "Z":
            break
        time.sleep(0.05)


def test_repeated_lines_weigh_unless_most_are_repetitions() -> None:
    lines = english(50)
    assert len(set(lines)) == 50
    assert weigh_lines([*lines, *lines[:49]]) == [*lines, *lines[:49]]
    assert weigh_lines(lines * 2) == lines
    assert weigh_lines([line for line in lines for _ in range(7)]) == lines
    assert weigh_lines([]) == []
    assert learn(lines * 40, "unigram", size=330).model == learn(lines, "unigram", size=330).model
