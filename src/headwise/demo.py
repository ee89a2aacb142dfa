"""The work behind `headwise demo`: trains a small Transformer on the pocket corpus and uses it.

Training, evaluation and pictures take about four minutes. Nothing is downloaded. A finished demo
is reused, an interrupted one continues where it stopped; `fresh` starts over.
"""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from headwise.data.pairs.choices import PocketCorpus
from headwise.errors import UsageError
from headwise.explorer.data.attention_maps import Trace
from headwise.explorer.data.translation_maps import trace_translation
from headwise.explorer.data.word_grouping import group_pieces
from headwise.explorer.pictures.heat_maps import draw_grid, draw_heat_map
from headwise.explorer.pictures.html_page import write_page
from headwise.explorer.pictures.pronoun_picture import draw_pronoun_picture, find_antecedent_head
from headwise.language import say
from headwise.pocket import NOTES_EXAMPLES, sentence
from headwise.pocket.language_pair import split_pair
from headwise.settings import read_settings_file
from headwise.storage import MANIFEST
from headwise.tasks.events import Events
from headwise.tasks.recipe import load_translation_recipe
from headwise.tasks.run import train
from headwise.tasks.translation.pocket_test import (
    AlignmentScale,
    HeadAlignment,
    PocketScores,
    measure_alignment,
    measure_pocket,
    scale_alignment,
)
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.tasks.translation.translator import Translator
from headwise.training.run_lock import lock_is_held

NUM_TEST_SENTENCES = 500
SECONDS_PER_STEP = 0.2
"""With the corpus prepared and the validations on the way, on two CPU cores: 800 steps in about 3
minutes."""
LANGUAGES = {"en": ("English", "英语"), "zh": ("Chinese", "中文"), "de": ("German", "德语")}
NUM_ALIGNED_SENTENCES = 200
SHOWN_TEST_SENTENCES = (3, 387, 8, 11, 58, 21)
"""Among them she and him in one sentence (387) and them (58): it is not the only pronoun."""
SHOWN_UNSEEN_SENTENCES = (1, 2, 4, 7)
THE_PRONOUN = {"en": "it", "zh": "它"}
"""Of the two sentences of the notes, in the languages in which it is the same in both."""
ANTECEDENTS = {"en": ("animal", "street"), "zh": ("动物", "马路")}
"""What the pronoun refers to in the first and in the second of these sentences."""
RUN_DIRECTORIES = ("data", "checkpoints", "best", "snapshots", "model", "pictures")
RUN_FILES = ("recipe.yaml", "log.jsonl", "LATEST", ".lock")


@dataclass(frozen=True)
class ShownTranslation:
    """A sentence the user is shown, with the grammar's answer."""

    source: str
    translation: str
    reference: str

    @property
    def is_right(self) -> bool:
        return self.translation == self.reference


@dataclass(frozen=True)
class DemoResult:
    translator: Translator
    directory: Path
    training: dict[str, Any]
    test: PocketScores
    unseen: PocketScores
    alignment: HeadAlignment
    alignment_scale: AlignmentScale
    shown: tuple[ShownTranslation, ...]
    pictures: tuple[Path, ...]

    def as_dict(self) -> dict[str, Any]:
        return {
            "model": str(self.directory / "model"),
            "training_seconds": self.training["training_seconds"],
            "steps": self.training["steps"],
            "test": self.test.as_dict(),
            "unseen": self.unseen.as_dict(),
            "alignment": {**self.alignment.as_dict(), "scale": vars(self.alignment_scale)},
            "translations": [vars(shown) for shown in self.shown],
            "pictures": [str(path) for path in self.pictures],
        }


def run_demo(pair: str, *, run: Path | str, fresh: bool, quick: bool, events: Events) -> DemoResult:
    """Train (or take up what is there), measure, translate, draw."""
    source, target = split_pair(pair)
    directory = Path(run)
    overrides = [f"data.source={source}", f"data.target={target}"]
    recipe = load_translation_recipe("pocket", overrides)
    if quick:
        short = [
            f"training.steps={max(1, recipe.training.steps // 10)}",
            "training.schedule.warmup=20",
        ]
        recipe = load_translation_recipe("pocket", [*overrides, *short])
    held = (directory / "recipe.yaml").exists()
    if fresh and held:
        _require_demo(directory)
        _remove_run(directory)
        held = False
    if (directory / "model" / MANIFEST).exists() and held:
        translator = _take_up(directory, pair)
        events.note(
            say(
                f"using the model trained before in {directory} for "
                f"{translator.recipe.training.steps:,} steps (--fresh trains anew)",
                f"使用 {directory} 中已训练 {translator.recipe.training.steps:,} "
                "步的模型（--fresh 重新训练）",
            )
        )
    else:
        if held and read_settings_file(directory / "recipe.yaml") != recipe.model_dump(mode="json"):
            raise UsageError(
                f"{directory} holds an unfinished run with other settings (another pair, or "
                "--quick); add --fresh to start over, or --run with another directory",
                f"{directory} 中有一次设置不同（语言对或 --quick 不同）且未完成的运行；请加 "
                "--fresh 重新开始，或用 --run 换一个目录",
            )
        events.note(_introduce(recipe, directory))
        train(recipe, run=directory, resume=held, events=events)
        translator = Translator.load(directory / "model")
    return _show(translator, directory, events)


def _introduce(recipe: TranslationRecipe, directory: Path) -> str:
    """What will happen, how long it takes and what the result is: the first lines that a new user
    reads."""
    source, target = (say(*LANGUAGES[name]) for name in (recipe.data.source, recipe.data.target))
    pairs = sum(
        corpus.count or 0 for corpus in recipe.data.train if isinstance(corpus, PocketCorpus)
    )
    steps = recipe.training.steps
    minutes = max(1, round(steps * SECONDS_PER_STEP / 60))
    return say(
        f"This demo trains a small Transformer that translates {source} into {target}.\n  1. "
        f"read:  {pairs:,} sentence pairs of the built-in corpus; nothing is downloaded\n  2. "
        f"train: {steps:,} steps, about {minutes} min on two CPU cores\n  3. test:  "
        f"{2 * NUM_TEST_SENTENCES:,} sentences that it has never seen\n  4. draw:  what it "
        "attends to, as pictures and as a page for your browser\nYou get scores, sample "
        f"translations, pictures in {directory}/pictures and the model in {directory}/model. On a "
        "terminal you can then type sentences of your own. Ctrl-C saves and stops; the same "
        "command goes on.\n",
        f"这个演示会训练一个小 Transformer，把{source}译成{target}。\n  1. 读入：自带语料的 "
        f"{pairs:,} 个句对，无需下载\n  2. 训练：{steps:,} 步，两个 CPU 核心上约 {minutes} "
        f"分钟\n  3. 评测：{2 * NUM_TEST_SENTENCES:,} 个它从未见过的句子\n  4. 绘图：它的注意力，"
        f"画成图片和可在浏览器中打开的页面\n你将得到评分、译文示例、{directory}/pictures "
        f"中的图片和 {directory}/model 中的模型；在终端上还可以接着输入自己的句子。按 Ctrl-C "
        "会保存并停止；再次运行同一命令即可继续。\n",
    )


def _take_up(directory: Path, pair: str) -> Translator:
    translator = Translator.load(directory / "model")
    there = f"{translator.source_language}-{translator.target_language}"
    if there != pair:
        raise UsageError(
            f"{directory} holds a demo of {there}, {pair} was asked for; add --run "
            f"runs/demo-{pair}, or --fresh to train anew",
            f"{directory} 中是 {there} 的演示，而要求 {pair}；请加 --run runs/demo-{pair}，或用 "
            "--fresh 重新训练",
        )
    return translator


def _require_demo(directory: Path) -> None:
    """Refuse to remove anything but a demo: another training, other files, or a run in progress."""
    data = read_settings_file(directory / "recipe.yaml").get("data", {})
    is_demo = [corpus.get("kind") for corpus in data.get("train", [])] == ["pocket"]
    other_files = {child.name for child in directory.iterdir()} - {*RUN_DIRECTORIES, *RUN_FILES}
    if other_files or not is_demo or lock_is_held(directory):
        raise UsageError(
            f"{directory} holds more than a demo, or one that is still going on; --fresh would "
            "remove it: give another --run",
            f"{directory} 中不只是演示，或演示仍在进行；--fresh 会将其删除：请用 --run 换一个目录",
        )


def _remove_run(directory: Path) -> None:
    """Remove an old demo; only files and directories that a run writes are removed."""
    for name in RUN_DIRECTORIES:
        shutil.rmtree(directory / name, ignore_errors=True)
    for name in RUN_FILES:
        (directory / name).unlink(missing_ok=True)


def _show(translator: Translator, directory: Path, events: Events) -> DemoResult:
    events.note(say("measuring on sentences it never saw …", "在未见过的句子上评测……"))
    labels = {
        "test": say("test sentences", "测试句"),
        "unseen": say("unseen combinations", "未见组合"),
    }
    test, unseen = (
        measure_pocket(
            translator, split, count=NUM_TEST_SENTENCES, progress=partial(events.count, label)
        )
        for split, label in labels.items()
    )
    alignment = measure_alignment(translator, count=NUM_ALIGNED_SENTENCES)[0]
    events.note(say("drawing what it attends to …", "绘制注意力……"))
    pictures = draw_pictures(translator, directory / "pictures")
    return DemoResult(
        translator,
        directory,
        dict(translator.bundle.results),
        test,
        unseen,
        alignment,
        scale_alignment(
            translator.source_language, translator.target_language, count=NUM_ALIGNED_SENTENCES
        ),
        show_translations(translator),
        pictures,
    )


def show_translations(translator: Translator) -> tuple[ShownTranslation, ...]:
    """A dozen sentences: the two of the notes, some of the test set, some new combinations."""
    chosen = [
        *NOTES_EXAMPLES,
        *(sentence("test", number) for number in SHOWN_TEST_SENTENCES),
        *(sentence("unseen", number) for number in SHOWN_UNSEEN_SENTENCES),
    ]
    source, target = translator.source_language, translator.target_language
    translations = translator([one.text(source) for one in chosen])
    return tuple(
        ShownTranslation(one.text(source), translation.text, one.text(target))
        for one, translation in zip(chosen, translations, strict=True)
    )


def draw_pictures(translator: Translator, directory: Path) -> tuple[Path, ...]:
    """Cross- and self-attention as PNG, and one page to explore them all."""
    source = translator.source_language
    texts = [one.text(source) for one in NOTES_EXAMPLES]
    texts += [sentence("test", number).text(source) for number in SHOWN_TEST_SENTENCES]
    traces = [trace_translation(translator, text) for text in texts]
    paths = [
        directory / name for name in ("cross-attention.png", "self-attention.png", "heads.png")
    ]
    draw_heat_map(traces[0], paths[0], kind="cross")
    draw_heat_map(traces[0], paths[1], kind="encoder_self")
    draw_grid(traces[0], paths[2], kind="cross")
    if draw_pronoun(traces[:2], directory / "pronoun.png", source=source):
        paths.append(directory / "pronoun.png")
    page = directory / "attention.html"
    write_page(traces, page, title=_page_title(translator, traces))
    return (*paths, page)


def draw_pronoun(traces: Sequence[Trace], path: Path, *, source: str) -> bool:
    """The attention of the pronoun in the two sentences of the notes; nothing is drawn if a longer
    piece contains the pronoun (因为它太)."""
    word = THE_PRONOUN.get(source)
    if word is None or any(word not in group_pieces(trace.source_pieces).text for trace in traces):
        return False
    read, written = (
        find_antecedent_head(traces, word, antecedents=ANTECEDENTS[source], kind=kind)
        for kind in ("encoder_self", "cross")
    )
    draw_pronoun_picture(traces, path, word=word, read=read, written=written)
    return True


def _page_title(translator: Translator, traces: Sequence[Trace]) -> str:
    pair = f"{translator.source_language} → {translator.target_language}"
    return say(f"Attention of the translator {pair}", f"{pair} 翻译模型的注意力")
