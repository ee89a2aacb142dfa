"""Results in words: no key of `results.json` stands in a table or a model card, in either
language."""

import ast
from pathlib import Path
from typing import Any

import headwise.tasks
from headwise.language import use_language
from headwise.tasks.labels.recipe import LabelRecipe
from headwise.tasks.language.recipe import LanguageRecipe
from headwise.tasks.pretraining.masked_recipe import MaskedRecipe
from headwise.tasks.result_rows import EVERY_RUN, WORDS, card_lines, result_rows
from headwise.tasks.table import TASKS
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.training.final_weights import FinalWeights
from headwise.training.progress import Reason

RESULTS: dict[str, Any] = {
    "steps": 800,
    "stopped_by": "steps",
    "weights": "best",
    "training_seconds": 259.6,
    "precision": "fp32",
    "compiled": False,
    "peak_memory_mib": 382.2,
    "test": {
        "bleu": {"name": "BLEU", "value": 99.583, "signature": "nrefs:1|tok:13a"},
        "exact_match": 0.5,
        "seconds": 3,
    },
}


def test_a_name_and_a_unit_for_each_result() -> None:
    assert result_rows(RESULTS, TranslationRecipe) == [
        ("training steps", "800", ""),
        ("stopped because", "all planned steps were done", ""),
        ("weights kept", "of the best validation", ""),
        ("training time", "4:20", ""),
        ("number format", "fp32", ""),
        ("compiled by torch.compile", "no", ""),
        ("peak memory, with the program itself", "382 MiB", ""),
        ("test set, BLEU", "99.58", "nrefs:1|tok:13a"),
    ]
    use_language("zh")
    assert ("内存峰值（含程序本身）", "382 MiB", "") in result_rows(RESULTS, TranslationRecipe)
    assert ("停止原因", "完成了全部计划步数", "") in result_rows(RESULTS, TranslationRecipe)
    assert "- peak memory, with the program itself: 382 MiB" in card_lines(
        RESULTS, TranslationRecipe
    ), "a model card is English"


def test_other_tasks() -> None:
    language = {
        "test": {"perplexity": None, "predictions": 1234, "unknown": 5},
        "ngrams": [5, 1234],
        "training_seconds": 0.25,
        "expected_memory_mib": 20480,
        "peak_memory_mib": None,
    }
    assert result_rows(language, LanguageRecipe) == [
        ("test set, perplexity", "∞", "1,234 predictions, 5 of them unknown words"),
        ("n-grams of each order", "5, 1,234", ""),
        ("training time", "0.25 s", ""),
        ("expected memory, without the program", "20.0 GiB", ""),
    ]
    labels = {"valid": {"accuracy": 0.5, "labels": 10, "macro_f1": 0.25, "classes": []}}
    assert result_rows(labels, LabelRecipe) == [
        ("validation set, accuracy", "50.00 %", "10 labels"),
        ("validation set, macro F1", "25.00 %", ""),
    ]
    masked = {"valid_next_sentence_accuracy": 0.75}
    assert result_rows(masked, MaskedRecipe) == [
        ("validation set, next-sentence accuracy", "75.00 %", "")
    ]
    use_language("zh")
    assert result_rows(masked, MaskedRecipe) == [("验证集下一句判断准确率", "75.00 %", "")]


def test_a_task_that_declares_nothing_is_shown_by_its_keys() -> None:
    assert result_rows({"points_read": 7, "test": {"error": 0.25}}) == [
        ("points read", "7", ""),
        ("test set, error", "0.25", ""),
    ]


RECORDING = ("sizes", "_training_results", "as_results", "count_model", "learn")
"""Functions whose dictionaries become results."""


def test_every_result_that_a_task_records_has_a_name() -> None:
    recorded: set[str] = set()
    for file in Path(headwise.tasks.__file__).parent.rglob("*.py"):
        for function in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(function, ast.FunctionDef) and function.name in RECORDING:
                recorded |= {
                    key.value
                    for node in ast.walk(function)
                    if isinstance(node, ast.Dict)
                    for key in node.keys
                    if isinstance(key, ast.Constant)
                }
    assert {
        "peak_memory_mib",
        "compiled",
        "ngrams",
        "examples",
        "words_per_second",
        "vocabulary",
    } <= recorded
    declared = EVERY_RUN.keys() | {key for entry in TASKS for key in entry.recipe_type.results}
    assert recorded - {"vectors"} <= declared  # vectors are a tensor


def test_every_reason_and_choice_of_weights_has_words() -> None:
    assert set(Reason.__args__) == WORDS["stopped_by"].keys()  # type: ignore[attr-defined]
    assert set(FinalWeights.__args__) == WORDS["weights"].keys()  # type: ignore[attr-defined]
