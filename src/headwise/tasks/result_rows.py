"""The results of a run as rows of a table: a name, a value with its unit, and remarks.

The table at the end of `headwise train` and the model cards use these rows. Programs should read
`results.json` or `--json`, whose keys do not change.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal

from headwise.language import clock, say

Row = tuple[str, str, str]
"""Name, value, detail (a signature, or what was counted)."""
Choose = Callable[[str, str], str]
"""Takes a text in English and in Chinese, and returns one of them."""
Unit = Literal["count", "time", "memory", "switch", "counts", "share", "decimals", "word"]

NAMES: dict[str, tuple[str, str, Unit]] = {
    "steps": ("training steps", "训练步数", "count"),
    "stopped_by": ("stopped because", "停止原因", "word"),
    "weights": ("weights kept", "保留的权重", "word"),
    "target_tokens": ("target tokens seen", "见过的目标词元", "count"),
    "training_seconds": ("training time", "训练用时", "time"),
    "expected_seconds": ("expected training time on this machine", "本机预计训练用时", "time"),
    "expected_memory_mib": (
        "expected memory, without the program",
        "预计内存（不含程序本身）",
        "memory",
    ),
    "counting_seconds": ("of that, counting", "其中计数用时", "time"),
    "precision": ("number format", "数值格式", "word"),
    "compiled": ("compiled by torch.compile", "用 torch.compile 编译", "switch"),
    "parameters": ("parameters", "参数", "count"),
    "peak_memory_mib": (
        "peak memory, with what the program loads",
        "内存峰值（含程序加载的部分）",
        "memory",
    ),
    "pairs": ("sentence pairs", "句对", "count"),
    "examples": ("examples", "样本", "count"),
    "classes": ("classes", "类别", "count"),
    "lines": ("lines of text", "文本行数", "count"),
    "tokens": ("tokens of text", "文本词元", "count"),
    "vocabulary": ("vocabulary", "词表大小", "count"),
    "words": ("different words", "词的种数", "count"),
    "text_words": ("words of text", "文本词数", "count"),
    "epochs": ("epochs", "轮数", "count"),
    "words_per_second": ("words per second", "每秒词数", "count"),
    "ngrams": ("n-grams of each order", "各阶 n 元语法数", "counts"),
    "valid_loss": ("validation set, loss", "验证集损失", "decimals"),
    "valid_perplexity": ("validation set, perplexity", "验证集困惑度", "decimals"),
    "valid_forward_perplexity": (
        "validation set, perplexity read forward",
        "验证集困惑度（正向）",
        "decimals",
    ),
    "valid_backward_perplexity": (
        "validation set, perplexity read backward",
        "验证集困惑度（反向）",
        "decimals",
    ),
    "valid_accuracy": ("validation set, accuracy", "验证集准确率", "share"),
    "valid_next_sentence_accuracy": (
        "validation set, next sentence told apart",
        "验证集下一句判断准确率",
        "share",
    ),
}
WORDS: dict[str, dict[str, tuple[str, str]]] = {
    "stopped_by": {
        "steps": ("all planned steps were done", "完成了全部计划步数"),
        "patience": ("validation no longer improved", "验证结果不再提高"),
        "time_limit": ("the time limit was reached", "达到时间上限"),
        "data": ("the data came to its end", "数据已用完"),
    },
    "weights": {
        "last": ("of the last step", "最后一步的权重"),
        "best": ("of the best validation", "验证最好时的权重"),
        "averaged": ("the average of several checkpoints", "多个检查点的平均"),
        "ema": ("the moving average", "滑动平均"),
    },
}
PARTS = {"valid": ("validation set", "验证集"), "test": ("test set", "测试集")}


def part_name(part: str) -> str:
    """`valid` and `test` in words."""
    return say(*PARTS[part])


def english(en: str, zh: str) -> str:
    """For texts that are always English, such as model cards."""
    return en


def result_rows(results: Mapping[str, Any], choose: Choose = say) -> list[Row]:
    """All results in their order; a scored set (validation, test) gives one row for each metric."""
    rows: list[Row] = []
    for key, value in results.items():
        if isinstance(value, Mapping):
            rows += _scored_rows(choose(*PARTS.get(key, (key, key))), value, choose)
        elif value is not None:  # not measured: memory outside Linux
            rows.append((*_plain_row(key, value, choose), ""))
    return rows


def _plain_row(key: str, value: Any, choose: Choose) -> tuple[str, str]:
    english_name, chinese_name, unit = NAMES.get(key, (key.replace("_", " "), key, "word"))
    name = choose(english_name, chinese_name)
    match unit:
        case "time":
            # Below ten seconds the clock says nothing.
            return name, choose(f"{value:.2g} s", f"{value:.2g} 秒") if value < 9.5 else clock(
                value
            )
        case "memory":
            return name, f"{value:,.0f} MiB" if value < 10240 else f"{value / 1024:,.1f} GiB"
        case "switch":
            return name, choose("yes", "是") if value else choose("no", "否")
        case "counts":
            return name, ", ".join(f"{one:,}" for one in value)
        case "count":
            return name, f"{value:,}"
        case "share":
            return name, f"{100 * value:.2f} %"
        case "decimals":
            return name, f"{value:,.3f}"
        case _:
            words = WORDS.get(key, {}).get(str(value))
            return name, str(value) if words is None else choose(*words)


def _scored_rows(part: str, value: Mapping[str, Any], choose: Choose) -> list[Row]:
    if "perplexity" in value:
        # Infinite perplexity is stored as nothing, because JSON has no infinity.
        found = "∞" if value["perplexity"] is None else f"{value['perplexity']:.2f}"
        count, unknown = value["predictions"], value["unknown"]
        counted = choose(
            f"{count:,} predictions, {unknown:,} of them unknown words",
            f"{count:,} 次预测，其中未知词 {unknown:,} 个",
        )
        return [(f"{part}{choose(', perplexity', '困惑度')}", found, counted)]
    if "accuracy" in value:
        labels = choose(f"{value['labels']:,} labels", f"{value['labels']:,} 个标签")
        return [
            (f"{part}{choose(', accuracy', '准确率')}", f"{100 * value['accuracy']:.2f} %", labels),
            (f"{part}{choose(', macro F1', '宏平均 F1')}", f"{100 * value['macro_f1']:.2f} %", ""),
        ]
    scores = [one for one in value.values() if isinstance(one, Mapping) and "signature" in one]
    return [
        (f"{part}{choose(', ', ' ')}{one['name']}", f"{one['value']:.2f}", one["signature"])
        for one in scores
    ]


def card_lines(results: Mapping[str, Any]) -> str:
    """The results as a list in Markdown, for a model card."""
    lines = [
        f"- {name}: {value}"
        + (f" (`{detail}`)" if "|" in detail else f" ({detail})" if detail else "")
        for name, value, detail in result_rows(results, english)
    ]
    return "\n".join(lines) or "- none recorded"
