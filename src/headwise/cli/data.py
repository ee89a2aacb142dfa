"""`headwise data`: lists known public corpora, downloads them by checksum, checks those on disk."""

import argparse
import json
import sys
from typing import Any

from headwise.cli.terminal.wrapping import write_line
from headwise.language import say


def add_parser(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "data",
        help=say("list, fetch and check known public corpora", "列出、获取并检查公开语料"),
        description=say(
            "Known corpora are fetched from their publishers on your own network and checked by "
            "SHA-256, or taken from a local mirror named by HEADWISE_DATA. Recipes use them as "
            "known:NAME/PATH.\n\n  headwise data list\n  headwise data fetch multi30k\n  headwise "
            "train multi30k-en-de --run runs/multi30k",
            "公开语料经你自己的网络从发布者获取并按 SHA-256 校验；或由 HEADWISE_DATA "
            "指定的本地镜像提供。配方中写作 known:NAME/PATH。\n\n  headwise data list\n  headwise "
            "data fetch multi30k\n  headwise train multi30k-en-de --run runs/multi30k",
        ),
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar=say("ACTION", "操作"))
    texts = {
        "list": say("names, sizes, licences", "名称、大小、许可"),
        "fetch": say("download and verify", "下载并校验"),
        "check": say("verify what is on disk", "校验本地文件"),
    }
    listing, fetching, checking = (
        actions.add_parser(name, help=text, description=text) for name, text in texts.items()
    )
    fetching.add_argument(
        "names",
        nargs="+",
        metavar="NAME",
        help=say(
            "a corpus from `data list`, or one of its parts", "`data list` 中的语料名或其中一部分"
        ),
    )
    checking.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=say("default: all on disk", "默认：本地已有的全部"),
    )
    for action in (listing, fetching, checking):
        action.add_argument(
            "--json", action="store_true", help=say("machine-readable output", "输出 JSON")
        )


def run(arguments: argparse.Namespace) -> int:
    match arguments.action:
        case "list":
            return _list(as_json=arguments.json)
        case "fetch":
            return _fetch(arguments.names, as_json=arguments.json)
        case _:
            return _check(arguments.names, as_json=arguments.json)


def _list(*, as_json: bool) -> int:
    from headwise.data.known.corpora import data_directory, list_corpora
    from headwise.language import current_language

    entries: list[dict[str, Any]] = []
    for corpus in list_corpora():
        size = sum(file.num_bytes for file in corpus.files)
        here = all((data_directory() / file.path).is_file() for file in corpus.files)
        text = corpus.description_zh if current_language() == "zh" else corpus.description
        entries.append(
            {
                "name": corpus.name,
                "description": text,
                "licence": corpus.licence,
                "bytes": size,
                "here": here,
                "parts": [
                    f"known:{part}" for part in corpus.parts or [file.path for file in corpus.files]
                ],
            }
        )
    if as_json:
        sys.stdout.write(json.dumps(entries, ensure_ascii=False, indent=2) + "\n")
        return 0
    from headwise.cli.terminal.tables import print_table

    rows = [
        (
            str(e["name"]),
            "✓" if e["here"] else "",
            f"{e['bytes'] / 1e6:.1f} MB",
            str(e["licence"]),
            str(e["description"]),
        )
        for e in entries
    ]
    print_table(
        (
            say("name", "名称"),
            say("here", "本地"),
            say("text", "文本"),
            say("licence", "许可"),
            say("what it is", "说明"),
        ),
        rows,
    )
    write_line(say(f"directory: {data_directory()}", f"目录：{data_directory()}"), sys.stderr)
    return 0


def _fetch(names: list[str], *, as_json: bool) -> int:
    from headwise.cli.terminal.display import TrainingDisplay
    from headwise.data.known.corpora import fetch_corpus, find_corpus
    from headwise.errors import DataError

    for name in names:
        find_corpus(name)  # all names are checked before the first download
    paths, failures = [], []
    with TrainingDisplay() as display:
        for name in names:
            try:
                paths += fetch_corpus(name, progress=display.count)
            except DataError as error:  # the other corpora may still be available
                failures.append(error)
    if as_json:
        sys.stdout.write(
            json.dumps([str(path) for path in paths], ensure_ascii=False, indent=2) + "\n"
        )
    else:
        for path in paths:
            sys.stdout.write(f"{path}\n")
    for failure in failures[:-1]:
        write_line(say(f"headwise: error: {failure}", f"headwise: 错误: {failure}"), sys.stderr)
    if failures:
        raise failures[-1]
    return 0


def _check(names: list[str], *, as_json: bool) -> int:
    from headwise.data.known.corpora import check_corpus, data_directory, list_corpora

    here = [corpus.name for corpus in list_corpora() if (data_directory() / corpus.name).is_dir()]
    states = [state for name in names or here for state in check_corpus(name)]
    if as_json:
        entries = [{"file": str(state.path), "state": state.state} for state in states]
        sys.stdout.write(json.dumps(entries, ensure_ascii=False, indent=2) + "\n")
    else:
        words = {
            "right": say("right", "正确"),
            "missing": say("missing", "缺失"),
            "wrong": say("WRONG", "错误"),
        }
        for state in states:
            sys.stdout.write(f"{words[state.state]}\t{state.path}\n")
        if not states:
            text = (
                f"nothing to check in {data_directory()}; fetch a corpus first: headwise data "
                "fetch multi30k"
            )
            write_line(
                say(
                    text,
                    f"{data_directory()} 中没有可检查的语料；请先获取：headwise data fetch "
                    "multi30k",
                ),
                sys.stderr,
            )
    return (
        3
        if any(state.state == "wrong" or (names and state.state == "missing") for state in states)
        else 0
    )
