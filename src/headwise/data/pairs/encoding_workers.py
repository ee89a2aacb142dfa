"""Encodes blocks of sentence pairs in several worker processes, in order.

Tokenisation takes most of the time of preparing a corpus (16 of 25 µs a pair), holds Python's
global lock, and needs only the text. A worker is this file run as a program: it reads the settings
of a `BlockEncoder` from a pipe, then encodes blocks until the pipe is closed. Nothing is pickled,
and a worker imports neither torch nor the caller's program. A small corpus is encoded by the
caller, in less time than a worker needs to start.

    caller → worker   JSON, hashes of held-out sentences, then blocks (all sources, all targets)
    worker → caller   counts, reasons, hashes, lengths and tokens of both sides

Tested against: the same blocks encoded by the caller; a worker that is killed.
"""

import contextlib
import json
import os
import queue
import struct
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import numpy as np

from headwise.child_processes import child_command, child_options
from headwise.data.pairs.encoding import CODES, BlockEncoder, EncodedBlock
from headwise.data.pairs.filtering import FilterSettings, LengthLimits
from headwise.data.pairs.held_out import HeldOut
from headwise.data.pairs.parallel_files import Pair
from headwise.data.shards import Ragged
from headwise.errors import HeadwiseError
from headwise.text.tokenizer_pair import load_tokenizers

MAX_PROCESSES = 32
BLOCKS_ALONE = 16
"""Blocks that the caller encodes before workers are started: a second or two of work."""
_SIZE = struct.Struct("<Q")
_COUNTS = struct.Struct("<4Q")


def encode_blocks(
    encoder: BlockEncoder,
    blocks: Iterable[Sequence[Pair]],
    *,
    tokenizers: Path,
    num_processes: int | None = None,
    alone: int = BLOCKS_ALONE,
) -> Iterator[tuple[Sequence[Pair], EncodedBlock]]:
    """Each block with its encoding, in order; `tokenizers` is the directory of the tokenizers."""
    remaining = iter(blocks)
    yield from ((block, encoder(block)) for block in islice(remaining, alone))
    count = num_processes or min(
        MAX_PROCESSES, len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1
    )
    following = next(remaining, None)
    if following is None:
        return
    if count == 1:
        yield from ((block, encoder(block)) for block in chain([following], remaining))
        return
    with _Workers(encoder, tokenizers, count) as workers:
        waiting: deque[tuple[Sequence[Pair], Future[EncodedBlock]]] = deque()
        for block in chain([following], remaining):
            waiting.append((block, workers.submit(block)))
            if len(waiting) > 2 * count:
                done, future = waiting.popleft()
                yield done, future.result()
        for done, future in waiting:
            yield done, future.result()


class _Workers:
    """Worker processes; one thread waits for each."""

    def __init__(self, encoder: BlockEncoder, tokenizers: Path, count: int) -> None:
        self._encoder, self._tokenizers = encoder, tokenizers
        self._threads = ThreadPoolExecutor(count)
        self._processes: list[subprocess.Popen[bytes]] = []
        self._free: queue.SimpleQueue[subprocess.Popen[bytes]] = queue.SimpleQueue()
        self._count, self._told = count, set[int]()

    def __enter__(self) -> Self:
        command = child_command("headwise.data.pairs.encoding_workers")
        for _ in range(self._count):
            # Ctrl-C reaches only the caller, which closes the pipes.
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **child_options()
            )
            self._processes.append(process)
            self._free.put(process)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._threads.shutdown(wait=error is None, cancel_futures=True)
        for process in self._processes:
            if error is not None:
                process.kill()
            assert process.stdin is not None
            assert process.stdout is not None
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(BrokenPipeError):  # it died with something unsent
                    pipe.close()
            process.wait()

    def submit(self, block: Sequence[Pair]) -> "Future[EncodedBlock]":
        return self._threads.submit(self._ask, block)

    def _ask(self, block: Sequence[Pair]) -> EncodedBlock:
        process = self._free.get()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            if process.pid not in self._told:
                self._told.add(process.pid)
                _send_encoder(process.stdin, self._encoder, self._tokenizers)
            lines = chain((pair.source for pair in block), (pair.target for pair in block))
            _send(process.stdin, "\n".join(lines).encode("utf-8", "surrogatepass"))
            encoded = _receive_block(process.stdout)
        except (BrokenPipeError, EOFError) as error:
            status = process.wait()
            raise HeadwiseError(
                f"a process that tokenises text ended by itself (status {status}); if the system "
                "killed it for want of memory, close other programs; then start again",
                f"一个分词进程意外结束（状态 {status}）；若是内存不足被系统终止，请关闭其他程序；"
                "然后重新开始",
            ) from error
        finally:
            # A dead worker too: the next caller gets an error instead of waiting for ever.
            self._free.put(process)
        for number, pair in enumerate(block):
            if pair.problem is not None:
                encoded.reasons[number] = CODES[pair.problem]
        return encoded


def _send(stream: IO[bytes], content: bytes) -> None:
    stream.write(_SIZE.pack(len(content)))
    stream.write(content)
    stream.flush()


def _receive(stream: IO[bytes]) -> bytes:
    size = _SIZE.unpack(_read_exactly(stream, _SIZE.size))[0]
    return _read_exactly(stream, size)


def _read_exactly(stream: IO[bytes], size: int) -> bytes:
    content = stream.read(size)
    if len(content) < size:
        raise EOFError
    return content


def _send_encoder(stream: IO[bytes], encoder: BlockEncoder, tokenizers: Path) -> None:
    description = {
        "tokenizers": str(tokenizers),
        "filter": encoder.settings.model_dump(mode="json"),
        "limits": [encoder.limits.source, encoder.limits.target],
    }
    _send(stream, json.dumps(description).encode())
    for side in (encoder.held_out.sources, encoder.held_out.targets):
        _send(stream, np.fromiter(side, dtype="<u8", count=len(side)).tobytes())


def _receive_encoder(stream: IO[bytes]) -> BlockEncoder:
    description = json.loads(_receive(stream))
    sources, targets = (
        frozenset(np.frombuffer(_receive(stream), dtype="<u8").tolist()) for _ in range(2)
    )
    return BlockEncoder(
        load_tokenizers(Path(description["tokenizers"])),
        FilterSettings(**description["filter"]),
        LengthLimits(*description["limits"]),
        HeldOut(sources, targets),
    )


def _send_block(stream: IO[bytes], block: EncodedBlock) -> None:
    counts = (
        len(block.reasons),
        len(block.source.lengths),
        len(block.source.tokens),
        len(block.target.tokens),
    )
    sides = [
        array.astype("<i4").tobytes()
        for side in (block.source, block.target)
        for array in (side.lengths, side.tokens)
    ]
    _send(
        stream,
        b"".join(
            [
                _COUNTS.pack(*counts),
                block.reasons.tobytes(),
                block.hashes.astype("<u8").tobytes(),
                *sides,
            ]
        ),
    )


def _receive_block(stream: IO[bytes]) -> EncodedBlock:
    content = _receive(stream)
    pairs, kept, source, target = _COUNTS.unpack_from(content)
    place = _COUNTS.size
    arrays = []
    for dtype, count in (
        ("u1", pairs),
        ("<u8", pairs),
        ("<i4", kept),
        ("<i4", source),
        ("<i4", kept),
        ("<i4", target),
    ):
        arrays.append(np.frombuffer(content, dtype=dtype, count=count, offset=place))
        place += arrays[-1].nbytes
    reasons, hashes, *sides = arrays
    return EncodedBlock(
        reasons.copy(), hashes, Ragged(sides[1], sides[0]), Ragged(sides[3], sides[2])
    )


def main() -> None:
    """The worker: read an encoder, then encode blocks until the input ends."""
    asked, answered = sys.stdin.buffer, sys.stdout.buffer
    encoder = _receive_encoder(asked)
    while True:
        try:
            content = _receive(asked)
        except EOFError:
            return
        lines = content.decode("utf-8", "surrogatepass").split("\n")
        half = len(lines) // 2
        _send_block(
            answered,
            encoder([Pair(*both, "", 0) for both in zip(lines[:half], lines[half:], strict=True)]),
        )


if __name__ == "__main__":
    main()
