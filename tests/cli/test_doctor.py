"""`headwise doctor` as a user sees it: every state of a run, in English and in Chinese."""

import ast
import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from headwise.inspecting import run_diagnosis as diagnosis
from headwise.language import say
from headwise.storage import write_sealed_json
from headwise.training.run_lock import release_lock, take_lock
from tests.cli.conftest import Answer, Headwise
from tests.survival.damage import flip_bit

RUN = Path("run")
HAN = re.compile(r"[\u4e00-\u9fff]")
NEWEST, BEFORE = "run/checkpoints/step-6", "run/checkpoints/step-4"


def flip(name: str) -> Callable[[], None]:
    return lambda: flip_bit(Path(name), 8 * (Path(name).stat().st_size // 2))


def edit(name: str, old: str, new: str) -> Callable[[], None]:
    def work() -> None:
        text = Path(name).read_text(encoding="utf-8")
        assert old in text
        Path(name).write_text(text.replace(old, new), encoding="utf-8")

    return work


def remove(*names: str) -> Callable[[], None]:
    def work() -> None:
        for name in names:
            shutil.rmtree(name) if Path(name).is_dir() else Path(name).unlink()

    return work


def rename(old: str, new: str) -> Callable[[], None]:
    return lambda: Path(old).rename(new)


def make(name: str) -> Callable[[], None]:
    return lambda: Path(name).mkdir()


def write(name: str, text: str) -> Callable[[], None]:
    return lambda: Path(name).write_text(text, encoding="utf-8") and None


def all_of(*works: Callable[[], None]) -> Callable[[], None]:
    def work() -> None:
        for one in works:
            one()

    return work


def change_manifest() -> None:
    content = json.loads(Path("run/model/MANIFEST.json").read_text(encoding="utf-8"))
    write_sealed_json(Path("run/model/MANIFEST.json"), {**content, "kind": "kettle"})


CASES: dict[str, tuple[Callable[[], None], str, str]] = {
    "a damaged recipe": (
        edit("run/recipe.yaml", "seed: 1", "seed: 3"),
        (
            "✗ run/recipe.yaml: is not as it was written (its SHA-256 is another): a bit was "
            "flipped, or somebody edited it; give changes as key.path=value on the command line; "
            f"to mend it: cp {NEWEST}/recipe.yaml run/recipe.yaml"
        ),
        "✗ run/recipe.yaml：与写入时不同（SHA-256 不符）",
    ),
    "no recipe": (
        remove("run/recipe.yaml"),
        (
            "✗ run/recipe.yaml: is missing, resuming is not possible; to mend it: cp "
            f"{NEWEST}/recipe.yaml run/recipe.yaml"
        ),
        f"✗ run/recipe.yaml：缺失，无法恢复训练；恢复办法：cp {NEWEST}/recipe.yaml run/recipe.yaml",
    ),
    "LATEST with a flipped bit": (
        write("run/LATEST", "step-7\n"),
        (
            "✗ run/LATEST: is damaged or out of date (it holds 'step-7', the name of no "
            "checkpoint here); resuming will use step-6"
        ),
        (
            "✗ run/LATEST：已损坏或过时（其内容 'step-7' 不是此处任何检查点的名字）；"
            "恢复时将使用 step-6"
        ),
    ),
    "a damaged prepared.json": (
        edit("run/data/prepared.json", "true", "false"),
        (
            "✗ run/data/prepared.json: is damaged (its SHA-256 is not the one it was sealed with); "
            "prepare the data again; to do so, remove it and resume"
        ),
        (
            "✗ run/data/prepared.json：已损坏（SHA-256 与封存时不同）；请重新准备数据；"
            "办法是删除它后恢复训练"
        ),
    ),
    "unfinished data": (
        remove("run/data/prepared.json"),
        "· run/data: unfinished; the data is made again at the next start",
        "· run/data：尚未准备完；下次启动时会重新生成",
    ),
    "a lost part of the data": (
        remove("run/data/valid"),
        (
            "✗ run/data/valid: run/data/valid/MANIFEST.json: cannot be read (No such file or "
            "directory)"
        ),
        "✗ run/data/valid：run/data/valid/MANIFEST.json: 无法读取",
    ),
    "a damaged manifest": (
        flip(f"{NEWEST}/MANIFEST.json"),
        f"✗ {NEWEST}: {NEWEST}/MANIFEST.json: is damaged",
        f"✗ {NEWEST}：{NEWEST}/MANIFEST.json: 已损坏",
    ),
    "a damaged checkpoint": (
        flip(f"{NEWEST}/optimizer.safetensors"),
        (
            f"✗ {NEWEST}: {NEWEST}/optimizer.safetensors: is damaged (its SHA-256 is not the one "
            "written); use another copy or an earlier checkpoint; resuming will use step-4"
        ),
        (
            f"✗ {NEWEST}：{NEWEST}/optimizer.safetensors: 已损坏（SHA-256 与写入时不同）；"
            "请用其他副本或更早的检查点；恢复时将使用 step-4"
        ),
    ),
    "no whole checkpoint": (
        all_of(flip(f"{NEWEST}/state.json"), flip(f"{BEFORE}/state.json")),
        (
            "✗ run/checkpoints: no checkpoint is whole, resuming is not possible; whole is still "
            "best/step-"
        ),
        "✗ run/checkpoints：没有完好的检查点，无法恢复；仍完好的有 best/step-",
    ),
    "no checkpoint": (
        remove("run/checkpoints"),
        (
            "✗ run/checkpoints: LATEST names step 6, but checkpoints/ is missing or empty, so "
            "there is nothing to go on from"
        ),
        "✗ run/checkpoints：LATEST 指向第 6 步，但 checkpoints/ 缺失或为空，无法继续",
    ),
    "damaged best weights": (
        lambda: flip(f"{next(RUN.glob('best/*'))}/model.safetensors")(),
        "; a resumed run will end with its last weights instead",
        "；恢复的训练将改用最后的权重",
    ),
    "a damaged model": (
        flip("run/model/weights.safetensors"),
        "✗ run/model: run/model/weights.safetensors: is damaged",
        "✗ run/model：run/model/weights.safetensors: 已损坏",
    ),
    "no model yet": (
        remove("run/model"),
        "· run/model: there is no finished model yet; resume the training to get one",
        "· run/model：尚无训练完成的模型；继续训练即可得到",
    ),
    "a model that was moved aside": (
        rename("run/model", "run/model.replaced"),
        (
            "✗ run/model.replaced: is model, which a save that was interrupted had moved aside; "
            "resuming puts it back, or do it yourself: mv run/model.replaced run/model"
        ),
        (
            "✗ run/model.replaced：就是 model：保存中断时它刚被移开；恢复训练时会放回，"
            "也可自行执行：mv run/model.replaced run/model"
        ),
    ),
    "the rest of a save": (
        all_of(
            make("run/model.incomplete"),
            make("run/data/train.incomplete"),
            make("run/best/step-2.retired"),
        ),
        "· run/data/train.incomplete: left by an interrupted save; removed at the next start",
        "· run/data/train.incomplete：中断的保存所留；下次启动时清除",
    ),
    "a checkpoint put aside": (
        make("run/checkpoints/step-9.damaged"),
        (
            "· run/checkpoints/step-9.damaged: was put aside when the run went on from an "
            "earlier checkpoint; it may be removed"
        ),
        "· run/checkpoints/step-9.damaged：训练从更早的检查点继续时被放在一边；可以删除",
    ),
    "a directory of another kind": (
        change_manifest,
        (
            "✗ run/model: run/model/MANIFEST.json: is of a directory of kind 'kettle', one of "
            "kind 'bundle' is needed; give such a directory"
        ),
        (
            "✗ run/model：run/model/MANIFEST.json: 所在目录的类型是 'kettle'，"
            "这里需要 'bundle' 类型的目录；请换成那种目录"
        ),
    ),
    "nothing": (remove("run"), "· run: holds no run", "· run：其中没有运行"),
    "a healthy run": (
        lambda: None,
        "✓ run/recipe.yaml: the recipe of this run, readable",
        "✓ run/model：完整的模型，en → de",
    ),
}


SEEN: set[str] = set()
"""Cases that were run."""


@pytest.fixture(name="reached", scope="module")
def _reached() -> set[tuple[str, int]]:
    """File and line of each message that some test of this module has seen."""
    return set()


@pytest.fixture(autouse=True)
def _watched(reached: set[tuple[str, int]], monkeypatch: pytest.MonkeyPatch) -> None:
    def watch(en: str, zh: str) -> str:
        frame = sys._getframe(1)
        reached.add((frame.f_code.co_filename, frame.f_lineno))
        return say(en, zh)

    monkeypatch.setattr(diagnosis, "say", watch)


def check_english(answer: Answer) -> None:
    assert not HAN.search(answer.out)
    assert answer.err == ""


def check_chinese(answer: Answer) -> None:
    """Each line says something in Chinese; paths, names and commands stay as they are."""
    for line in answer.out.splitlines():
        topic, text = re.split("：", line, maxsplit=1)
        assert topic[0] in "✓·✗"
        assert HAN.search(text), line


@pytest.mark.parametrize("case", CASES)
def test_every_state_of_a_run(case: str, headwise: Headwise, tiny_run: Path) -> None:
    SEEN.add(case)
    work, english, chinese = CASES[case]
    shutil.copytree(tiny_run, RUN)
    work()
    RUN.mkdir(exist_ok=True)
    said = headwise("doctor", RUN)
    assert english in said.out
    assert said.status == (3 if "✗" in said.out else 0)
    assert ("✗" in english or case == "damaged best weights") == (said.status == 3)
    check_english(said)
    again = headwise("--lang", "zh", "doctor", RUN)
    assert chinese in again.out
    assert again.status == said.status
    check_chinese(again)
    states = [finding["state"] for finding in json.loads(headwise("doctor", RUN, "--json").out)]
    marks = [{"✓": "good", "·": "note", "✗": "damaged"}[line[0]] for line in said.out.splitlines()]
    assert states == marks


def test_a_trainer_at_work(headwise: Headwise, tiny_run: Path) -> None:
    shutil.copytree(tiny_run, RUN)
    lock = take_lock(RUN)
    assert "· run: a trainer is at work here\n" in headwise("doctor", RUN).out
    assert "· run：有训练正在此处进行\n" in headwise("--lang", "zh", "doctor", RUN).out
    release_lock(lock)


def test_word_vectors(headwise: Headwise) -> None:
    Path("vectors.txt").write_text("2 3\nking 1 2 3\nqueen 3 2 1\n", encoding="utf-8")
    assert headwise("vectors", "import", "vectors.txt", "--to", "words").status == 0
    said = headwise("doctor", "words")
    assert (said.status, said.out) == (
        0,
        "✓ words: a whole bundle, word vectors, 2 words, dimension 3\n",
    )
    assert (
        headwise("--lang", "zh", "doctor", "words").out
        == "✓ words：完整的模型，词向量，2 个词，3 维\n"
    )


def test_this_machine(headwise: Headwise) -> None:
    said = headwise("doctor")
    assert said.status == 0
    assert "✓ headwise: " in said.out
    check_english(said)
    assert "处理器：" in headwise("--lang", "zh", "doctor").out


def test_what_is_no_directory(headwise: Headwise) -> None:
    assert headwise("doctor", "none").status == 3
    said = headwise("--lang", "zh", "doctor", "none")
    assert (said.status, "none: 不存在；请给出运行目录，例如 runs/demo" in said.err) == (3, True)


def test_no_message_was_left_out(reached: set[tuple[str, int]]) -> None:
    """Each message of the doctor about a run has been printed by a test above."""
    if set(CASES) != SEEN:
        pytest.skip("only some of the cases were run")
    for module in (diagnosis,):
        file = str(module.__file__)
        calls = [
            node
            for node in ast.walk(ast.parse(Path(file).read_text(encoding="utf-8")))
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "say"
        ]
        lines = {line for name, line in reached if name == file}
        missed = [
            node.lineno
            for node in calls
            if not lines & set(range(node.lineno, (node.end_lineno or 0) + 1))
        ]
        assert not missed, f"{file}: no test has seen the messages of lines {missed}"
