"""Translates a recipe's search into arguments of CTranslate2's `translate_batch`.

    size                    beam_size
    length penalty          average: length_penalty = alpha (the end counts: return_end_token);
                            none: 0
    stop rule filled        patience 1, exactly the same rule
    likely, proven          patience 2: CTranslate2 stops once 2k hypotheses have finished

Our length limit is per sentence (`decoding/rules/length_limit.py`), but `max_decoding_length` holds
for a whole call, so the caller passes sentences of one limit at a time. `min_decoding_length` is 0,
which keeps the probabilities of the model; the default of 1 forbids the end at the first step and
renormalises. `likely` and `proven` have no exact counterpart: with patience 2 all of 1,200
sentences of the demos (en-de, zh-en) were the same, with patience 1 all but 28 (and all of them
with the stop rule filled). Settings that cannot be expressed are listed for the user; another kind
of decoding than greedy, beam and sampling is refused.

Tested against: both programs' outputs (tests/exporting/test_ctranslate2_export.py).
"""

from dataclasses import dataclass
from typing import Any

from headwise.decoding.choices import DecodingSettings, DraftedSettings
from headwise.decoding.rules.length_limit import LengthLimit
from headwise.decoding.search.beam import BeamSettings
from headwise.decoding.search.greedy import GreedySettings
from headwise.decoding.search.length_penalty import AverageLength, LengthPenalty, NoLength
from headwise.decoding.search.sampling import SamplingSettings
from headwise.errors import UsageError

FAITHFUL = {"return_end_token": True, "max_input_length": 0}
"""The end counts as a token. A text that is too long is refused; by default CTranslate2 would cut
it at 1,024 tokens."""


@dataclass(frozen=True)
class ForeignSearch:
    """The arguments of `translate_batch`, and the settings of the recipe that they leave out."""

    options: dict[str, Any]
    max_length: int | LengthLimit
    left_out: tuple[str, ...]

    @property
    def longest_output(self) -> int:
        """The longest translation of any source."""
        return self.max_length if isinstance(self.max_length, int) else self.max_length.limit

    def write_limit(self, num_tokens: str) -> str:
        """The limit of one sentence as a Python expression in its number of source tokens
        (`decoding/rules/length_limit.py`).
        """
        if isinstance(self.max_length, int):
            return str(self.max_length)
        factor, extra, limit = self.max_length.factor, self.max_length.extra, self.max_length.limit
        return f"max(1, min({limit}, int({factor} * {num_tokens}) + {extra}))"


def translate_search(settings: DecodingSettings) -> ForeignSearch:
    """The search of the recipe as arguments of `translate_batch`."""
    options: dict[str, Any] = {"min_decoding_length": settings.min_length, **FAITHFUL}
    left_out = [
        f"decoding.{name}"
        for name in ("forbidden", "required", "prefix")
        if getattr(settings, name)
    ]
    if settings.at_limit == "end":
        left_out.append("decoding.at_limit=end")
    if settings.no_repeat_ngrams:
        options["no_repeat_ngram_size"] = settings.no_repeat_ngrams
    if not settings.allow_unknown:
        options["disable_unk"] = True
    match settings:
        case GreedySettings():
            options["beam_size"] = 1
        case DraftedSettings():
            # Drafts save steps; with exact acceptance the output is that of greedy search.
            options["beam_size"] = 1
            left_out.append("decoding.drafter (greedy search, one token a step)")
            if settings.accept.kind != "exact":
                left_out.append(f"decoding.accept.kind={settings.accept.kind}")
        case SamplingSettings():
            options |= {
                "beam_size": 1,
                "num_hypotheses": settings.num_samples,
                "sampling_topk": settings.top_k,
                "sampling_topp": settings.top_p,
                "sampling_temperature": settings.temperature,
            }
            left_out.append("decoding.seed (other random numbers)")
        case BeamSettings():
            options |= {
                "beam_size": settings.size,
                **_translate_penalty(settings.length_penalty, left_out),
            }
            if settings.num_best > 1:
                options["num_hypotheses"] = settings.num_best
            if settings.stop != "filled":
                options["patience"] = 2
                left_out.append(
                    f"decoding.stop={settings.stop} (nearly the same; filled is the same)"
                )
            if settings.coverage_penalty:
                left_out.append("decoding.coverage_penalty")
        case _:
            raise UsageError(
                f"CTranslate2 has no counterpart to decoding.kind={settings.kind}: it runs greedy "
                "search, beam search and sampling; use this model with headwise translate or "
                "headwise serve",
                f"CTranslate2 没有与 decoding.kind={settings.kind} 对应的解码方式，"
                "只支持贪心搜索、束搜索与采样；"
                "请用 headwise translate 或 headwise serve 使用该模型",
            )
    return ForeignSearch(options, settings.max_length, tuple(left_out))


def _translate_penalty(penalty: LengthPenalty, left_out: list[str]) -> dict[str, float]:
    match penalty:
        case AverageLength(alpha=alpha):
            return {"length_penalty": alpha}
        case NoLength():
            return {"length_penalty": 0}
        case _:
            left_out.append("decoding.length_penalty.kind=wu (average stands in its place)")
            return {"length_penalty": penalty.alpha}


def exact_searches(
    settings: DecodingSettings,
) -> list[tuple[GreedySettings | BeamSettings, dict[str, Any]]]:
    """Searches that both programs define alike: greedy, and a beam that stops when filled, as wide
    as the recipe's or five.
    """
    beam = settings if isinstance(settings, BeamSettings) else BeamSettings()
    penalty = (
        beam.length_penalty
        if isinstance(beam.length_penalty, AverageLength | NoLength)
        else AverageLength()
    )
    alpha = penalty.alpha if isinstance(penalty, AverageLength) else 0
    shared = {"min_decoding_length": 0, **FAITHFUL}
    return [
        (GreedySettings(max_length=settings.max_length), {"beam_size": 1, **shared}),
        (
            BeamSettings(
                size=beam.size,
                length_penalty=penalty,
                stop="filled",
                max_length=settings.max_length,
            ),
            {"beam_size": beam.size, "length_penalty": alpha, **shared},
        ),
    ]
