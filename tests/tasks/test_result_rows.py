"""Results in words: no key of `results.json` stands in a table or a model card, in either
language."""

import ast
from pathlib import Path
from typing import Any

import headwise.tasks
from headwise.language import use_language
from headwise.tasks.result_rows import NAMES, WORDS, card_lines, result_rows
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
    assert result_rows(RESULTS) == [
        ("training steps", "800", ""),
        ("stopped because", "all planned steps were done", ""),
        ("weights kept", "of the best validation", ""),
        ("training time", "4:20", ""),
        ("number format", "fp32", ""),
        ("compiled by torch.compile", "no", ""),
        ("peak memory, with what the program loads", "382 MiB", ""),
        ("test set, BLEU", "99.58", "nrefs:1|tok:13a"),
    ]
    use_language("zh")
    assert ("内存峰值（含程序加载的部分）", "382 MiB", "") in result_rows(RESULTS)
    assert ("停止原因", "完成了全部计划步数", "") in result_rows(RESULTS)
    assert "- peak memory, with what the program loads: 382 MiB" in card_lines(RESULTS), (
        "a model card is English"
    )


def test_other_tasks() -> None:
    rows = result_rows(
        {
            "test": {"perplexity": None, "predictions": 1234, "unknown": 5},
            "valid": {"accuracy": 0.5, "labels": 10, "macro_f1": 0.25, "classes": []},
            "valid_next_sentence_accuracy": 0.75,
            "ngrams": [5, 1234],
            "training_seconds": 0.25,
            "expected_memory_mib": 20480,
            "peak_memory_mib": None,
        }
    )
    assert rows == [
        ("test set, perplexity", "∞", "1,234 predictions, 5 of them unknown words"),
        ("validation set, accuracy", "50.00 %", "10 labels"),
        ("validation set, macro F1", "25.00 %", ""),
        ("validation set, next sentence told apart", "75.00 %", ""),
        ("n-grams of each order", "5, 1,234", ""),
        ("training time", "0.25 s", ""),
        ("expected memory, without the program", "20.0 GiB", ""),
    ]


RECORDING = ("sizes", "_training_results", "as_results", "count_model", "count")
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
    assert recorded - {"vectors"} <= NAMES.keys()  # vectors are a tensor


def test_every_reason_and_choice_of_weights_has_words() -> None:
    assert set(Reason.__args__) == WORDS["stopped_by"].keys()  # type: ignore[attr-defined]
    assert set(FinalWeights.__args__) == WORDS["weights"].keys()  # type: ignore[attr-defined]
