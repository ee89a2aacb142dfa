"""Writes the three steps of attention on small numbers (attention_calculation.py) as tables:
scores, weights, outputs. `headwise attend` prints them.
"""

from collections.abc import Callable, Sequence

from torch import Tensor

from headwise.attention.score_choices import LocalPredictiveSettings
from headwise.explorer.data.attention_calculation import AttentionCalculation
from headwise.language import say

MAX_SPELLED_KEYS = 4
"""With at most this many keys the weighted sum is written out."""
TextTable = tuple[str, tuple[str, ...], Sequence[tuple[str, ...]]]
"""Title, headings, rows."""


def name_vector(row: Sequence[float]) -> str:
    """A vector as text: 57 or (57, 83); a long one is shortened."""
    numbers = [f"{number:.6g}" for number in row[:4]] + (["…"] if len(row) > 4 else [])
    return numbers[0] if len(row) == 1 else f"({', '.join(numbers)})"


def describe_score(worked: AttentionCalculation) -> str:
    score = worked.settings.score
    number = score.number
    return score.formula + ("" if number is None else f", {number} = {getattr(score, number):g}")


def describe_weights(worked: AttentionCalculation, *, tell: Callable[[str, str], str] = say) -> str:
    """How scores become weights. `tell` chooses the language, since a picture can use only
    characters that its fonts have.
    """
    window, share = worked.settings.window, tell(*worked.settings.weights.formula)
    if window is None:
        return share
    near = tell(
        f", only keys within {window.half_width} of the centre",
        f"，只看中心 {window.half_width} 以内的键",
    )
    if isinstance(window, LocalPredictiveSettings):
        near += tell(", times exp(−(j − centre)² / 2σ²)", "，再乘以 exp(−(j − 中心)² / 2σ²)")
    return share + near


def make_tables(worked: AttentionCalculation) -> list[TextTable]:
    queries, keys, values = (
        [name_vector(row) for row in table.tolist()]
        for table in (worked.queries, worked.keys, worked.values)
    )
    corner = say("query \\ key", "查询 \\ 键")
    tables = _parameter_tables(worked)
    tables.append(
        (
            say("step 1: scores = ", "第一步：分数 = ") + describe_score(worked),
            (corner, *keys),
            _rows(queries, worked.scores, ".6g"),
        )
    )
    tables += _window_tables(worked, queries)
    tables.append(
        (
            say("step 2: weights = ", "第二步：权重 = ") + describe_weights(worked),
            (corner, *keys, say("sum", "和")),
            [
                (*row, f"{sum(share):.4f}")
                for row, share in zip(
                    _rows(queries, worked.weights, ".4f"), worked.weights.tolist(), strict=True
                )
            ],
        )
    )
    tables.append(_output_table(worked, queries, values))
    return tables


def _rows(names: Sequence[str], table: Tensor, form: str) -> list[tuple[str, ...]]:
    # Adding zero makes −0 plain zero.
    return [
        (name, *(f"{number + 0.0:{form}}" for number in row))
        for name, row in zip(names, table.tolist(), strict=True)
    ]


def _output_table(
    worked: AttentionCalculation, queries: Sequence[str], values: Sequence[str]
) -> TextTable:
    title = say("step 3: outputs = weighted sum of the values", "第三步：输出 = 值的加权和")
    if len(values) > MAX_SPELLED_KEYS:
        headings = tuple(str(number) for number in range(1, worked.outputs.shape[1] + 1))
        return (
            title,
            (say("query \\ column", "查询 \\ 列"), *headings),
            _rows(queries, worked.outputs, ".6g"),
        )
    rows = []
    for name, weights, output in zip(
        queries, worked.weights.tolist(), worked.outputs.tolist(), strict=True
    ):
        sums = " + ".join(
            f"{weight:.4f} × {value}" for weight, value in zip(weights, values, strict=True)
        )
        rows.append((name, sums, name_vector(output)))
    return title, (say("query", "查询"), say("weighted sum", "加权和"), say("output", "输出")), rows


def _window_tables(worked: AttentionCalculation, queries: Sequence[str]) -> list[TextTable]:
    """The window of each query; keys count from 0."""
    window = worked.settings.window
    if window is None or worked.centres is None:
        return []
    title = say("window: centre = ", "窗口：中心 = ")
    if isinstance(window, LocalPredictiveSettings):
        deviation = window.half_width / 2 if window.deviation is None else window.deviation
        title += f"S · sigmoid(v_p · tanh(W_p q)), S = {len(worked.keys)}, "
        title += f"D = {window.half_width}, σ = {deviation:g}"
    else:
        title += say("the query's own number", "查询自己的序号") + f", D = {window.half_width}"
    rows = []
    for name, centre in zip(queries, worked.centres.tolist(), strict=True):
        inside = [
            str(key) for key in range(len(worked.keys)) if abs(key - centre) <= window.half_width
        ]
        rows.append(
            (name, f"{centre:.4f}", ", ".join(inside[:20]) + (" …" if len(inside) > 20 else ""))
        )
    return [
        (
            title,
            (
                say("query", "查询"),
                say("centre", "中心"),
                say("keys inside, from 0", "窗内的键（从 0 数）"),
            ),
            rows,
        )
    ]


def _parameter_tables(worked: AttentionCalculation) -> list[TextTable]:
    if not worked.parameters:
        return []
    if worked.seed is not None:
        origin = say(
            f"what was not given is drawn from seed {worked.seed}; a model learns it",
            f"未给出的由种子 {worked.seed} 抽取；模型会学习它们",
        )
    elif worked.given >= worked.parameters.keys():
        origin = say("as given; a model learns them", "如所给；模型会学习它们")
    else:
        origin = say(
            "not given, it starts as 1/√dim on the diagonal; a model learns it",
            "未给出时，对角线为 1/√dim；模型会学习它",
        )
    rows = [
        (name, "; ".join(", ".join(f"{number:.4g}" for number in row) for row in table.tolist()))
        for name, table in worked.parameters.items()
    ]
    return [
        (say("parameters: ", "参数：") + origin, (say("name", "名称"), say("rows", "各行")), rows)
    ]
