"""Trains sentencepiece in a child process, which can be interrupted and reports progress.

sentencepiece trains for seconds on a small text and for an hour on a large one, and Python cannot
handle signals until its C++ code returns. The lines are therefore sent through a pipe to a child
(this file run as a program), which sends the model back. On Ctrl-C or SIGTERM the parent ends the
child. Progress is read from the log of sentencepiece: byte pair encoding counts its pieces up; the
unigram model starts with too many and drops a quarter of them in each round. A small text is
trained on in the same process, because starting another would take longer.

    parent → child   the options as JSON, then the lines, each with its length
    child → parent   "M" and the model, or "E" and the error of sentencepiece

Tested: the same model as in the same process, to the last byte; a signal; a child that is killed.
"""

import io
import json
import math
import re
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import IO, Any

import sentencepiece

from headwise.child_processes import child_command, child_options
from headwise.errors import HeadwiseError

SMALL_CHARACTERS = 50_000
"""A text of up to this many characters is trained on in this process, in less than a second."""
POLL_SECONDS = 0.25
QUIET, TALKING = 2, 0
_SIZE = struct.Struct("<I")
_BPE_SIZE = re.compile(rb"Added: .* size=(\d+)")
_UNIGRAM_SIZE = re.compile(rb"EM sub_iter=\d+ size=(\d+)")
_PRUNED_UNTIL = 1.1
"""The unigram model drops pieces until it has this many times the requested number."""

Watch = Callable[[float], None]
"""Called with the share that is done, from 0 to 1."""


class PieceTrainingError(Exception):
    """sentencepiece raised an error; the message is its own."""


def train_pieces(
    lines: Sequence[str], options: Mapping[str, Any], *, watch: Watch | None = None
) -> bytes:
    """The model sentencepiece learns from the lines with these options."""
    if sum(map(len, lines)) > SMALL_CHARACTERS:
        return _Child(options).learn(lines, watch or (lambda share: None))
    return _train(lines, options, log_level=QUIET)


def _train(lines: Iterable[str], options: Mapping[str, Any], *, log_level: int) -> bytes:
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines), model_writer=model, minloglevel=log_level, **options
        )
    except RuntimeError as error:
        raise PieceTrainingError(str(error)) from error
    return model.getvalue()


class _Child:
    """The child process and its messages so far."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = options
        self._answer = b""
        self._sizes: list[int] = []

    def learn(self, lines: Iterable[str], watch: Watch) -> bytes:
        process = subprocess.Popen(
            child_command("headwise.text.sentencepiece_training"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **child_options(),
        )
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        readers = [
            threading.Thread(target=self._read_answer, args=[process.stdout], daemon=True),
            threading.Thread(target=self._read_log, args=[process.stderr], daemon=True),
        ]
        for reader in readers:
            reader.start()
        try:
            self._send(process.stdin, lines)
            while readers[0].is_alive():
                watch(self._share())
                readers[0].join(POLL_SECONDS)
        except BaseException:  # a signal
            process.kill()
            raise
        finally:
            status = process.wait()
            for reader in readers:
                reader.join()
            for stream in (process.stdout, process.stderr):
                stream.close()
        return self._model(status)

    def _send(self, stream: IO[bytes], lines: Iterable[str]) -> None:
        try:
            with stream:
                _write(stream, json.dumps(self._options).encode())
                for line in lines:
                    _write(stream, line.encode("utf-8", "surrogatepass"))
        except BrokenPipeError:
            pass  # it has ended: its answer, or the want of one, says why

    def _read_answer(self, stream: IO[bytes]) -> None:
        self._answer = stream.read()

    def _read_log(self, stream: IO[bytes]) -> None:
        pattern = _BPE_SIZE if self._options["model_type"] == "bpe" else _UNIGRAM_SIZE
        for line in stream:
            if found := pattern.search(line):
                self._sizes = [*self._sizes[:1], int(found[1])]

    def _share(self) -> float:
        """The share that is done, according to the log."""
        if not self._sizes:
            return 0.0
        wanted, first, last = self._options["vocab_size"], self._sizes[0], self._sizes[-1]
        if self._options["model_type"] == "bpe":
            return min(last / wanted, 1.0)
        whole = math.log(max(first / (_PRUNED_UNTIL * wanted), 1.01))
        return min(math.log(max(first / last, 1.0)) / whole, 1.0)

    def _model(self, status: int) -> bytes:
        kind, content = self._answer[:1], self._answer[1:]
        if kind == b"M":
            return content
        if kind == b"E":
            raise PieceTrainingError(content.decode("utf-8", errors="replace"))
        raise HeadwiseError(
            f"the process that learns the vocabulary ended by itself (status {status}); if the "
            "system killed it for want of memory, lower text.sample (the lines it learns from) "
            "or close other programs; then start again",
            f"学习词表的进程意外结束（状态 {status}）；若是内存不足被系统终止，请减小 "
            "text.sample（学习所用的行数）或关闭其他程序；然后重新开始",
        )


def _write(stream: IO[bytes], content: bytes) -> None:
    stream.write(_SIZE.pack(len(content)))
    stream.write(content)


def _read(stream: IO[bytes]) -> Iterator[bytes]:
    while size := stream.read(_SIZE.size):
        yield stream.read(_SIZE.unpack(size)[0])


def main() -> None:
    """The child."""
    received = _read(sys.stdin.buffer)
    options = json.loads(next(received))
    try:
        lines = (line.decode("utf-8", "surrogatepass") for line in received)
        answer = b"M" + _train(lines, options, log_level=TALKING)
    except PieceTrainingError as error:
        answer = b"E" + str(error).encode()
    sys.stdout.buffer.write(answer)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
