"""Measures the exposure bias of translators, for `headwise exposure`.

Each model continues the references of a test set after a right and after a wrong beginning
(`tasks/translation/wrong_prefix.py`), and its decoder is compared along the references and along
its own translations (`tasks/translation/forced_states.py`). Models with the same target tokens get
the same wrong tokens, unless these are drawn from what each model finds likely.

Tested with tiny models: rows, messages, JSON, and the number of sentences.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headwise.comparing.exposure_request import ExposureRequest
from headwise.comparing.models_in_turn import models_in_turn
from headwise.data.pairs.parallel_files import Pair
from headwise.errors import DataError
from headwise.language import say
from headwise.models.limits import target_limits
from headwise.tasks.events import Events, Silence
from headwise.tasks.translation.forced_states import DecoderAgreement, measure_agreement
from headwise.tasks.translation.length_limits import MAX_SOURCE_TOKENS
from headwise.tasks.translation.token_pair import TokenPair
from headwise.tasks.translation.translator import Translator
from headwise.tasks.translation.wrong_prefix import (
    LIKELY,
    POOL,
    AfterPrefix,
    choose_wrong,
    continue_after,
    measure_after_prefixes,
)

FEWEST = 10
"""Positions that fewer sentences reach are left out of the table and the picture."""


@dataclass(frozen=True)
class ExposureRow:
    """One model."""

    model: str
    after: AfterPrefix
    agreement: DecoderAgreement
    num_sentences: int

    def as_dict(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "sentences": self.num_sentences,
            "bleu_after_right": self.after.right.bleu.as_dict(),
            "bleu_after_wrong": self.after.wrong.bleu.as_dict(),
            "drop": self.after.drop,
            **self.agreement.as_dict(),
        }


@dataclass(frozen=True)
class ExposureResult:
    """All models, and what they were asked."""

    request: ExposureRequest
    test: str
    """Where the sentences come from."""
    rows: tuple[ExposureRow, ...]

    @property
    def num_positions(self) -> int:
        """Positions that enough sentences of every model reach."""
        enough = [
            sum(count >= min(FEWEST, row.num_sentences) for count in row.agreement.num_sentences)
            for row in self.rows
        ]
        return min(enough)

    def as_dict(self) -> dict[str, Any]:
        request = self.request
        return {
            "test": self.test,
            "wrong": request.wrong,
            "tokens": request.tokens,
            "seed": request.seed,
            "models": [row.as_dict() for row in self.rows],
        }

    def headings(self) -> tuple[str, ...]:
        return (
            say("model", "模型"),
            say("BLEU after the right beginning", "正确开头后的 BLEU"),
            say("after a wrong one", "错误开头后"),
            say("difference", "差"),
            say("agreement", "一致率"),
            say("total variation", "全变差距离"),
            say("cosine", "余弦"),
        )

    def cells(self) -> list[tuple[str, ...]]:
        return [
            (
                row.model,
                row.after.right.bleu.with_interval,
                row.after.wrong.bleu.with_interval,
                f"{0.0 - row.after.drop:+.2f}",
                *_show(row.agreement.overall),
            )
            for row in self.rows
        ]

    def position_headings(self) -> tuple[str, ...]:
        first = (say("position", "位置"), say("sentences", "句数"))
        names = (say("agreement", "一致率"), say("total variation", "全变差距离"))
        if len(self.rows) == 1:
            return (*first, *names, say("cosine", "余弦"))
        return (*first, *(f"{row.model}: {name}" for row in self.rows for name in names))

    def position_cells(self) -> list[tuple[str, ...]]:
        table = []
        for place in range(self.num_positions):
            cells = [str(place + 1), f"{self.rows[0].agreement.num_sentences[place]:,}"]
            for row in self.rows:
                found = row.agreement
                shown = _show(
                    (found.agreement[place], found.total_variation[place], found.cosine[place])
                )
                cells += shown if len(self.rows) == 1 else shown[:2]
            table.append(tuple(cells))
        return table

    def remarks(self) -> list[str]:
        """How the numbers were measured."""
        request, count = self.request, self.rows[0].num_sentences
        forced = "1 forced token, which does not count"
        if request.tokens > 1:
            forced = f"{request.tokens} forced tokens, which do not count"
        rule = {
            "frequent": (
                f"drawn among the {POOL} most frequent tokens at their place in the references",
                f"取自参考译文同一位置上最常见的 {POOL} 个词元",
            ),
            "likely": (
                f"drawn among the {LIKELY} tokens that the model itself finds most probable",
                f"取自模型自己认为概率最大的 {LIKELY} 个词元",
            ),
        }[request.wrong]
        return [
            say(
                f"{count:,} sentences of {self.test}; greedy search after {forced}; wrong tokens "
                f"{rule[0]}, the right one excepted (seed {request.seed}); "
                f"{self.rows[0].after.right.bleu.signature}",
                f"{self.test} 的 {count:,} 句；强制给出 {request.tokens} 个词元（不计分）后贪心"
                f"搜索；错误词元{rule[1]}，正确者除外（种子 {request.seed}）；"
                f"{self.rows[0].after.right.bleu.signature}",
            ),
            say(
                "agreement, total variation, cosine: the decoder's next token, distribution and "
                "state along the reference, compared with those along its own translation, by "
                "position",
                "一致率、全变差距离、余弦：逐位置比较解码器读参考译文与读自己译文时的下一词元、"
                "分布与状态",
            ),
        ]


def _show(numbers: tuple[float, float, float]) -> tuple[str, str, str]:
    share, distance, cosine = numbers
    return f"{100 * share:.1f} %", f"{distance:.3f}", f"{cosine:.3f}"


def measure_exposure(request: ExposureRequest, *, events: Events | None = None) -> ExposureResult:
    """Load the models one after the other and measure each."""
    request.check()
    watcher = events or Silence()
    rows: list[ExposureRow] = []
    for number, model in enumerate(models_in_turn(request)):
        name, count = model.name, len(request.models)
        watcher.count(say(f"{name}; measured", f"{name}；已测量"), number, count)
        pairs = model.pairs[: request.sentences]
        rows.append(measure_row(name, model.translator, pairs, request))
    watcher.count(say("measured", "已测量"), len(rows), len(rows))
    return ExposureResult(request, model.test, tuple(rows))


def measure_row(
    name: str, translator: Translator, pairs: Sequence[Pair], request: ExposureRequest
) -> ExposureRow:
    """Both measures of one model."""
    known = encode_pairs(translator, pairs, longer_than=request.tokens)
    wrong = choose_wrong(
        translator, known, rule=request.wrong, count=request.tokens, seed=request.seed
    )
    after = measure_after_prefixes(translator, known, wrong)
    written = continue_after(translator, known, [()] * len(known))
    agreement = measure_agreement(
        translator.model,
        [pair.source for pair in known],
        [pair.target for pair in known],
        written,
        num_positions=request.positions,
    )
    return ExposureRow(name, after, agreement, len(known))


def encode_pairs(
    translator: Translator, pairs: Sequence[Pair], *, longer_than: int
) -> list[TokenPair]:
    """The pairs that the model can read, and whose reference goes on after the prefix."""
    limits = target_limits(translator.recipe.model)
    longest = min((limit.tokens for limit in limits), default=MAX_SOURCE_TOKENS)
    found = []
    for pair in pairs:
        source = tuple(translator.encode(pair.source))
        target = tuple(translator.tokenizers.target.encode(pair.target))
        fits = 0 < len(source) < translator.longest_source.tokens and len(target) < longest
        if fits and len(target) > longer_than:
            found.append(TokenPair(source, target))
    if not found:
        raise DataError(
            f"none of the {len(pairs):,} test sentences has a reference of more than "
            f"{longer_than} tokens that the model can read; give other sentences with --source "
            "and --reference, or a smaller --tokens",
            f"{len(pairs):,} 个测试句中没有模型可读、且参考译文多于 {longer_than} 个词元的句子；"
            "请用 --source 与 --reference 给出其他句子，或减小 --tokens",
        )
    return found
