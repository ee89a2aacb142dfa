# ruff: noqa: N999 - a command has the name of its file
"""`headwise import`: make a bundle of a translator that another program trained."""

import argparse
import json
import sys
from pathlib import Path

from headwise.cli.options.paths import ExistingDirectory, NewOutput
from headwise.cli.terminal.wrapping import write_line
from headwise.language import say


def add_parser(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "import",
        help=say(
            "make a model of Marian or OPUS-MT a bundle of Headwise",
            "把 Marian 或 OPUS-MT 模型导入为 Headwise 模型",
        ),
        description=say(
            "Imports a Marian translator in the format of transformers, such as those of OPUS-MT: "
            "config.json, model.safetensors, source.spm, target.spm and vocab.json. The bundle "
            "gives the same logits and translations, and every command takes it: translate, "
            "evaluate, serve, explore, adapt, export. Pickled weights are not read.\n\n  headwise "
            "import opus-mt-zh-en runs/opus --source zh --target en\n  headwise translate --model "
            "runs/opus my/new.zh\n  headwise import opus-mt-en-zh runs/opus --source en "
            "--target zh --prefix '>>cmn_Hans<<'",
            "导入 transformers 格式的 Marian 翻译模型，例如 OPUS-MT：config.json、"
            "model.safetensors、source.spm、target.spm 和 vocab.json。导入后 logits 与译文不变，"
            "所有命令都可使用：translate、evaluate、serve、explore、adapt、export。不读取 pickle "
            "格式的权重。\n\n  headwise import opus-mt-zh-en runs/opus --source zh --target en\n  "
            "headwise translate --model runs/opus my/new.zh\n  headwise import opus-mt-en-zh "
            "runs/opus --source en --target zh --prefix '>>cmn_Hans<<'",
        ),
    )
    parser.add_argument(
        "directory",
        type=ExistingDirectory,
        metavar="DIR",
        help=say("the directory of the Marian model", "Marian 模型的目录"),
    )
    parser.add_argument(
        "output",
        type=NewOutput,
        metavar="MODEL",
        help=say("the bundle, a new directory", "导入后的模型，新目录"),
    )
    _add_languages(parser)
    parser.add_argument(
        "--json", action="store_true", help=say("machine-readable output", "输出 JSON")
    )


def _add_languages(parser: argparse.ArgumentParser) -> None:
    """Options for what the directory may not say."""
    parser.add_argument(
        "--source",
        metavar="LANG",
        help=say(
            "code of the source language (default: as the directory says)",
            "源语言代码（默认：取自该目录）",
        ),
    )
    parser.add_argument(
        "--target",
        metavar="LANG",
        help=say(
            "code of the target language (default: as the directory says)",
            "目标语言代码（默认：取自该目录）",
        ),
    )
    parser.add_argument(
        "--prefix",
        metavar="CODE",
        help=say(
            "put this code before every source, for a model that knows several target languages, "
            "e.g. '>>cmn_Hans<<'",
            "在每句源文前加上该代码，用于能译成多种语言的模型，例如 '>>cmn_Hans<<'",
        ),
    )


def run(arguments: argparse.Namespace) -> int:
    from headwise.importing.marian_import import describe_import, import_marian

    found = import_marian(
        Path(arguments.directory),
        Path(arguments.output),
        source=arguments.source,
        target=arguments.target,
        prefix=arguments.prefix,
    )
    if arguments.json:
        sys.stdout.write(json.dumps(found.as_dict(), ensure_ascii=False) + "\n")
    else:
        write_line(describe_import(found))
    return 0
