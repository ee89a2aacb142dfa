"""`headwise key`: makes a key for clients of a server that `headwise serve --keys` started."""

import argparse
import sys
from pathlib import Path

from headwise.cli.options.paths import OutputFile
from headwise.cli.serve import require_server
from headwise.language import say


def add_parser(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "key",
        help=say("make an API key for the server", "为服务器生成 API 密钥"),
        description=say(
            "Makes a random key, adds its hash to FILE and prints the key: this is the only time "
            "it is shown. To revoke a key, delete its line and restart the server.\n\n  headwise "
            "key alice --keys keys.txt\n  headwise serve runs/demo --host 0.0.0.0 --keys keys.txt",
            "生成随机密钥，将其哈希加入 FILE，并打印密钥：仅此一次可见。收回密钥："
            "删除对应的行并重启服务器。\n\n  headwise key alice --keys keys.txt\n  headwise serve "
            "runs/demo --host 0.0.0.0 --keys keys.txt",
        ),
    )
    parser.add_argument("name", metavar="NAME", help=say("whose key it is", "密钥的持有者"))
    parser.add_argument(
        "--keys",
        required=True,
        type=OutputFile,
        metavar="FILE",
        help=say("file of hashes; created if missing", "哈希文件；不存在则新建"),
    )


def check(arguments: argparse.Namespace) -> None:
    require_server()
    from headwise.serving.http.api_keys import check_name

    check_name(arguments.name)


def run(arguments: argparse.Namespace) -> int:
    from headwise.serving.http.api_keys import add_key

    sys.stdout.write(add_key(Path(arguments.keys), arguments.name) + "\n")
    return 0
