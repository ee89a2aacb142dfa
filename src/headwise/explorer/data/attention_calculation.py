"""Calculates attention step by step on numbers small enough to check by hand (`headwise attend`).

    1  scores   how similar each query is to each key
    2  weights  the scores of a query, normalised so that they sum to one
    3  outputs  the sum of the values, each multiplied by its weight

Everything is computed in double precision by the code that models use
(attention/kernels/scored.py). A learned score needs parameters: the caller gives them, or they are
drawn from a seed like the initial weights of a model. The result says which of the two happened.

Tested against: numbers calculated by hand.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from headwise.attention.choices import Full
from headwise.attention.kernels.scored import ScoredAttention
from headwise.attention.local_position import LocalWindow, PredictiveWindow
from headwise.attention.masks import Mask
from headwise.attention.score_choices import (
    DEFAULT_SCORE,
    DEFAULT_WEIGHTS,
    AdditiveSettings,
    DotSettings,
    GaussianSettings,
    build_local_window,
    build_normalizer,
    build_score,
    score_kinds,
)
from headwise.errors import UsageError
from headwise.explorer.data.number_input import NumberTable, Rows
from headwise.initialization import initialize
from headwise.randomness import torch_generator
from headwise.settings import apply_overrides, check_settings


@dataclass(frozen=True)
class NotesExample:
    """An example of the course notes; `parameters` holds numbers for the scores that need them."""

    keys: NumberTable
    values: NumberTable
    queries: NumberTable
    score: str
    parameters: Mapping[str, Mapping[str, NumberTable]] = field(default_factory=dict)


_HUNDREDTH = NumberTable(((0.01, 0.0), (0.0, 0.01)))
EXAMPLES: dict[str, NotesExample] = {
    "waist": NotesExample(
        NumberTable(((51.0,), (56.0,), (58.0,))),
        NumberTable(((40.0,), (43.0,), (48.0,))),
        NumberTable(((57.0,),)),
        GaussianSettings.word(),
    ),
    "two-column": NotesExample(
        NumberTable(((51.0, 70.0), (56.0, 82.0), (58.0, 88.0))),
        NumberTable(((40.0, 155.0), (43.0, 159.0), (48.0, 162.0))),
        NumberTable(((57.0, 83.0), (55.0, 77.0))),
        DotSettings.word(),
        # The notes give no values, since these parameters are learned. With 0.01 the tanh stays
        # away from 1, where it would make all keys look alike.
        {
            AdditiveSettings.word(): {
                "W_q": _HUNDREDTH,
                "W_k": _HUNDREDTH,
                "w_v": NumberTable(((1.0, 1.0),)),
            }
        },
    ),
}


@dataclass(frozen=True)
class AttentionCalculation:
    """All numbers of one calculation."""

    queries: Float[Tensor, "query query_dim"]
    keys: Float[Tensor, "key key_dim"]
    values: Float[Tensor, "key value_dim"]
    scores: Float[Tensor, "query key"]
    weights: Float[Tensor, "query key"]
    outputs: Float[Tensor, "query value_dim"]
    settings: Full
    parameters: dict[str, Tensor]
    given: frozenset[str]
    """The names of the parameters that the caller gave."""
    seed: int | None
    """The seed of the parameters that were drawn; None if none were drawn."""
    centres: Float[Tensor, " query"] | None
    """The centre of each query's window over the keys, counted from 0; None without a window."""

    def as_dict(self) -> dict[str, Any]:
        tables = ("queries", "keys", "values", "scores", "weights", "outputs")
        return {
            **{name: getattr(self, name).tolist() for name in tables},
            "parameters": {name: value.tolist() for name, value in self.parameters.items()},
            "seed": self.seed,
            **({} if self.centres is None else {"centres": self.centres.tolist()}),
            "attention": self.settings.model_dump(exclude={"kind"}),
        }


def choose_settings(
    score: str | None,
    weights: str | None,
    overrides: Sequence[str],
    *,
    num_keys: int,
    parameters: Mapping[str, NumberTable],
) -> Full:
    """The settings of `attention: {kind: full}` for a small example: two hidden units, width 1, and
    one position for each key.
    """
    hidden = [len(table.rows) for name, table in parameters.items() if name in ("W_q", "W_k", "W")]
    hidden += [len(table.rows[0]) for name, table in parameters.items() if name in ("w_v", "v")]
    score = DEFAULT_SCORE.kind if score is None else score
    kind = score_kinds().get(score)
    small = (
        {"kind": score}
        if kind is None  # check_settings below lists the scores that exist
        else kind.small(score, num_keys=num_keys, hidden=(hidden or [2])[0]).model_dump()
    )
    data = {"score": small, "weights": {"kind": weights or DEFAULT_WEIGHTS.kind}}
    return check_settings(Full, apply_overrides(data, overrides))


def calculate_attention(
    keys: Rows,
    values: Rows,
    queries: Rows,
    *,
    settings: Full,
    parameters: Mapping[str, NumberTable] | None = None,
    seed: int = 0,
) -> AttentionCalculation:
    """Compute the three steps. `parameters` are named as in the formulas (W_q, W_k, w_v, W, v, W_p,
    v_p); those that are missing are drawn from the seed.
    """
    k, v, q = (torch.tensor(rows, dtype=torch.float64) for rows in (keys, values, queries))
    score = build_score(settings.score, query_dim=q.shape[1], key_dim=k.shape[1])
    window = (
        None
        if settings.window is None
        else build_local_window(settings.window, head_dim=q.shape[1])
    )
    kernel = ScoredAttention(score, build_normalizer(settings.weights), window=window).double()
    initialize(kernel, torch_generator("attend", seed))
    names = {name: f"score.{path}" for name, path in settings.score.parameters.items()}
    if settings.window is not None:
        names |= {name: f"window.{path}" for name, path in settings.window.parameters.items()}
    given = dict(parameters or {})
    if unknown := [name for name in given if name not in names]:
        raise UsageError(
            f"score {settings.score.kind} has no parameter {unknown[0]!r}; "
            + _list_parameters(names)[0],
            f"{settings.score.kind} 打分没有参数 {unknown[0]!r}；" + _list_parameters(names)[1],
        )
    _set_parameters(kernel, given, names)
    # A score whose initial weights are fixed numbers draws nothing.
    is_drawn = any(
        name not in given
        for name, path in names.items()
        if settings.score.drawn or not path.startswith("score.")
    )
    with torch.no_grad():
        scores = score(q[None, None], k[None, None])[0, 0]
        weights = kernel.weights(q[None, None], k[None, None], Mask())[0, 0]
        return AttentionCalculation(
            queries=q,
            keys=k,
            values=v,
            scores=scores,
            weights=weights,
            outputs=weights @ v,
            settings=settings,
            parameters={name: kernel.get_parameter(path).detach() for name, path in names.items()},
            given=frozenset(given),
            seed=seed if is_drawn else None,
            centres=_centres(window, q, len(k)),
        )


def _centres(
    window: LocalWindow | None, q: Tensor, num_keys: int
) -> Float[Tensor, " query"] | None:
    """The centre of each query's window: its own position, or the position it predicts."""
    if isinstance(window, PredictiveWindow):
        return window.centre(q[None, None], torch.full((1, 1, 1, 1), num_keys))[0, 0, :, 0]
    return None if window is None else torch.arange(len(q)).clamp(max=num_keys - 1).double()


def _list_parameters(names: Mapping[str, str]) -> tuple[str, str]:
    if not names:
        return "it has none; leave out --parameter", "它没有参数；请去掉 --parameter"
    return f"it has {', '.join(names)}", f"它的参数是 {'、'.join(names)}"


def _set_parameters(
    kernel: nn.Module, given: Mapping[str, NumberTable], names: Mapping[str, str]
) -> None:
    """Copy the given numbers into the kernel's parameters."""
    for name, table in given.items():
        parameter = kernel.get_parameter(names[name])
        value = torch.tensor(table.rows, dtype=torch.float64)
        if value.shape != parameter.shape:
            needed, shape = (" × ".join(map(str, size)) for size in (parameter.shape, value.shape))
            raise UsageError(
                f"parameter {name} is {shape}, but {needed} is needed here (rows × columns); rows "
                "are separated by `;`",
                f"参数 {name} 为 {shape}，而此处需要 {needed}（行 × 列）；行以 `;` 分隔",
            )
        with torch.no_grad():
            parameter.copy_(value)


def output_curve(worked: AttentionCalculation, queries: Sequence[float]) -> list[float]:
    """The first output for other one-dimensional queries, with the same settings and parameters:
    the curve through the examples.
    """
    settings, table = (
        worked.settings,
        {
            name: NumberTable(tuple(map(tuple, value.tolist())))
            for name, value in worked.parameters.items()
        },
    )
    keys, values = (tuple(map(tuple, rows.tolist())) for rows in (worked.keys, worked.values))
    again = calculate_attention(
        keys,
        values,
        tuple((q,) for q in queries),
        settings=settings,
        parameters=table,
        seed=worked.seed or 0,
    )
    assert all(map(math.isfinite, again.outputs[:, 0].tolist()))
    return again.outputs[:, 0].tolist()
