"""`headwise score`: which sentence is more natural? Any language model, sentence by sentence or pair by pair."""

import argparse
import json
import math
import sys
from itertools import islice
from typing import TYPE_CHECKING

from headwise.cli.paths import LanguageModelPath, SentenceFile, TextFile
from headwise.errors import UsageError
from headwise.language import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwise.tasks.language.answers import SentenceScore, Verdict
    from headwise.tasks.language.language_model import LanguageModel

BLOCK = 256
"""Lines of a file that are scored at once; what is typed is answered line by line."""


def add_parser(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "score",
        help=say(
            "which sentence is more natural: probabilities of a language model",
            "哪句话更自然：语言模型的概率",
        ),
        description=say(
            "Log-probability of every token, the sum, and perplexity, by a language model (a bundle or an ARPA file). Several "
            "sentences are compared. Without SENTENCE: --file, or standard input, one sentence a line, one answer a line (of a blank "
            "line: the end of a sentence alone; --summary leaves blank lines out).\n\n"
            "  headwise score --model runs/ptb 'the company said it was' 'the company it said was'\n"
            "  headwise score --model runs/ptb --file sentences.txt --summary\n"
            "  headwise score --model runs/chinese --pairs known:sighan15-csc/test",
            "用语言模型（模型目录或 ARPA 文件）给出每个词元的对数概率、总和与困惑度；多句相互比较。"
            "不给 SENTENCE 时读 --file，或标准输入，每行一句，每行一个回答（空行只有句末一项；--summary 不计空行）。\n\n"
            "  headwise score --model runs/ptb 'the company said it was' 'the company it said was'\n"
            "  headwise score --model runs/ptb --file sentences.txt --summary\n"
            "  headwise score --model runs/chinese --pairs known:sighan15-csc/test",
        ),
    )
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
    parser.add_argument(
        "--file",
        type=SentenceFile,
        metavar="FILE",
        help=say("sentences, one a line", "句子，每行一句"),
    )
    parser.add_argument(
        "--pairs",
        type=TextFile,
        metavar="FILE",
        help=say(
            "tab-separated: a misspelt sentence, the right one; how often is the right one likelier? (or known:NAME)",
            "以制表符分隔：错句、正句；正句更可能的比例（或 known:NAME）",
        ),
    )
    parser.add_argument(
        "--summary",
        action="store_true",
        help=say("of a text its perplexity alone", "只给出整篇文本的困惑度"),
    )
    parser.add_argument(
        "--json", action="store_true", help=say("machine-readable output", "输出 JSON")
    )


def check(arguments: argparse.Namespace) -> None:
    if (
        sum((bool(arguments.sentences), arguments.file is not None, arguments.pairs is not None))
        > 1
    ):
        raise UsageError(
            "sentences, --file and --pairs exclude each other; give one of them",
            "句子、--file 与 --pairs 不能同时使用；请只给其一",
        )


def run(arguments: argparse.Namespace) -> int:
    from headwise.tasks.language.language_model import LanguageModel

    model = LanguageModel.load(arguments.model)
    if arguments.pairs is not None:
        return _pairs(model, arguments)
    if arguments.sentences and not arguments.summary:
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
        sys.stdout.write(_sentence(scores, verdict) + "\n")
    return 0


def _sentence(scores: "Sequence[SentenceScore]", verdict: "Verdict") -> str:
    """The verdict in words."""
    totals = [score.total for score in scores]
    if verdict.reason == "unknown_words":
        return say(
            "no verdict: most words of "
            + " and of ".join(score.text for score in scores if score.is_mostly_unknown)
            + " are unknown to this model, which gives every unknown word the same probability; compare sentences of "
            "words it has seen, or train it on more text",
            "无法判断："
            + "、".join(f"“{score.text}”" for score in scores if score.is_mostly_unknown)
            + " 中的词大多不在模型的词表里，而模型给每个未知词同样的概率；请比较由它见过的词组成的句子，或用更多文本训练",
        )
    if verdict.best is None:
        tied = say(" and ", " 与 ").join(
            score.text for score in scores if score.total == max(totals)
        )
        return say(f"equally natural: {tied}", f"同样自然：{tied}")
    margin = totals[verdict.best] - sorted(totals)[-2]
    times = f" ({_rounded(math.exp(margin))} ×)" if margin < 700 else ""
    best = scores[verdict.best].text
    return say(f"more natural: {best}{times}", f"更自然：{best}{times}")


def _rounded(value: float) -> str:
    """Three digits, written out as long as that can be read: 1,250 and not 1.25e+03."""
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if 1000 <= rounded < 1e9 else f"{rounded:.3g}"


def _show(score: "SentenceScore", *, sums_to_one: bool) -> None:
    from headwise.cli.display import print_table

    rows = [
        (
            one.token,
            f"{one.log_probability:.3f}",
            f"{math.exp(one.log_probability):.3g}" + ("" if one.is_known else " ⁇"),
        )
        for one in score.tokens
    ]
    print_table((say("token", "词元"), *headings(sums_to_one=sums_to_one)), rows, title=score.text)
    sys.stdout.write(
        say(
            f"total {score.total:.3f}, perplexity {score.perplexity:.2f}",
            f"总计 {score.total:.3f}，困惑度 {score.perplexity:.2f}",
        )
    )
    if score.total == -math.inf:
        sys.stdout.write(
            say(
                "; impossible to this model, which keeps no probability for what it has not seen: a smoothing would",
                "；对该模型而言不可能：它没有为未见过的留出概率，平滑可以做到",
            )
        )
    elif score.num_unknown:
        sys.stdout.write(
            say(
                f"; {score.num_unknown} unknown (⁇): the model gives them the probability of <unk>",
                f"；未知 {score.num_unknown} 个（⁇）：模型给它们 <unk> 的概率",
            )
        )
    sys.stdout.write("\n\n")


def headings(*, sums_to_one: bool) -> tuple[str, str]:
    """Of a logarithm and what it is the logarithm of; stupid back-off gives no probabilities, and does not say it does."""
    if sums_to_one:
        return say("log p", "对数概率"), "p"
    return say("log score", "对数分值"), say(
        "score (no p: they sum to more than 1)", "分值（非概率：总和大于 1）"
    )


def _file(model: "LanguageModel", arguments: argparse.Namespace) -> int:
    from headwise.tasks.language.language_model import check_sentences
    from headwise.tasks.text_input import read_every_sentence, read_sentences

    if arguments.summary:
        given = check_sentences(arguments.sentences) or read_sentences(arguments.file)
        result = model.score_text(given)
        if arguments.json:
            sys.stdout.write(json.dumps(result.as_dict(), ensure_ascii=False, indent=2) + "\n")
        else:
            sys.stdout.write(
                say(
                    f"perplexity {result.perplexity:.2f} over {result.num_predictions:,} predictions, {result.num_unknown:,} of "
                    "unknown words\n",
                    f"困惑度 {result.perplexity:.2f}，共 {result.num_predictions:,} 次预测，其中未知词 {result.num_unknown:,} 次\n",
                )
            )
        return 0
    lines = read_every_sentence(arguments.file)
    while block := list(islice(lines, 1 if arguments.file is None else BLOCK)):
        for score in model.score(block):
            if arguments.json:
                sys.stdout.write(json.dumps(score.as_dict(), ensure_ascii=False) + "\n")
            else:
                sys.stdout.write(
                    f"{score.total:.4f}\t{score.perplexity:.2f}\t{score.num_unknown}\t{score.text}\n"
                )
    return 0


def _pairs(model: "LanguageModel", arguments: argparse.Namespace) -> int:
    from headwise.tasks.language.minimal_pairs import score_pairs

    result = score_pairs(model, arguments.pairs)
    if arguments.json:
        sys.stdout.write(json.dumps(result.as_dict(), ensure_ascii=False, indent=2) + "\n")
    else:
        sys.stdout.write(
            say(
                f"the right sentence is likelier in {result.num_right:,} of {result.num_pairs:,} pairs: "
                f"{100 * result.accuracy:.1f} % ({result.num_equal:,} pairs of equal sentences left out)\n",
                f"{result.num_pairs:,} 对中有 {result.num_right:,} 对正句更可能：{100 * result.accuracy:.1f}%"
                f"（另有 {result.num_equal:,} 对两句相同，未计）\n",
            )
        )
    return 0
