"""`headwise nearest`: lists the neighbours of a word by word vectors, calculates with words, and
draws a map of them.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from headwise.cli.options.model_paths import WordVectorModelPath
from headwise.cli.options.parser import positive
from headwise.cli.options.paths import OutputFile
from headwise.cli.terminal.wrapping import write_line
from headwise.language import say

if TYPE_CHECKING:
    from headwise.models.vector_space import Neighbour, VectorSpace


def add_parser(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "nearest",
        help=say(
            "nearest words, arithmetic such as king - man + woman, a map",
            "与某词相近的词，king - man + woman，词的地图",
        ),
        description=say(
            "The words whose vectors are nearest (by cosine) to a word or to a sum of words:\n\n"
            "  headwise train word-vectors --run runs/words\n"
            "  headwise nearest france --model runs/words\n"
            '  headwise nearest "king - man + woman" --model runs/words\n'
            "  headwise nearest king paris three --model runs/words --plot map.png",
            "向量与某词（或若干词之和）最接近（按余弦）的词：\n\n"
            "  headwise train word-vectors --run runs/words\n"
            "  headwise nearest france --model runs/words\n"
            '  headwise nearest "king - man + woman" --model runs/words\n'
            "  headwise nearest king paris three --model runs/words --plot map.png",
        ),
    )
    _add_options(parser)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "words",
        nargs="+",
        metavar="WORD",
        help=say(
            'a word, or words with + and - between: "king - man + woman"',
            "一个词，或用 + - 连接的词",
        ),
    )
    parser.add_argument(
        "--model",
        required=True,
        type=WordVectorModelPath,
        metavar="DIR",
        help=say("a run of word vectors", "词向量的运行目录"),
    )
    parser.add_argument(
        "--count",
        type=positive,
        default=10,
        metavar="N",
        help=say("neighbours of each (10)", "每个词的邻居数（10）"),
    )
    parser.add_argument(
        "--one-hot",
        action="store_true",
        help=say(
            "also show the cosine of one-hot vectors for the same words",
            "并列显示独热向量对同样的词怎么说",
        ),
    )
    parser.add_argument(
        "--plot",
        type=OutputFile,
        metavar="FILE",
        help=say(
            "draw the words and their neighbours (.png or .svg)", "画出词与其邻居（.png 或 .svg）"
        ),
    )
    parser.add_argument(
        "--layout",
        choices=("tsne", "pca"),
        default="tsne",
        help=say("how the map is laid out: tsne or pca", "地图的布局：tsne 或 pca"),
    )
    parser.add_argument(
        "--json", action="store_true", help=say("machine-readable output", "输出 JSON")
    )


def check(arguments: argparse.Namespace) -> None:
    from pathlib import Path

    if arguments.plot is not None:
        from headwise.explorer.pictures.matplotlib_figure import check_picture

        check_picture(Path(arguments.plot))


def run(arguments: argparse.Namespace) -> int:
    from headwise.cli.terminal.tables import print_table
    from headwise.tasks.word_vectors.bundle import load_word_vectors

    space = load_word_vectors(arguments.model).space
    found = {query: space.nearest(query, num_words=arguments.count) for query in arguments.words}
    if arguments.plot is not None:
        _draw(space, found, arguments)
    if arguments.json:
        value = [
            {
                "query": query,
                "nearest": [{"word": one.word, "cosine": round(one.cosine, 6)} for one in near],
            }
            for query, near in found.items()
        ]
        sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")
        _doubt(space, arguments.words)
        return 0
    for query, near in found.items():
        headings = [query, say("cosine", "余弦")]
        rows = [[one.word, f"{one.cosine:.3f}"] for one in near]
        if arguments.one_hot:
            headings.append(say("one-hot", "独热"))
            # One-hot vectors of different words have product 0, whatever the words mean.
            rows = [[*row, "0.000"] for row in rows]
        print_table(headings, rows)
    _doubt(space, arguments.words)
    return 0


def _doubt(space: "VectorSpace", queries: "Sequence[str]") -> None:
    """Warn if the training text is too short for arithmetic with words."""
    if any(space.is_too_small_for(query) for query in queries):
        write_line(
            say(
                f"these vectors were learnt from {space.text_words:,} words of text, too few for "
                "sums such as king - man + woman: with 2 million words 5 % of a published list "
                "of analogies came out, with 5.5 million 15 %. Train on more text "
                "(data.train=FILE), or import published vectors (headwise vectors import)",
                f"这些词向量只从 {space.text_words:,} 个词的文本中学得，对 king - man + woman "
                "这样的加减来说太少：200 万词时公开类比题只答对 5%，550 万词时 15%。"
                "请用更多文本训练（data.train=文件），或导入公开的词向量（headwise vectors "
                "import）",
            ),
            sys.stderr,
        )


def _draw(
    space: "VectorSpace", found: "Mapping[str, Sequence[Neighbour]]", arguments: argparse.Namespace
) -> None:
    from pathlib import Path

    from headwise.explorer.pictures.word_map import draw_word_map
    from headwise.models.vector_space import parse_expression

    asked = [
        space.words[space.number_of(word)] for query in found for _, word in parse_expression(query)
    ]
    shown = list(dict.fromkeys([*asked, *(one.word for near in found.values() for one in near)]))
    vectors = space.unit_vectors[[space.numbers[word] for word in shown]]
    key = draw_word_map(shown, vectors, Path(arguments.plot), method=arguments.layout, marked=asked)
    write_line(say(f"map: {arguments.plot}", f"地图：{arguments.plot}"), sys.stderr)
    if key:
        write_line(
            "  ".join(f"{number} {word}" for number, word in enumerate(key, start=1)), sys.stderr
        )
