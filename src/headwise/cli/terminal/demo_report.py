"""The report at the end of `headwise demo`: scores with their scales, a dozen translations,
pictures, and what to try next.
"""

import shutil
import sys
from typing import TYPE_CHECKING

from headwise.cli.terminal.tables import print_table
from headwise.cli.terminal.wrapping import write_line
from headwise.language import say

if TYPE_CHECKING:
    from headwise.demo import DemoResult

EASY = 0.75
"""If this share of pronouns is right when translated word for word, they test little."""


def print_demo(result: "DemoResult") -> None:
    """Scores, a dozen translations, pictures, and what to try next."""
    headings = (
        say("test set", "测试集"),
        "BLEU",
        "chrF",
        say("exactly right", "完全正确"),
        say("pronouns right", "代词正确"),
        say("pronouns word for word", "代词逐词译"),
    )
    names = {"test": say("new sentences", "新句子"), "unseen": say("new combinations", "新组合")}
    rows = [
        (
            names[scores.split],
            f"{scores.translation.bleu.value:.1f}",
            f"{scores.translation.chrf.value:.1f}",
            f"{100 * scores.translation.exact_match:.1f} %",
            f"{100 * scores.pronoun_accuracy:.1f} %",
            f"{100 * scores.pronouns_word_for_word:.1f} %",
        )
        for scores in (result.test, result.unseen)
    ]
    seconds = result.training["training_seconds"]
    print_table(
        headings,
        rows,
        title=say(f"after {seconds:.0f} seconds of training", f"训练 {seconds:.0f} 秒之后"),
    )
    write_line(f"{_explain_pronouns(result)}\n{_explain_alignment(result)}\n")
    for shown in result.shown:
        mark = "✓" if shown.is_right else "✗"
        sys.stdout.write(f"  {shown.source}\n{mark} {shown.translation}\n")
        if not shown.is_right:
            write_line(say(f"  (right: {shown.reference})", f"  （正确：{shown.reference}）"))
    write_line("\n" + say("Pictures:", "图片："))
    for path in result.pictures:
        sys.stdout.write(f"  {path}\n")
    _print_next(result)


def _explain_pronouns(result: "DemoResult") -> str:
    """What the last column means, and whether pronouns are a test for this pair of languages."""
    source = result.translator.source_language
    meaning = say(
        "Word for word: a pronoun gets the translation it has most often, and no other word is "
        "looked at.",
        "逐词译：每个代词都取它最常见的译法，不看别的词。",
    )
    if result.test.pronouns_word_for_word < EASY or source == "de":
        return meaning
    pair = f"{source}-de"
    return meaning + say(
        " Between Chinese and English that is nearly all there is to it (它 it, 他 he, 她 she); "
        "what 它 or it stands for must be found when German is written (er, sie, es): --pair "
        f"{pair}.",
        "中英之间这样几乎就够了（它 it，他 he，她 she）；译成德语（er、sie、es）"
        f"才必须找出“它”指什么：--pair {pair}。",
    )


def _explain_alignment(result: "DemoResult") -> str:
    """The alignment error rate, with both ends of its scale."""
    best, scale = result.alignment, result.alignment_scale
    head = (
        say("the mean of its heads", "各头平均")
        if best.head is None
        else say(f"head {best.head + 1}", f"第 {best.head + 1} 头")
    )
    return say(
        f"Word alignment read off attention: error rate {best.scores.error_rate:.3f} (decoder "
        f"layer {best.layer + 1}, {head}). 0 means that every link is right, 1 that none is. On "
        f"these sentences, linking words by their position alone gives {scale.straight:.3f}; with "
        f"one link for each word {scale.lowest:.3f} is the lowest possible.",
        f"由注意力读出的词对齐：错误率 {best.scores.error_rate:.3f}（解码器第 {best.layer + 1} "
        f"层，{head}）。0 表示全对，1 表示全错。在这些句子上，只按位置连线为 "
        f"{scale.straight:.3f}；每词一条连线时最低可到 {scale.lowest:.3f}。",
    )


def _print_next(result: "DemoResult") -> None:
    """What to try after the demo."""
    model, pair = (
        result.directory / "model",
        f"{result.translator.source_language}-{result.translator.target_language}",
    )
    other = {"en-de": "zh-en", "zh-en": "zh-de"}.get(pair, "en-de")
    languages = "" if pair == "en-de" else " data.source={} data.target={}".format(*pair.split("-"))
    nexts: tuple[tuple[str, str], ...] = (
        (
            f"headwise explore {model}",
            say("watch it attend, search, decide", "观察它的注意力、搜索与决策过程"),
        ),
        (
            f"headwise translate --model {model}",
            say("type sentences of your own", "输入自己的句子"),
        ),
        (f"headwise describe {model}", say("what it is made of", "看它由什么组成")),
        (
            f"headwise demo --pair {other} --run runs/demo-{other}",
            say("another pair of languages", "换一对语言"),
        ),
        (
            f"headwise train pocket --run runs/deeper{languages} model.encoder.layers=4",
            say("change one part, compare", "改一处，比一比"),
        ),
        ("headwise train --help", say("train on your own corpus", "用自己的语料训练")),
    )
    write_line(say("What to try next:", "接下来可以试试："))
    if shutil.which("headwise") is None:
        nexts = (
            (
                "source .venv/bin/activate",
                say("puts headwise on your path", "使 headwise 可直接调用"),
            ),
            *nexts,
        )
    for command, purpose in nexts:
        sys.stdout.write(f"  {purpose}{say(':', '：')}\n    {command}\n")
