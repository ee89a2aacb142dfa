"""`headwise serve`: models behind HTTP."""

import argparse
import sys

from headwise.cli.parser import add_computing
from headwise.errors import UsageError
from headwise.language import say


def add_parser(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "serve",
        help=say("put models behind HTTP: translate, score, look inside", "以 HTTP 提供模型：翻译、打分、观察内部"),
        description=say(
            "Loads bundles (translators, language models, word vectors, classifiers) and answers requests until it is stopped.\n\n"
            "  headwise serve runs/demo\n"
            '  curl localhost:8000/v1/translate --json \'{"text": "The dog is old."}\'',
            "加载模型（翻译、语言模型、词向量、分类）并应答请求，直到停止。\n\n"
            "  headwise serve runs/demo\n"
            '  curl localhost:8000/v1/translate --json \'{"text": "The dog is old."}\'',
        ),
    )
    parser.add_argument(
        "models",
        nargs="+",
        metavar="MODEL",
        help=say("a bundle or run, or NAME=DIR to name it", "模型或运行目录，或用 名称=目录 命名"),
    )
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help=say("address to listen on (default 127.0.0.1)", "监听地址（默认 127.0.0.1）"),
    )
    parser.add_argument(
        "--port",
        type=int,
        default=8000,
        metavar="N",
        help=say("port (default 8000; 0 takes a free one)", "端口（默认 8000；0 表示任选空闲端口）"),
    )
    add_computing(parser)


def run(arguments: argparse.Namespace) -> int:
    require_server()
    from headwise.serving.limits import ServerSettings
    from headwise.serving.loaded import load_models
    from headwise.serving.running import serve
    from headwise.settings import check_settings

    settings = check_settings(ServerSettings, {"host": arguments.host, "port": arguments.port})
    models = load_models(arguments.models, device=arguments.device, precision=arguments.precision)
    serve(models, settings, announce=_announce)
    return 0


def _announce(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def require_server() -> None:
    """FastAPI and uvicorn are an extra."""
    from importlib.util import find_spec

    if find_spec("fastapi") is None or find_spec("uvicorn") is None:
        raise UsageError(
            "serving needs fastapi and uvicorn, which are not installed; run: pip install 'headwise[serve]'",
            "提供服务需要 fastapi 与 uvicorn，尚未安装；请运行：pip install 'headwise[serve]'",
        )
