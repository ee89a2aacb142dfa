"""`headwise score`: measures how natural a language model finds sentences, alone or in pairs."""

import argparse
import json
import math
import sys
from itertools import islice
from typing import TYPE_CHECKING

from headwise.cli.options.checkpoints import accept_unfinished, model_to_load
from headwise.cli.options.memory import add_language_memory, language_memory
from headwise.cli.options.model_paths import LanguageModelPath
from headwise.cli.options.parser import add_checkpoint
from headwise.cli.options.paths import STANDARD_INPUT, SentenceStream, TextFilePath
from headwise.cli.terminal.wrapping import write_line
from headwise.errors import UsageError
from headwise.language import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwise.tasks.language.answers import SentenceScore, Verdict
    from headwise.tasks.language.language_model import LanguageModel
    from headwise.tasks.language.minimal_pairs import PairScores

BLOCK = 256
"""Lines of a file that are scored together; typed lines are answered one by one."""


def add_parser(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "score",
        help=say(
            "which sentence is more natural: probabilities of a language model",
            "哪句话更自然：语言模型的概率",
        ),
        description=say(
            "Log-probability of every token, the sum, and perplexity, by a language model (a "
            "bundle or an ARPA file). Several sentences are compared. If no SENTENCE is given, "
            "sentences are read from --file or standard input, one per line, and each gets one "
            "line of output. A blank line is scored as an empty sentence; --summary leaves blank "
            "lines out.\n\n  headwise score --model runs/ptb 'the company said it was' 'the "
            "company it said was'\n  headwise score --model runs/ptb --file sentences.txt "
            "--summary\n  headwise score --model runs/chinese --pairs known:sighan15-csc/test",
            "用语言模型（模型目录或 ARPA 文件）给出每个词元的对数概率、总和与困惑度；"
            "多句相互比较。未给出 SENTENCE 时，从 --file 或标准输入读取，每行一句，"
            "每句输出一行（空行按空句打分；--summary 不计空行）。\n\n  headwise score --model "
            "runs/ptb 'the company said it was' 'the company it said was'\n  headwise score "
            "--model runs/ptb --file sentences.txt --summary\n  headwise score --model "
            "runs/chinese --pairs known:sighan15-csc/test",
        ),
    )
    _add_options(parser)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "sentences", nargs="*", metavar="SENTENCE", help=say("sentences to compare", "要比较的句子")
    )
    parser.add_argument(
        "--model",
        required=True,
        type=LanguageModelPath,
        metavar="DIR",
        help=say("a bundle, run or ARPA file", "模型目录、运行目录或 ARPA 文件"),
    )
    add_checkpoint(parser)
    add_language_memory(parser)
    parser.add_argument(
        "--file",
        type=SentenceStream,
        default=STANDARD_INPUT,
        metavar="FILE",
        help=say("sentences, one a line (-: standard input)", "句子，每行一句（- 表示标准输入）"),
    )
    parser.add_argument(
        "--pairs",
        type=TextFilePath,
        metavar="FILE",
        help=say(
            "tab-separated pairs of a misspelt sentence and the right one (or known:NAME): how "
            "often is the right one more probable?",
            "以制表符分隔：错句、正句；正句更可能的比例（或 known:NAME）",
        ),
    )
    _add_answers(parser)


def _add_answers(parser: argparse.ArgumentParser) -> None:
    """What is printed."""
    parser.add_argument(
        "--summary",
        action="store_true",
        help=say("print only the perplexity of the text", "只给出整篇文本的困惑度"),
    )
    parser.add_argument(
        "--continuous",
        action="store_true",
        help=say(
            "like --summary, each line read after all lines before it",
            "同 --summary，但每行都接着前面所有行阅读",
        ),
    )
    parser.add_argument(
        "--json", action="store_true", help=say("machine-readable output", "输出 JSON")
    )


def check(arguments: argparse.Namespace) -> None:
    accept_unfinished(arguments)
    if (
        sum(
            (
                bool(arguments.sentences),
                not arguments.file.is_standard_input,
                arguments.pairs is not None,
            )
        )
        > 1
    ):
        raise UsageError(
            "sentences, --file and --pairs exclude each other; give one of them",
            "句子、--file 与 --pairs 不能同时使用；请只给其一",
        )


def run(arguments: argparse.Namespace) -> int:
    from headwise.tasks.language.language_model import LanguageModel
    from headwise.tasks.language.memory import load_with_memory

    memory = language_memory(arguments)
    with model_to_load(arguments.model, arguments.checkpoint) as directory:
        model = (
            LanguageModel.load(directory) if memory is None else load_with_memory(directory, memory)
        )
    if arguments.pairs is not None:
        return _pairs(model, arguments)
    if arguments.sentences and not (arguments.summary or arguments.continuous):
        return _compare(model, arguments)
    return _file(model, arguments)


def _compare(model: "LanguageModel", arguments: argparse.Namespace) -> int:
    from headwise.tasks.language.answers import judge

    scores = model.score(arguments.sentences)
    verdict = judge(scores)
    if arguments.json:
        result = {"sentences": [score.as_dict() for score in scores], **verdict.as_dict()}
        sys.stdout.write(json.dumps(result, ensure_ascii=False, indent=2) + "\n")
        return 0
    for score in scores:
        _show(score, sums_to_one=model.sums_to_one)
    if len(scores) > 1:
        write_line(_sentence(scores, verdict))
    return 0


def _sentence(scores: "Sequence[SentenceScore]", verdict: "Verdict") -> str:
    """The verdict in words."""
    totals = [score.total for score in scores]
    if verdict.reason == "unknown_words":
        return say(
            "no verdict: most words of "
            + " and of ".join(score.text for score in scores if score.is_mostly_unknown)
            + f" are unknown to this model; {_why_no_verdict()}",
            "无法判断："
            + "、".join(f"“{score.text}”" for score in scores if score.is_mostly_unknown)
            + f" 中的词大多不在模型的词表里；{_why_no_verdict()}",
        )
    if verdict.best is None:
        tied = say(" and ", " 与 ").join(
            score.text for score in scores if score.total == max(totals)
        )
        return say(f"equally natural: {tied}", f"同样自然：{tied}")
    margin = totals[verdict.best] - sorted(totals)[-2]
    best = scores[verdict.best].text
    if margin >= 700:
        return say(f"more natural: {best}", f"更自然：{best}")
    times = _rounded(math.exp(margin))
    return say(
        f"more natural: {best} ({times} times as likely)",
        f"更自然：{best}（可能性是其次的 {times} 倍）",
    )


def _why_no_verdict() -> str:
    return say(
        "it gives every unknown word the same probability. Compare sentences of words it has "
        "seen, or train it on more text",
        "模型给每个未知词同样的概率。请比较由它见过的词组成的句子，或用更多文本训练",
    )


def _rounded(value: float) -> str:
    """Three significant digits, without an exponent if readable: 1,250 and not 1.25e+03."""
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if 1000 <= rounded < 1e9 else f"{rounded:.3g}"


def _show(score: "SentenceScore", *, sums_to_one: bool) -> None:
    from headwise.cli.terminal.tables import print_table

    rows = [
        (
            one.token,
            f"{one.log_probability:.3f}",
            f"{math.exp(one.log_probability):.3g}" + ("" if one.is_known else " ⁇"),
        )
        for one in score.tokens
    ]
    print_table((say("token", "词元"), *headings(sums_to_one=sums_to_one)), rows, title=score.text)
    total = say(
        f"total {score.total:.3f}, perplexity {score.perplexity:.2f}",
        f"总计 {score.total:.3f}，困惑度 {score.perplexity:.2f}",
    )
    if score.total == -math.inf:
        total += say(
            "; impossible to this model, which gives no probability to what it has not seen; "
            "train one with a smoothing",
            "；该模型不给未见过的内容留概率，因此认为此句不可能；请训练带平滑的模型",
        )
    elif score.num_unknown:
        total += say(
            f"; {score.num_unknown} unknown (⁇): the model gives them the probability of <unk>",
            f"；未知 {score.num_unknown} 个（⁇）：模型给它们 <unk> 的概率",
        )
    write_line(total + "\n")


def headings(*, sums_to_one: bool) -> tuple[str, str]:
    """The headings of a log-probability and of a probability; stupid back-off gives scores that are
    no probabilities, and the headings say so.
    """
    if sums_to_one:
        return say("log p", "对数概率"), "p"
    return say("log score", "对数分值"), say(
        "score (not a probability: the values sum to more than 1)", "分值（非概率：总和大于 1）"
    )


def _file(model: "LanguageModel", arguments: argparse.Namespace) -> int:
    from headwise.tasks.language.language_model import check_sentences
    from headwise.tasks.text_input import read_every_sentence, read_sentences

    if arguments.summary or arguments.continuous:
        given = check_sentences(arguments.sentences) or read_sentences(arguments.file.path)
        result = model.score_text(given, continuous=arguments.continuous)
        if arguments.json:
            sys.stdout.write(json.dumps(result.as_dict(), ensure_ascii=False, indent=2) + "\n")
        else:
            write_line(
                say(
                    f"perplexity {result.perplexity:.2f} over {result.num_predictions:,} "
                    f"predictions, {result.num_unknown:,} of them unknown words",
                    f"困惑度 {result.perplexity:.2f}，共 {result.num_predictions:,} 次预测，"
                    f"其中未知词 {result.num_unknown:,} 次",
                )
            )
        return 0
    is_typed = arguments.file.is_standard_input and sys.stdin.isatty()
    lines = read_every_sentence(arguments.file.path)
    while block := list(islice(lines, 1 if is_typed else BLOCK)):
        for score in model.score(block):
            if arguments.json:
                sys.stdout.write(json.dumps(score.as_dict(), ensure_ascii=False) + "\n")
            else:
                numbers = f"{score.total:.4f}\t{score.perplexity:.2f}\t{score.num_unknown}"
                sys.stdout.write(f"{numbers}\t{score.text}\n")
    return 0


def _pairs(model: "LanguageModel", arguments: argparse.Namespace) -> int:
    from headwise.tasks.language.minimal_pairs import score_pairs

    result = score_pairs(model, arguments.pairs)
    if arguments.json:
        sys.stdout.write(json.dumps(result.as_dict(), ensure_ascii=False, indent=2) + "\n")
    else:
        write_line(_pairs_sentence(result))
    return 0


def _pairs_sentence(result: "PairScores") -> str:
    """How many pairs were decided correctly, and why others were not decided."""
    sentences = []
    if result.accuracy is not None:
        sentences.append(
            say(
                f"the right sentence is likelier in {result.num_right:,} of {result.num_pairs:,} "
                f"pairs: {100 * result.accuracy:.1f} % ({result.num_equal:,} pairs of equal "
                "sentences left out)",
                f"{result.num_pairs:,} 对中有 {result.num_right:,} 对正句更可能："
                f"{100 * result.accuracy:.1f}%（另有 {result.num_equal:,} 对两句相同，未计）",
            )
        )
    if result.num_unknown:
        pairs = "pair" if result.num_unknown == 1 else "pairs"
        sentences.append(
            say(
                f"no verdict on {result.num_unknown:,} {pairs}: most words of a sentence are "
                f"unknown to this model; {_why_no_verdict()}",
                f"有 {result.num_unknown:,} 对无法判断：句中的词大多不在模型的词表里；"
                f"{_why_no_verdict()}",
            )
        )
    return "\n".join(sentences)
