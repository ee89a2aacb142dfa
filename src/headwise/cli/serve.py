"""`headwise serve`: answers requests for translations and other results of models over HTTP."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headwise.cli.options.memory import StorePath
from headwise.cli.options.model_paths import ServedModelPath
from headwise.cli.options.parser import add_computing
from headwise.cli.options.paths import Input
from headwise.cli.terminal.wrapping import write_line
from headwise.errors import StoppedBySignal, UsageError
from headwise.language import say


def add_parser(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "serve",
        help=say(
            "serve models over HTTP: translate, score, inspect",
            "以 HTTP 提供模型：翻译、打分、观察内部",
        ),
        description=say(
            "Loads bundles (translators, language models, word vectors, classifiers) and answers "
            "requests until it is stopped. Requests that arrive at the same time share batches. "
            "After SIGTERM accepted requests are still answered.\n\n"
            "  headwise serve runs/demo\n"
            '  curl localhost:8000/v1/translate --json \'{"text": "The dog is old."}\'\n\n'
            "Requests from other machines need a key:\n\n"
            "  headwise key alice --keys keys.txt\n"
            "  headwise serve runs/demo other=runs/zh-en --host 0.0.0.0 --keys keys.txt\n"
            '  curl HOST:8000/v1/models -H "Authorization: Bearer hw_…"\n\n'
            "Addresses: / (the page of `headwise explore`); /v1/translate, /v1/trace, /v1/row, "
            "/v1/occlude, /v1/time, /v1/wordings, /v1/memory and /v1/exposure (translators), "
            "/v1/score and /v1/predict (language models), "
            "/v1/vectors (word vectors), /v1/attend, /v1/positions, "
            "/v1/patterns, /v1/kinds and /v1/costs, "
            "/v1/runs and /v1/runs/log (--runs), /v1/models, /translate, /detect and /languages "
            "(LibreTranslate), /healthz, /readyz, /metrics; /openapi.json describes them all.",
            "加载模型（翻译、语言模型、词向量、分类）并应答请求，直到停止。"
            "同时到来的请求合并成批。收到 SIGTERM 时先完成已接受的请求。\n\n"
            "  headwise serve runs/demo\n"
            '  curl localhost:8000/v1/translate --json \'{"text": "The dog is old."}\'\n\n'
            "本机以外的访问必须持有密钥：\n\n"
            "  headwise key alice --keys keys.txt\n"
            "  headwise serve runs/demo other=runs/zh-en --host 0.0.0.0 --keys keys.txt\n"
            '  curl HOST:8000/v1/models -H "Authorization: Bearer hw_…"\n\n'
            "地址：/（`headwise explore` 的页面）；/v1/translate、/v1/trace、/v1/row、"
            "/v1/occlude、/v1/time、/v1/wordings、/v1/memory 与 /v1/exposure（翻译模型），"
            "/v1/score 与 /v1/predict（语言模型），/v1/vectors（词向量），"
            "/v1/attend、/v1/positions、/v1/patterns、/v1/kinds 与 /v1/costs，/v1/runs 与 "
            "/v1/runs/log（--runs），/v1/models、/translate、/detect 与 "
            "/languages（LibreTranslate）、/healthz、/readyz、/metrics；/openapi.json 有全部说明。",
        ),
    )
    parser.add_argument(
        "models",
        nargs="+",
        type=ServedModelPath,
        metavar="MODEL",
        help=say("a bundle or run, or NAME=DIR to name it", "模型或运行目录，或用 名称=目录 命名"),
    )
    add_stores(parser)
    add_listening(parser)
    _add_limits(parser)
    add_computing(parser)


def add_stores(parser: argparse.ArgumentParser) -> None:
    """The option for memories: a store finds the model that it was built with."""
    parser.add_argument(
        "--memory",
        dest="stores",
        action="append",
        default=[],
        type=StorePath,
        metavar="STORE",
        help=say(
            "let stored examples take part in translations (headwise memory build); for each model "
            "its own. Whoever may ask the server can read the stored sentences",
            "让存储的例子参与翻译（见 headwise memory build）；每个模型用自己的存储。"
            "能访问服务器的人都能读到其中的句子",
        ),
    )


def load_given(arguments: argparse.Namespace, given: Sequence[str]) -> Any:
    """The models, with their memories."""
    from headwise.serving.work.loaded_models import load_models
    from headwise.serving.work.memories import attach_memories

    models = load_models(given, device=arguments.device, precision=arguments.precision)
    return attach_memories(models, arguments.stores)


def add_listening(parser: argparse.ArgumentParser) -> None:
    """Options for the address, and for who may connect."""
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help=say(
            "address to listen on (default 127.0.0.1: this machine only)",
            "监听地址（默认 127.0.0.1：仅限本机）",
        ),
    )
    parser.add_argument(
        "--port",
        type=int,
        default=8000,
        metavar="N",
        help=say(
            "port (default 8000; 0 takes a free one)", "端口（默认 8000；0 表示任选空闲端口）"
        ),
    )
    parser.add_argument(
        "--keys",
        type=Input,
        metavar="FILE",
        help=say(
            "require one of these keys (made by `headwise key`)",
            "要求出示其中的密钥（由 `headwise key` 生成）",
        ),
    )
    parser.add_argument(
        "--allow-host",
        dest="hosts",
        action="append",
        default=[],
        metavar="NAME",
        help=say("also answer to this host name; * for any", "也以此主机名应答；* 表示任意"),
    )
    parser.add_argument(
        "--runs",
        metavar="DIR",
        help=say(
            "directory of runs to show on the page; nothing outside it is read",
            "可在页面上观看的训练目录；不读其外的文件",
        ),
    )


def _add_limits(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--rate",
        type=int,
        metavar="N",
        help=say(
            "requests per minute for each key or address (default 60; on a loopback address 0, no "
            "limit)",
            "每个密钥或地址每分钟的请求数（默认 60；在回环地址上为 0，即不限）",
        ),
    )
    parser.add_argument(
        "--queue",
        type=int,
        default=64,
        metavar="N",
        help=say(
            "requests that wait for a model; further ones get status 503 (default 64)",
            "每个模型同时处理的请求数；超出者得 503（默认 64）",
        ),
    )
    parser.add_argument(
        "--deadline",
        type=float,
        default=30.0,
        metavar="SECONDS",
        help=say(
            "the longest time for a request; after it status 504 (default 30)",
            "单个请求的最长时间；超过则 504（默认 30）",
        ),
    )


def check(arguments: argparse.Namespace) -> None:
    require_server()
    from headwise.serving.http.api_keys import check_keys_given

    check_keys_given(_settings(arguments))


def _settings(arguments: argparse.Namespace) -> Any:
    limits = {
        "queue": arguments.queue,
        "deadline_seconds": arguments.deadline,
        "rate": arguments.rate,
    }
    return server_settings(arguments, **limits)


def run(arguments: argparse.Namespace) -> int:
    from headwise.serving.uvicorn_server import serve

    settings = _settings(arguments)
    models = load_given(arguments, arguments.models)
    try:
        serve(models, settings, announce=announce, use_processes=True)
    except StoppedBySignal as stop:
        # Every reply is sent and every worker has ended. Python would still take apart torch and
        # the model, which takes seconds on a busy machine, while a service manager waits.
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(int(stop.code or 0))
    return 0


def server_settings(
    arguments: argparse.Namespace,
    *,
    queue: int = 64,
    deadline_seconds: float = 30.0,
    rate: int | None = None,
) -> Any:
    """The options of `add_listening` and the limits, as checked settings."""
    from headwise.serving.http.server_settings import ServerSettings
    from headwise.settings import check_settings

    if arguments.runs is not None and not Path(arguments.runs).is_dir():
        raise UsageError(
            f"--runs {arguments.runs!r} is no directory; give the one that holds your runs, e.g. "
            "--runs runs",
            f"--runs {arguments.runs!r} 不是目录；请给出存放训练的目录，例如 --runs runs",
        )
    given = {
        "host": arguments.host,
        "port": arguments.port,
        "keys": arguments.keys,
        "hosts": tuple(arguments.hosts),
        "queue": queue,
        "deadline_seconds": deadline_seconds,
        "rate": rate,
        "runs": arguments.runs,
    }
    return check_settings(ServerSettings, given)


def announce(line: str) -> None:
    write_line(line, sys.stderr)
    sys.stderr.flush()


KEPT_KERNELS = "256"
"""oneDNN caches compiled code for each shape of a product, 1,024 entries by default. Batches of a
server have many shapes: its memory grew from 330 to 740 MB in 18,000 requests. With 64 entries it
is a third slower, with 256 as fast (docs/experiments/serving.md)."""


def require_server() -> None:
    """Check that FastAPI and uvicorn are installed, and limit the caches of torch before it is
    imported.
    """
    from importlib.util import find_spec

    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", KEPT_KERNELS)
    os.environ.setdefault("LRU_CACHE_CAPACITY", KEPT_KERNELS)

    if find_spec("fastapi") is None or find_spec("uvicorn") is None:
        raise UsageError(
            "serving needs fastapi and uvicorn, which are not installed; run: pip install "
            "'headwise[serve]'",
            "`headwise serve` 需要 fastapi 与 uvicorn，尚未安装；请运行：pip install "
            "'headwise[serve]'",
        )
