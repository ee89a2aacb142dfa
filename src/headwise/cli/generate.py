"""`headwise generate`: continues a text with a language model."""

import argparse
import json
import sys

from headwise.cli.options.checkpoints import accept_unfinished, model_to_load
from headwise.cli.options.memory import add_language_memory, language_memory
from headwise.cli.options.model_paths import LanguageModelPath
from headwise.cli.options.parser import add_checkpoint, positive
from headwise.cli.terminal.wrapping import write_line
from headwise.errors import UsageError
from headwise.language import say

MAX_SAMPLES = 10_000


def add_parser(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "generate",
        help=say("continue a text with a language model", "让语言模型续写"),
        description=say(
            "Continue a text with a neural language model, by sampling or greedily.\n\n  headwise "
            "generate --model runs/shakespeare 'ROMEO:' --length 300 --temperature 0.8\n  "
            "headwise generate --model runs/ptb-lstm 'the company' --greedy",
            "用神经语言模型续写：按其分布抽样，或贪心选取。\n\n"
            "  headwise generate --model runs/shakespeare 'ROMEO:' --length 300 --temperature 0.8\n"
            "  headwise generate --model runs/ptb-lstm 'the company' --greedy",
        ),
    )
    _add_options(parser)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "beginning", nargs="?", default="", metavar="BEGINNING", help=say("the first words", "开头")
    )
    parser.add_argument(
        "--model",
        required=True,
        type=LanguageModelPath,
        metavar="DIR",
        help=say("a bundle or run", "模型目录或运行目录"),
    )
    add_checkpoint(parser)
    add_language_memory(parser)
    parser.add_argument(
        "--length",
        type=positive,
        default=100,
        metavar="N",
        help=say("the most tokens", "最多写多少词元"),
    )
    parser.add_argument(
        "--samples",
        type=positive,
        default=1,
        metavar="N",
        help=say("number of texts, at most 10,000", "写几份，至多 10,000"),
    )
    _add_sampling(parser)
    parser.add_argument(
        "--json", action="store_true", help=say("one JSON object a line", "每行一个 JSON")
    )


def _add_sampling(parser: argparse.ArgumentParser) -> None:
    """How the next token is chosen."""
    parser.add_argument(
        "--greedy",
        action="store_true",
        help=say("always take the most probable token", "总取最可能的词元"),
    )
    parser.add_argument(
        "--temperature",
        type=float,
        default=1.0,
        metavar="T",
        help=say(
            "below 1: probable words more often; above 1: more variety",
            "小于 1：更常选可能的词；大于 1：更多变化",
        ),
    )
    parser.add_argument(
        "--top-k",
        type=int,
        default=0,
        metavar="K",
        help=say("sample from the K most probable tokens only", "只从最可能的 K 个中抽取"),
    )
    parser.add_argument(
        "--top-p",
        type=float,
        default=1.0,
        metavar="P",
        help=say(
            "sample from the most probable tokens whose probabilities sum to P",
            "只从累计概率为 P 的最可能词元中抽取",
        ),
    )
    parser.add_argument(
        "--seed", type=int, default=1, metavar="N", help=say("seed of the sampling", "抽样种子")
    )


def check(arguments: argparse.Namespace) -> None:
    accept_unfinished(arguments)
    if arguments.samples > MAX_SAMPLES:
        raise UsageError(
            f"--samples is {arguments.samples:,}, at most {MAX_SAMPLES:,} are written by one "
            "command; give fewer, and several seeds for more",
            f"--samples 为 {arguments.samples:,}，一次最多写 {MAX_SAMPLES:,} 份；请减少，"
            "需要更多时用不同的 --seed 多次运行",
        )


def run(arguments: argparse.Namespace) -> int:
    from headwise.decoding.choices import GreedySettings, SamplingSettings
    from headwise.settings import check_settings
    from headwise.tasks.language.continuation import write_on
    from headwise.tasks.language.language_model import LanguageModel
    from headwise.tasks.language.memory import load_with_memory

    settings: GreedySettings | SamplingSettings = GreedySettings()
    if not arguments.greedy:
        names = ("temperature", "top_k", "top_p", "seed")
        settings = check_settings(
            SamplingSettings, {name: getattr(arguments, name) for name in names}
        )
    memory = language_memory(arguments)
    with model_to_load(arguments.model, arguments.checkpoint) as directory:
        model = (
            LanguageModel.load(directory) if memory is None else load_with_memory(directory, memory)
        )
    num_samples = 1 if arguments.greedy else arguments.samples
    if num_samples > 1:
        write_line(
            say(
                f"writing {num_samples:,} texts of at most {arguments.length:,} tokens each; "
                "Ctrl-C ends it",
                f"将写 {num_samples:,} 份文本，每份至多 {arguments.length:,} 个词元；按 Ctrl-C "
                "结束",
            ),
            sys.stderr,
        )
    for number in range(num_samples):
        written = write_on(
            model, arguments.beginning, settings, length=arguments.length, number=number
        )
        if arguments.json:
            sys.stdout.write(json.dumps(written.as_dict(), ensure_ascii=False) + "\n")
        else:
            sys.stdout.write(f"{written.text}\n")
        sys.stdout.flush()
    return 0
