"""`headwise senses`: measures whether models distinguish the senses of an ambiguous word, layer by
layer.
"""

import argparse
import json
import sys
from typing import TYPE_CHECKING

from headwise.cli.options.checkpoints import accept_unfinished, model_to_load
from headwise.cli.options.model_paths import WordReaderPath
from headwise.cli.options.parser import add_checkpoint
from headwise.cli.options.paths import OutputFile, TextFilePath
from headwise.cli.terminal.wrapping import write_line
from headwise.language import say

if TYPE_CHECKING:
    from headwise.tasks.pretraining.senses import SenseReport, SenseVectors

CORPUS = "known:coarsewsd-20"


def add_parser(commands: argparse._SubParsersAction) -> None:
    examples = (
        "  headwise data fetch coarsewsd-20\n  headwise senses --model runs/words --model "
        "runs/english-elmo\n  headwise senses --model runs/words --model runs/english-elmo "
        "--model runs/english-masked --word bank --plot bank.png"
    )
    parser = commands.add_parser(
        "senses",
        help=say(
            "measure whether vectors distinguish the senses of words", "用向量区分词的不同义项"
        ),
        description=say(
            "Does a model distinguish a river bank from a bank for money? For each model and "
            "layer, a linear probe is trained on the vectors of a word in sentences and predicts "
            "the sense in new ones: word2vec (one vector for each word), ELMo, BERT. Without "
            "--word, all words of CoarseWSD-20.\n\n" + examples,
            "河岸还是银行？在某词各句中的向量上训练线性探针，再问它新句中的义项，逐模型、"
            "逐层比较：word2vec（每词一个向量）、ELMo、BERT。不给 --word 时为 CoarseWSD-20 "
            "的全部词。\n\n" + examples,
        ),
    )
    parser.add_argument(
        "--model",
        action="append",
        type=WordReaderPath,
        required=True,
        metavar="DIR",
        help=say(
            "word vectors, ELMo or an encoder; may be given several times",
            "词向量、ELMo 或编码器；可给出多次",
        ),
    )
    add_checkpoint(parser)
    parser.add_argument(
        "--untrained",
        action="store_true",
        help=say(
            "also measure the same networks with random weights, as a baseline",
            "另列权重随机的同一网络",
        ),
    )
    parser.add_argument(
        "--word",
        action="append",
        default=[],
        metavar="WORD",
        help=say("only this word; may be given several times", "只看该词；可给出多次"),
    )
    for part in ("train", "test"):
        parser.add_argument(
            f"--{part}",
            type=TextFilePath,
            default=f"{CORPUS}/{part}",
            metavar="FILE",
            help=say(
                f"occurrences with senses (word, sense, position, sentence; {CORPUS}/{part})",
                f"带义项的出现（词、义项、位置、句子；{CORPUS}/{part}）",
            ),
        )
    _add_output(parser)


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--plot",
        type=OutputFile,
        metavar="FILE",
        help=say(
            "draw the (first) word's occurrences by sense", "按义项画出（第一个）词的各次出现"
        ),
    )
    parser.add_argument(
        "--layout",
        choices=("tsne", "pca"),
        default="tsne",
        help=say("how the picture is laid out: tsne or pca", "图的布局：tsne 或 pca"),
    )
    parser.add_argument(
        "--json", action="store_true", help=say("machine-readable output", "输出 JSON")
    )


def check(arguments: argparse.Namespace) -> None:
    accept_unfinished(arguments)
    from pathlib import Path

    if arguments.plot is not None:
        from headwise.explorer.pictures.matplotlib_figure import check_picture

        check_picture(Path(arguments.plot))


def run(arguments: argparse.Namespace) -> int:
    from pathlib import Path

    from headwise.cli.terminal.display import TrainingDisplay
    from headwise.data.labels.word_senses import read_senses
    from headwise.errors import UsageError

    words = tuple(dict.fromkeys(arguments.word))
    parts = [read_senses(source, words=words) for source in (arguments.train, arguments.test)]
    from headwise.tasks.pretraining.contextual_vectors import load_word_reader
    from headwise.tasks.pretraining.senses import measure_senses

    readers = {}
    for model in arguments.model:
        with model_to_load(model, arguments.checkpoint) as directory:
            reader = load_word_reader(directory)
            readers[f"{Path(model).name} ({reader.kind})"] = reader
            if arguments.untrained and reader.kind != "static":
                untrained = load_word_reader(directory, untrained=True)
                readers[f"{Path(model).name} (untrained)"] = untrained
    if len(readers) < len(arguments.model):
        raise UsageError(
            "two models have the same name; rename one of the directories",
            "两个模型同名；请将其中一个目录改名",
        )
    with TrainingDisplay() as display:
        report, vectors = measure_senses(readers, parts[0].found, parts[1].found, events=display)
    if arguments.plot is not None:
        _draw(arguments, report, vectors)
    if report.num_unlearnt:
        note = say(
            f"left out: {report.num_unlearnt:,} test occurrences whose sense is missing from the "
            "training part, or is the only one there",
            f"未计入：测试部分有 {report.num_unlearnt:,} 次出现的义项在训练部分没有，"
            "或是该词在其中唯一的义项",
        )
        write_line(note, sys.stderr)
    if arguments.json:
        left_out = {"left_out": {"train": parts[0].num_left_out, "test": parts[1].num_left_out}}
        sys.stdout.write(
            json.dumps(report.as_dict() | left_out, ensure_ascii=False, indent=2, allow_nan=False)
            + "\n"
        )
        return 0
    _print(report)
    return 0


def _draw(arguments: argparse.Namespace, report: "SenseReport", vectors: "SenseVectors") -> None:
    from pathlib import Path

    from headwise.explorer.pictures.sense_map import draw_sense_map

    measured = {one.word: one for one in report.words}
    word = next((one for one in arguments.word if one in measured), report.words[0].word)
    scores = measured[word].scores
    numbers = [number for number, one in enumerate(vectors.occurrences) if one.word == word]
    panels = {
        f"{name}, {100 * scores[name].balanced:.0f} %": layers[-1][numbers]
        for name, layers in vectors.layers.items()
    }
    senses = [vectors.occurrences[number].sense for number in numbers]
    key = draw_sense_map(word, senses, panels, Path(arguments.plot), method=arguments.layout)
    write_line(
        say(f"picture of {word}: {arguments.plot}", f"{word} 的图：{arguments.plot}"), sys.stderr
    )
    if key:
        write_line(
            "  ".join(f"{number} {sense}" for number, sense in enumerate(key, start=1)), sys.stderr
        )


def _print(report: "SenseReport") -> None:
    from headwise.cli.terminal.tables import print_table

    models = list(report.words[0].scores)
    print_table(
        [
            say("word", "词"),
            say("senses", "义项"),
            say("test", "测试"),
            say("most frequent", "最常见义项"),
            say("chance", "随机基线"),
            *models,
        ],
        [
            [
                one.word,
                str(len(one.senses)),
                str(one.num_test),
                f"{100 * one.most_frequent.accuracy:.1f}",
                f"{100 * one.most_frequent.balanced:.1f}",
                *(f"{100 * one.scores[name].balanced:.1f}" for name in models),
            ]
            for one in report.words
        ],
        title=say(
            "balanced accuracy of a linear probe on the last layer (most frequent: plain "
            "accuracy), %",
            "最后一层上线性探针的均衡准确率（最常见义项一列为普通准确率），%",
        ),
    )
    if not report.pairs:
        return
    print_table(
        [say("hard pairs", "难分的义项对"), *models],
        [
            [
                f"{pair.word}: "
                f"{' / '.join(sense.removeprefix(pair.word + '_') for sense in pair.senses)}",
                *(f"{100 * pair.balanced[name][-1]:.1f}" for name in models),
            ]
            for pair in report.pairs
        ],
    )
    rows = []
    for name in models:
        layers = report.mean_of_pairs(name)
        rows += [[name, str(number), f"{100 * value:.1f}"] for number, value in enumerate(layers)]
    print_table(
        [say("model", "模型"), say("layer", "层"), say("mean of hard pairs", "难分义项对的平均")],
        rows,
        title=say(
            f"{len(report.pairs)} pairs; a model that uses only the word itself scores 50",
            f"共 {len(report.pairs)} 对；只用词本身的模型得 50",
        ),
    )
