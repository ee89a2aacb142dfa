import argparse
import resource
import subprocess
import sys

import pytest

import headwise as package
from headwise.cli.options.parser import positive
from tests.cli.conftest import Headwise


def start(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "headwise", *words], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["train", "--help"]])
def test_help_answers_at_once(words: list[str]) -> None:
    seconds = []
    for _ in range(5):
        before = _processor_time_of_children()
        answer = start(*words)
        seconds.append(_processor_time_of_children() - before)
        assert answer.returncode == 0
        if seconds[-1] < 0.3:
            break
    assert min(seconds) < 0.3


def _processor_time_of_children() -> float:
    """Not the time on the wall: others may use the machine as well, the other half of the tests for
    one."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_nothing_heavy_is_imported_for_the_help_or_by_the_package() -> None:
    code = (
        "import sys, headwise\nfrom headwise.cli.main import build_parser\n"
        "build_parser().format_help()\nprint([name for name in ('torch', 'numpy', 'pydantic', "
        "'yaml', 'rich', 'sacrebleu') if name in sys.modules])"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "[]"


@pytest.mark.parametrize("number", [2**31, 10**22, "9" * 5000])
def test_a_number_that_no_library_can_count_to_is_refused(number: int | str) -> None:
    assert positive(str(2**31 - 1)) == 2**31 - 1
    with pytest.raises(argparse.ArgumentTypeError, match="at most 2,147,483,647; give one such"):
        positive(str(number))


def test_the_version_and_the_program_as_a_module() -> None:
    assert start("--version").stdout == f"headwise {package.__version__}\n"


def test_without_a_command_the_help_is_shown(headwise: Headwise) -> None:
    answer = headwise()
    assert answer.status == 0
    assert "headwise demo" in answer.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["trian"], "did you mean 'train'?"),
        (["translate", "--modle", "x"], "unrecognized arguments: --modle; did you mean '--model'?"),
        (["translate", "--modle=x"], "did you mean '--model'?"),
        (["serve", "--model", "x"], "--model; give it without --model: `headwise serve MODEL`"),
        (["train", "pocket", "--rnu", "x"], "did you mean '--run'?"),
        (["data", "lst"], "did you mean 'list'?"),
        (
            ["data", "fetch", "multi30k", "--jsn"],
            "headwise data fetch: unrecognized arguments: --jsn; did you mean '--json'?",
        ),
        (["--lnag", "zh"], "did you mean '--lang'?"),
        (
            ["train", "pocket", "--steps", "20"],
            "--steps; a value of the recipe is changed without dashes: training.steps=20; see",
        ),
        (
            ["plan", "pocket", "--steps=20"],
            "a value of the recipe is changed without dashes: training.steps=20; see",
        ),
        (
            ["train", "pocket", "--step", "20"],
            "--step; a value of the recipe is changed without dashes: training.steps=20; see",
        ),
        (["train", "pocket", "--resum"], "; did you mean '--resume'?"),
        (["train", "pocket", "--epochs", "3"], "changed without dashes: training.steps=…; see"),
        (
            ["train", "word-vectors", "--epochs", "3"],
            "changed without dashes: training.epochs=3; see",
        ),
        (["train", "pocket", "--lr", "3"], "changed without dashes: training.schedule.peak=3; see"),
        (
            ["train", "--run", "x", "pocket", "--device", "cuda"],
            "changed without dashes: training.device=cuda; see",
        ),
        (
            ["train", "pocket", "--batch-size=32"],
            "changed without dashes: training.batch_tokens=…; see",
        ),
        (
            ["train", "pocket", "--layers", "3"],
            "changed without dashes: model.encoder.layers=3 or model.decoder.layers=3; see",
        ),
        (["train", "ptb-gpt", "--layers", "3"], "changed without dashes: model.layers=3; see"),
        (
            ["translate", "--model", "x", "--sett", "20"],
            "unrecognized arguments: --sett; did you mean '--set'?; see",
        ),
        (["translate", "--model", "x", "--steps", "20"], "unrecognized arguments: --steps; see"),
        (["translate", "--mod", "x"], "unrecognized arguments: --mod; did you mean '--model'?"),
        (
            ["translate", "--model", "x", "file", "another"],
            "headwise translate: unrecognized arguments: another",
        ),
        (
            ["translate"],
            "the following arguments are required: --model; see `headwise translate --help`",
        ),
        (
            ["translate", "--model", "x", "--n-best", "0"],
            "--n-best: '0' is not a whole number from 1 on",
        ),
        (
            ["translate", "--model", "x", "--n-best", "many"],
            "--n-best: 'many' is not a whole number from 1 on",
        ),
        (
            ["describe", "pocket", "--length", "-3"],
            "--length: '-3' is not a whole number from 1 on",
        ),
        (["plan", "pocket", "--gpus", "0"], "--gpus: '0' is not a whole number from 1 on"),
        (["plan", "pocket", "--memory", "-3"], "--memory: '-3' is not a number above 0"),
        (["plan", "pocket", "--bandwidth", "nan"], "--bandwidth: 'nan' is not a number above 0"),
        (["translate", "--model", "x", "--device", "tpu"], "invalid choice: 'tpu'"),
        (["--lang", "fr"], "invalid choice: 'fr'"),
    ],
)
def test_a_typing_mistake_is_answered_with_the_nearest_name(
    words: list[str], message: str, headwise: Headwise
) -> None:
    answer = headwise(*words)
    assert answer.status == 2
    assert answer.out == ""
    assert message in answer.err.replace("‘", "'").replace("’", "'")


@pytest.mark.parametrize("words", [["--lang", "zh", "trian"], ["trian", "--lang=zh"]])
def test_mistakes_are_explained_in_chinese(words: list[str], headwise: Headwise) -> None:
    answer = headwise(*words)
    assert answer.status == 2
    assert "没有 'trian' 这个选择" in answer.err
    assert "是否想写 'train'？" in answer.err
    assert "缺少必需的参数：--model" in headwise("--lang", "zh", "translate").err
    assert (
        "参数 --n-best：'0' 不是正整数"
        in headwise("--lang", "zh", "translate", "--model", "x", "--n-best", "0").err
    )


def test_the_language_may_be_chosen_anywhere(
    headwise: Headwise, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "配方" in headwise("recipes", "--help", "--lang", "zh").out
    assert "配方" in headwise("--lang=zh", "recipes", "--help").out
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    assert "配方" in headwise("recipes", "--help").out
    assert "配方" not in headwise("recipes", "--help", "--lang", "en").out
