"""`headwise rerank`: chooses among candidate translations with the scores of other models."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from headwise.cli.options.model_paths import LanguageModelPath, TranslatorPath
from headwise.cli.options.paths import STANDARD_INPUT, SentenceFile, SentenceStream
from headwise.cli.terminal.wrapping import write_line
from headwise.errors import UsageError
from headwise.language import say

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwise.tasks.translation.reranking import CandidateJudge, ChosenWeights, JudgedList

MAX_WEIGHT, MAX_ALPHA = 1000, 10
EXAMPLES = (
    "\n\n  headwise translate --model runs/mine --n-best 10 --json valid.en > valid.json"
    "\n  headwise rerank valid.json --translator runs/right-to-left --channel runs/de-en "
    "--reference valid.de > valid.out"
    "\n  headwise rerank test.json --channel runs/de-en --weight channel=0.5 > test.out"
)


def add_parser(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "rerank",
        help=say(
            "choose among candidate translations with other models",
            "用其他模型在候选译文中重新挑选",
        ),
        description=say(
            "Reads lists of candidates, as `headwise translate --n-best N --json` writes them, and "
            "writes the best candidate of each. To the score of the search it adds, times a "
            "weight, the log-probability by a translator of the same direction (for example one "
            "trained with data.target_order=reversed, which writes from right to left), by a "
            "translator of the opposite direction (the channel: how well the candidate explains "
            "its source) and by a language model. With --reference the weights that are not given "
            "are chosen by BLEU." + EXAMPLES,
            "读取候选列表（由 `headwise translate --n-best N --json` 生成），"
            "写出每句的最佳候选。在搜索得分之上，加权加入以下模型的对数概率：同方向的翻译模型（"
            "例如以 data.target_order=reversed 训练、从右到左翻译的模型）、反方向的翻译模型"
            "（信道：候选能多好地还原原文）以及语言模型。给出 --reference 时，"
            "未指定的权重按 BLEU 选取。" + EXAMPLES,
        ),
    )
    parser.add_argument(
        "file",
        nargs="?",
        type=SentenceStream,
        default=STANDARD_INPUT,
        metavar="LISTS",
        help=say(
            "lists of candidates, one JSON object a line (-: standard input)",
            "候选列表，每行一个 JSON（- 表示标准输入）",
        ),
    )
    _add_models(parser)
    _add_weights(parser)


def _add_models(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--translator",
        type=TranslatorPath,
        metavar="DIR",
        help=say(
            "a translator of the same direction, from left to right or from right to left",
            "同方向的翻译模型，从左到右或从右到左均可",
        ),
    )
    parser.add_argument(
        "--channel",
        type=TranslatorPath,
        metavar="DIR",
        help=say("a translator of the opposite direction", "反方向的翻译模型"),
    )
    parser.add_argument(
        "--language-model",
        type=LanguageModelPath,
        metavar="DIR|ARPA",
        help=say("a language model of the target language", "目标语言的语言模型"),
    )
    parser.add_argument(
        "--device",
        default="auto",
        choices=("auto", "cpu", "cuda"),
        help=say("auto, cpu or cuda", "auto、cpu 或 cuda"),
    )


def _add_weights(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--weight",
        dest="weights",
        action="append",
        default=[],
        type=weight,
        metavar="NAME=W",
        help=say(
            "weight of a model: translator=0.5, channel=0.5 or language_model=0.2; 0 ignores it",
            "某个模型的权重：translator=0.5、channel=0.5 或 language_model=0.2；0 表示忽略",
        ),
    )
    parser.add_argument(
        "--reference",
        type=SentenceFile,
        metavar="FILE",
        help=say(
            "right translations, line by line: the weights that are not given are chosen by them; "
            "use validation sentences, not the test",
            "逐行对应的参考译文：据此选取未指定的权重；请用验证集，勿用测试集",
        ),
    )
    parser.add_argument(
        "--length-penalty",
        type=float,
        default=1.0,
        metavar="ALPHA",
        help=say(
            "log-probabilities are divided by the number of their tokens to this power: 1 the mean "
            "(default), 0 the sum",
            "对数概率除以其词元数的这个次方：1 为平均（默认），0 为总和",
        ),
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help=say(
            "write the whole list of each sentence, best first, with the score of each model",
            "写出每句的完整列表（从好到差）及每个模型的得分",
        ),
    )


def weight(text: str) -> tuple[str, float]:
    """The value of --weight."""
    name, _, value = text.partition("=")
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if name not in ("translator", "channel", "language_model") or not 0 <= number <= MAX_WEIGHT:
        raise argparse.ArgumentTypeError(
            say(
                f"{text!r} is no weight; give translator=W, channel=W or language_model=W with W "
                "from 0 to 1000",
                f"{text!r} 不是权重；请给 translator=W、channel=W 或 language_model=W，W 在 0 与 "
                "1000 之间",
            )
        )
    return name, number


def _models(arguments: argparse.Namespace) -> dict[str, Path]:
    names = ("translator", "channel", "language_model")
    given = {name: getattr(arguments, name) for name in names}
    return {name: Path(path) for name, path in given.items() if path is not None}


def check(arguments: argparse.Namespace) -> None:
    models, weights = _models(arguments), dict(arguments.weights)
    if not models:
        raise UsageError(
            "no model was given; give --translator, --channel or --language-model",
            "没有给出模型；请给出 --translator、--channel 或 --language-model",
        )
    for name in weights:
        if name not in models:
            option = "--" + name.replace("_", "-")
            raise UsageError(
                f"--weight {name} was given without {option}; give both or neither",
                f"给出了 --weight {name} 却没有 {option}；请同时给出或都不给",
            )
    missing = [name for name in models if name not in weights]
    if missing and arguments.reference is None:
        raise UsageError(
            f"--{missing[0].replace('_', '-')} has no weight; give --weight {missing[0]}=0.5, or "
            "--reference FILE to choose it",
            f"--{missing[0].replace('_', '-')} 没有权重；请给 --weight {missing[0]}=0.5，或用 "
            "--reference FILE 选取",
        )
    if not 0 <= arguments.length_penalty <= MAX_ALPHA:
        raise UsageError(
            f"--length-penalty is {arguments.length_penalty:g}; give a number from 0 to 10",
            f"--length-penalty 为 {arguments.length_penalty:g}；请给 0 到 10 之间的数",
        )


def run(arguments: argparse.Namespace) -> int:
    from headwise.tasks.translation.nbest_lists import read_nbest
    from headwise.tasks.translation.reranking import judge_lists, load_judges

    judges = load_judges(_models(arguments), device=arguments.device)
    lists = read_nbest(arguments.file.path)
    judged: Iterable[JudgedList] = judge_lists(lists, judges, alpha=arguments.length_penalty)
    weights = dict(arguments.weights)
    if arguments.reference is not None:
        judged = list(judged)
        weights = dict(_choose(arguments, judges, judged).weights)
    for one in judged:
        ranked = one.rank(weights)
        if arguments.json:
            sys.stdout.write(json.dumps(ranked.as_dict(), ensure_ascii=False) + "\n")
        else:
            sys.stdout.write(ranked.text + "\n")
    return 0


def _choose(
    arguments: argparse.Namespace,
    judges: "dict[str, CandidateJudge]",
    judged: "list[JudgedList]",
) -> "ChosenWeights":
    from headwise.tasks.text_input import read_text_lines
    from headwise.tasks.translation.evaluation import guess_language
    from headwise.tasks.translation.reranking import TranslatorScores, choose_weights

    references = list(read_text_lines(Path(arguments.reference)))
    known = [one.languages[1] for one in judges.values() if isinstance(one, TranslatorScores)]
    language = known[0] if known else guess_language(references)
    fixed = dict(arguments.weights)
    chosen = choose_weights(judged, references, fixed=fixed, language=language)
    listed = " ".join(f"--weight {name}={value:g}" for name, value in chosen.weights.items())
    write_line(
        say(
            f"BLEU {chosen.before:.2f} → {chosen.after:.2f} with {listed} ({chosen.tried:,} "
            f"combinations, {chosen.sentences:,} sentences)",
            f"BLEU {chosen.before:.2f} → {chosen.after:.2f}，权重 {listed}（共试 "
            f"{chosen.tried:,} 种组合，{chosen.sentences:,} 句）",
        ),
        sys.stderr,
    )
    return chosen
