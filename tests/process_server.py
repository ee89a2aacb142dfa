"""Starts Python processes by forking one that has imported torch and this package.

A start of `python -m headwise` takes two to four seconds of a processor, nearly all of it for
imports. Run as a program, this file imports once and then forks for each request that reaches its
socket; `tests/processes.py` is the other side. A child sets arguments, environment, directory,
files, process group and signals as the request says, rebuilds the standard streams, runs the asked
module or code as `__main__`, and ends with its status. Until then nothing computes here: a process
whose thread pool has begun to work must not be forked.

The process that asks becomes the parent (it is a "subreaper" while it asks, which inherits the
children of processes that have ended), so it can wait for the child as for any other. A shell that
cannot, asks with `python -I -S process_server.py SOCKET words …`, which lends its files and ends
with the status of the child.
"""

import array
import fcntl
import json
import os
import signal
import socket
import sys
from typing import Any

PRELOADED = (
    "headwise.cli.main",
    "headwise.tasks.run",
    "headwise.tasks.translation.translator",
    "headwise.serving.uvicorn_server",
    "headwise.serving.work.loaded_models",
    "torch._dynamo",
)


def send(connection: socket.socket, request: dict[str, Any], files: list[int]) -> None:
    """A request with open files; text of any bytes."""
    content = json.dumps(request).encode("ascii")
    head = len(content).to_bytes(8, "little")
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))] if files else []
    connection.sendmsg([head], rights)
    connection.sendall(content)


def _receive(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    head, files, _, _ = socket.recv_fds(connection, 8, 64)
    content, length = b"", int.from_bytes(head, "little")
    while len(content) < length:
        content += connection.recv(length - len(content))
    return json.loads(content), files


def serve(place: str) -> dict[str, Any]:
    """Fork until standard input is closed; returns in each child, with what it has to run."""
    import gc
    import select
    from importlib import import_module

    import torch

    from headwise.cli.main import COMMANDS

    for name in (*PRELOADED, *(f"headwise.cli.{command}" for command in COMMANDS)):
        import_module(name)
    torch.set_num_threads(1)
    gc.collect()
    gc.freeze()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(place)
    listener.listen()
    print("ready", flush=True)
    while True:
        ready, _, _ = select.select([0, listener], [], [])
        if 0 in ready:
            os._exit(0)
        connection, _ = listener.accept()
        request, files = _receive(connection)
        reader, writer = os.pipe()
        between = os.fork()
        if between == 0:
            os.close(reader)
            child = os.fork()
            if child == 0:
                for opened in (listener, connection):
                    os.close(opened.detach())
                os.close(writer)
                _settle(request, files)
                return request
            if request["waits"]:
                for number in (writer, *files):
                    os.close(number)
                status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
                connection.sendall(status.to_bytes(4, "little", signed=True))
            else:
                os.write(writer, child.to_bytes(8, "little"))
            os._exit(0)
        for number in (writer, *files):
            os.close(number)
        found = os.read(reader, 8)
        os.close(reader)
        if not request["waits"]:
            os.waitpid(between, 0)  # from here on the child belongs to who asked
            connection.sendall(found)
        connection.close()
        while request["waits"] and os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _settle(request: dict[str, Any], files: list[int]) -> None:
    """What an interpreter finds when it starts."""
    targets: list[int] = request["files"]
    above = max([2, *targets]) + 1
    moved = [fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, above) for number in files]
    for number in (0, 1, 2, *files):
        os.close(number)
    for number, target in zip(moved, targets, strict=True):
        os.dup2(number, target)
        os.close(number)
    if request["session"]:
        os.setsid()
    else:
        os.setpgid(0, request["group"])
    if request["terminal"]:
        import termios

        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests themselves may run under nohup
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["directory"])
    _open_streams()


def _open_streams() -> None:
    """sys.stdin, sys.stdout and sys.stderr as Python opens them; None for a closed one."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        former = getattr(sys, f"__{name}__")
        try:
            stream: Any = open(  # noqa: SIM115 - it stays open
                number,
                "w" if number else "r",
                encoding=former.encoding,
                errors=former.errors,
                newline="\n" if number else None,
                closefd=False,
            )
            if number == 2 or (number == 1 and stream.isatty()):
                stream.reconfigure(line_buffering=True)
        except OSError:
            stream = None
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def run(request: dict[str, Any]) -> None:
    """`python [-P] -m module …`, `python -c code …` or `python file …`."""
    import runpy
    import types

    words: list[str] = request["words"]
    isolated = words[0] == "-P"
    words = words[isolated:]
    given = request["environment"].get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = [place for place in given if place and place not in sys.path]
    if words[0] == "-m":
        if not isolated:
            sys.path.insert(0, os.getcwd())
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    elif words[0] == "-c":
        if not isolated:
            sys.path.insert(0, "")
        sys.argv = ["-c", *words[2:]]
        sys.modules["__main__"] = main = types.ModuleType("__main__")
        exec(words[1], vars(main))
    else:
        if not isolated:
            sys.path.insert(0, os.path.dirname(os.path.abspath(words[0])))
        sys.argv = words
        runpy.run_path(words[0], run_name="__main__")


def _end_soon(request: dict[str, Any], code: object) -> None:
    """End as an interpreter does, but for taking apart every module, which costs more than all else
    together. What goes wrong is left to the interpreter, and so is the end of a shell's line."""
    import atexit
    import threading

    if request["waits"] or not isinstance(code, int | None):
        return
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            try:
                stream.flush()
            except (OSError, ValueError):
                return
    os._exit((code or 0) & 0xFF)


def is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def ask(place: str, words: list[str]) -> int:
    """The status of `python words …`, which reads and writes the files of this process."""
    files = [number for number in (0, 1, 2) if is_open(number)]
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(place)
        request = {
            "words": words,
            "environment": dict(os.environ),
            "directory": os.getcwd(),
            "files": files,
            "group": os.getpgrp(),
            "session": False,
            "terminal": False,
            "waits": True,
        }
        send(connection, request, files)
        for number in files:
            os.close(number)  # a reader of our output must see it end with the child
        status = int.from_bytes(connection.recv(4), "little", signed=True)
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    if len(sys.argv) > 2:
        os._exit(ask(sys.argv[1], sys.argv[2:]))
    asked = serve(sys.argv[1])
    try:
        run(asked)
    except SystemExit as stop:
        _end_soon(asked, stop.code)
        raise
    _end_soon(asked, None)
