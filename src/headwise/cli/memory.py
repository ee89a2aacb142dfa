"""`headwise memory`: stores the states of a finished model over text, to be asked while it
predicts (kNN-LM, kNN-MT).
"""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from headwise.cli.options.memory import StorePath
from headwise.cli.options.model_paths import MemoryModelPath
from headwise.cli.options.parser import positive
from headwise.cli.options.paths import SealedOutput
from headwise.cli.terminal.wrapping import write_line
from headwise.language import say

if TYPE_CHECKING:
    from headwise.neighbours.store import StoreHeader

EXAMPLES = (
    "\n\n  headwise memory build runs/general --output stores/law law/train"
    "\n  headwise memory tune stores/law law/valid"
    "\n  headwise translate --model runs/general --memory stores/law new.txt"
    "\n  headwise memory build runs/ptb-lstm --output stores/wiki wiki.txt"
    "\n  headwise score --model runs/ptb-lstm --memory stores/wiki --file new.txt --summary"
)


def add_parser(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "memory",
        help=say(
            "let stored examples take part in predictions, without training (kNN-LM, kNN-MT)",
            "不经训练，让存储的例子参与预测（kNN-LM、kNN-MT）",
        ),
        description=say(
            "A finished language model or translator reads text once; for every token its state "
            "is stored with the token. Where the model later is in a similar state, the nearest "
            "stored tokens are mixed into its probabilities. So a model uses text of a new domain "
            "at once, and every word can be traced to the examples behind it. The store belongs "
            "to this one model. A build can be stopped at any time; the same command goes on."
            + EXAMPLES,
            "训练好的语言模型或翻译模型把文本读一遍，记下每个词元之前的状态与该词元。"
            "之后模型处于相近状态时，最近的已存词元便混入其概率。这样模型可以立即利用新领域的文本，"
            "每个词都能追溯到背后的例子。存储只属于这一个模型。建立随时可以停止；"
            "再次运行同一命令即可继续。" + EXAMPLES,
        ),
    )
    _add_actions(parser)


def _add_actions(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar=say("ACTION", "操作"))
    texts = {
        "build": say("read text into a new store", "把文本读入新的存储"),
        "add": say("read more text into a store", "把更多文本读入已有的存储"),
        "tune": say(
            "choose neighbours, temperature and weight on validation text by perplexity, and keep "
            "them in the store",
            "以验证文本的困惑度选定近邻数、温度与权重，并写入存储",
        ),
        "describe": say("what a store holds, and how it is tuned", "存储中有什么，调节得如何"),
    }
    added = {
        name: actions.add_parser(name, help=text, description=text) for name, text in texts.items()
    }
    _add_build(added["build"])
    for name in ("add", "tune", "describe"):
        added[name].add_argument(
            "store", type=StorePath, metavar="STORE", help=say("a store", "存储目录")
        )
    for name in ("build", "add", "tune"):
        _add_texts(added[name])
    for name in ("add", "tune"):
        added[name].add_argument(
            "--model",
            type=MemoryModelPath,
            metavar="DIR",
            help=say(
                "the model of the store (default: where it was when the store was built)",
                "存储所属的模型（默认：建立时的位置）",
            ),
        )
    added["tune"].add_argument(
        "--predictions",
        type=positive,
        default=20_000,
        metavar="N",
        help=say(
            "at most this many tokens are used (default 20,000)", "至多使用的词元数（默认 20,000）"
        ),
    )
    for action in added.values():
        action.add_argument(
            "--json", action="store_true", help=say("machine-readable output", "输出 JSON")
        )


def _add_build(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model",
        type=MemoryModelPath,
        metavar="MODEL",
        help=say(
            "a language model or translator: a bundle or a finished run",
            "语言模型或翻译模型：模型目录或已完成的运行",
        ),
    )
    parser.add_argument(
        "--output",
        required=True,
        type=SealedOutput,
        metavar="STORE",
        help=say("directory of the store", "存储目录"),
    )
    parser.add_argument(
        "--keys",
        choices=("float16", "float32"),
        default="float16",
        help=say(
            "number type of the stored states; float16 takes half the space",
            "状态的数值类型；float16 占一半空间",
        ),
    )


def _add_texts(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "texts",
        nargs="+",
        metavar="TEXT",
        help=say(
            "for a language model files, one sentence a line; for a translator pairs, named as in "
            "data.train: my/train for my/train.zh and my/train.en, or my/pairs.tsv",
            "语言模型：文本文件，每行一句；翻译模型：句对，写法同 data.train，my/train 表示 "
            "my/train.zh 与 my/train.en，也可为 my/pairs.tsv",
        ),
    )


def run(arguments: argparse.Namespace) -> int:
    match arguments.action:
        case "build" | "add":
            return _fill(arguments)
        case "tune":
            return _tune(arguments)
        case _:
            return _describe(arguments)


def _fill(arguments: argparse.Namespace) -> int:
    from headwise.cli.terminal.display import TrainingDisplay
    from headwise.tasks.memory_building import add, build

    with TrainingDisplay() as display:
        if arguments.action == "build":
            header = build(
                Path(arguments.model),
                Path(arguments.output),
                arguments.texts,
                key_type=arguments.keys,
                events=display,
            )
        else:
            model = None if arguments.model is None else Path(arguments.model)
            header = add(Path(arguments.store), arguments.texts, model=model, events=display)
    _show(header, as_json=arguments.json)
    return 0


def _tune(arguments: argparse.Namespace) -> int:
    from headwise.tasks.memory_building import tune_store

    model = None if arguments.model is None else Path(arguments.model)
    tuning = tune_store(
        Path(arguments.store), arguments.texts, model=model, most=arguments.predictions
    )
    if arguments.json:
        sys.stdout.write(json.dumps(tuning.as_dict(), ensure_ascii=False, indent=2) + "\n")
        return 0
    mixing = tuning.mixing
    write_line(
        say(
            f"perplexity per token {tuning.mixed:.2f}, without the memory {tuning.alone:.2f} "
            f"({tuning.predictions:,} predictions): {_mixing(mixing)}",
            f"每词元困惑度 {tuning.mixed:.2f}，不用记忆为 {tuning.alone:.2f}"
            f"（{tuning.predictions:,} 次预测）：{_mixing(mixing)}",
        )
    )
    return 0


def _mixing(mixing: object) -> str:
    return " ".join(
        f"memory.{name}={json.dumps(value)}"
        for name, value in mixing.model_dump(mode="json").items()  # type: ignore[attr-defined]
    )


def _describe(arguments: argparse.Namespace) -> int:
    from headwise.neighbours.store import NeighbourStore

    _show(NeighbourStore.open(arguments.store).header, as_json=arguments.json)
    return 0


def _show(header: "StoreHeader", *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps(header.as_dict(), ensure_ascii=False, indent=2) + "\n")
        return
    model = header.model
    write_line(
        say(
            f"{header.num_entries:,} entries of {header.num_lines:,} lines from "
            f"{', '.join(header.corpora)}\nkeys: {model.dim} numbers, {model.key_type}, what the "
            f"layer {model.key} reads; search: exact\nmodel: {model.path} ({model.task}, "
            f"fingerprint {model.fingerprint[:12]})",
            f"{header.num_entries:,} 条，来自 {'、'.join(header.corpora)} 的 "
            f"{header.num_lines:,} 行\n键：{model.dim} 个数，{model.key_type}，即 {model.key} "
            f"层的输入；检索：精确\n模型：{model.path}（{model.task}，指纹 "
            f"{model.fingerprint[:12]}）",
        )
    )
    if header.tuning is None:
        write_line(
            say(
                "not tuned: run `headwise memory tune` with validation text",
                "尚未调节：请用验证文本运行 `headwise memory tune`",
            )
        )
        return
    write_line(
        say(
            f"tuned: {_mixing(header.mixing)}; perplexity per token "
            f"{header.tuning['perplexity']:.2f}, without the memory "
            f"{header.tuning['perplexity_alone']:.2f}",
            f"已调节：{_mixing(header.mixing)}；每词元困惑度 {header.tuning['perplexity']:.2f}，"
            f"不用记忆为 {header.tuning['perplexity_alone']:.2f}",
        )
    )
