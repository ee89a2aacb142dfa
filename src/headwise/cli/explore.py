"""`headwise explore`: opens a web page that shows how a model attends, searches and decides."""

import argparse
import sys
import threading
import webbrowser
from pathlib import Path
from typing import get_args

from headwise.cli.options.model_paths import ServedModelPath
from headwise.cli.options.parser import add_computing
from headwise.cli.serve import (
    add_listening,
    add_stores,
    announce,
    load_given,
    require_server,
    server_settings,
)
from headwise.errors import UsageError
from headwise.language import say

DEMO = Path("runs/demo")
USUAL_PORT = 8000


def add_parser(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "explore",
        help=say(
            "explore on a web page how a model attends, searches and decides",
            "在网页上观察模型的注意力、搜索与决策过程",
        ),
        description=say(
            "Opens a page in your browser that only this machine can reach. Translate a sentence "
            "on it and see which words attend to which, every head of every layer, the most "
            "probable tokens at each step, the tree of the beam search, and how much each source "
            "word matters. Nothing is loaded from the network.\n\nWithout MODEL it shows the "
            "demo's model and offers to train it if there is none. Your own models, one or "
            "several:\n\n  headwise explore\n  headwise explore runs/mine\n  headwise explore "
            "de=runs/a zh=runs/b\n  headwise explore runs/mine --no-browser --port 0\n\nEvery "
            "figure can be saved (SVG, PNG, CSV, JSON), opened as a table, linked to, and "
            "requested again with the curl or Python line below it. The page is also at / of "
            "`headwise serve`.",
            "在浏览器中打开一个只有本机能访问的页面。可以翻译一个句子，查看哪个词关注哪个词、"
            "每一层的每个头、每一步最可能的词元、束搜索的树，以及每个源词有多重要。"
            "不从网络加载任何东西。\n\n不给模型时展示演示模型，若没有则可在页面上训练；"
            "也可以给出自己的一个或多个模型：\n\n  headwise explore\n  headwise explore "
            "runs/mine\n  headwise explore de=runs/a zh=runs/b\n  headwise explore runs/mine "
            "--no-browser --port 0\n\n每幅图都可以保存（SVG、PNG、CSV、JSON）、以表格打开、"
            "生成链接，并给出重新请求它的 curl 与 Python 代码。`headwise serve` 的 / "
            "也是这个页面。",
        ),
    )
    parser.add_argument(
        "models",
        nargs="*",
        type=ServedModelPath,
        metavar="MODEL",
        help=say(
            "bundles or runs, or NAME=DIR (default: the demos in runs/demo and runs/demo-XX-YY)",
            "模型或运行目录，或 名称=目录（默认：runs/demo 与 runs/demo-XX-YY 中的演示）",
        ),
    )
    add_stores(parser)
    add_listening(parser)
    parser.add_argument(
        "--no-browser",
        action="store_true",
        help=say("print the address of the page, open no browser", "只说明页面地址，不打开浏览器"),
    )
    add_computing(parser)


def find_demos(directory: Path) -> list[str]:
    """The models that `headwise demo` or the page has trained: `directory` and its siblings named
    after a pair of languages.
    """
    from headwise.serving.work.demo_training import Pair
    from headwise.storage import MANIFEST

    places = [directory, *(Path(f"{directory}-{pair}") for pair in get_args(Pair))]
    return [str(place) for place in places if (place / "model" / MANIFEST).is_file()]


def check(arguments: argparse.Namespace) -> None:
    require_server()
    from headwise.serving.http.api_keys import check_keys_given

    check_keys_given(server_settings(arguments))


def run(arguments: argparse.Namespace) -> int:
    from headwise.serving.uvicorn_server import open_socket, serve

    if arguments.runs is None and Path("runs").is_dir():
        arguments.runs = "runs"
    settings = server_settings(arguments)
    given = list(arguments.models)
    if not given:
        # The directory of the demo may not exist yet, but its curves will appear there.
        settings = settings.model_copy(update={"demo": DEMO, "runs": settings.runs or DEMO.parent})
        given = find_demos(DEMO)
    models = load_given(arguments, given)
    if settings.port == USUAL_PORT:
        # Another program may use the port; then a free one is chosen.
        try:
            open_socket(settings).close()
        except UsageError:
            settings = settings.model_copy(update={"port": 0})

    def opened(address: str) -> None:
        announce(
            say(
                f"the explorer is at {address}   (Ctrl-C ends it)",
                f"探索页面：{address}   （Ctrl-C 结束）",
            )
        )
        if not arguments.no_browser and sys.stderr.isatty():
            threading.Timer(0.5, webbrowser.open, [address]).start()

    serve(models, settings, announce=announce, opened=opened)
    return 0
