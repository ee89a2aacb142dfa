"""Compares trained translators, autoregressive ones (word by word) and parallel ones (all words at
once), for `headwise compare parallel`.

Every model translates the same test sentences with each decoding that fits it. The table has BLEU
and chrF with intervals, repeated words, errors of length, the latency of one sentence, and the
throughput at several batch sizes (`parallel_timing.py`). The first autoregressive model is the
baseline: its greedy search tells from which batch size a parallel model is no longer faster
(`parallel_table.py`).

Other programs that run the weights of an autoregressive model are rows, too (`Peer`). Whoever calls
makes them, because exports are made in a higher layer.

Tested with tiny models: rates counted again from the translations, the order of rows, messages.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sacrebleu.metrics import BLEU

from headwise.comparing.compared_pairs import read_test_pairs
from headwise.comparing.parallel_decodings import (
    check_used,
    decodings_of,
    is_autoregressive,
    trained_on,
)
from headwise.comparing.parallel_request import ParallelRequest
from headwise.comparing.parallel_table import ParallelComparison, ParallelRow, default_name
from headwise.comparing.parallel_timing import Speed, texts_for, time_in_turns
from headwise.data.pairs.parallel_files import Pair
from headwise.decoding.choices import DecodingSettings
from headwise.decoding.generation_settings import Batching
from headwise.errors import DataError, HeadwiseError, UsageError
from headwise.evaluation.repetition import length_error, repetition_rate, tokens_of_bleu
from headwise.evaluation.translation import build_metrics
from headwise.language import say
from headwise.tasks.events import Events, Silence
from headwise.tasks.machine import describe_machine
from headwise.tasks.run import count_parameters
from headwise.tasks.translation.bundle import TranslatorBundle, load_translator_bundle
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.tasks.translation.translated_part import (
    TranslatedPart,
    score_pairs,
    translate_pairs,
)
from headwise.tasks.translation.translator import Translator

ENOUGH_TOKENS = 1 << 30
"""No batch is cut for its tokens while it is timed: its size is what is measured."""


class Peer(Protocol):
    """Another program with the weights of a model, from text to text."""

    @property
    def name(self) -> str: ...

    def translate(self, texts: Sequence[str], size: int) -> list[str]:
        """Translate in batches of this size."""
        ...


MakePeer = Callable[[TranslatorBundle, Translator], Peer]
"""Raises a UsageError that says why there is none."""


class _Timed(Protocol):
    """A row that is to be measured."""

    @property
    def name(self) -> str: ...
    @property
    def translator(self) -> Translator: ...
    @property
    def num_parameters(self) -> int: ...
    @property
    def decoding(self) -> str: ...

    def score(self, recipe: TranslationRecipe, pairs: Sequence[Pair]) -> TranslatedPart: ...

    def translate(self, texts: Sequence[str], size: int) -> object: ...


@dataclass(frozen=True)
class _TimedPeer:
    """A row of another program."""

    name: str
    translator: Translator
    """Whose weights it runs."""
    num_parameters: int
    peer: Peer

    @property
    def decoding(self) -> str:
        return self.peer.name

    def score(self, recipe: TranslationRecipe, pairs: Sequence[Pair]) -> TranslatedPart:
        began = time.perf_counter()
        found = self.translate([pair.source for pair in pairs], Batching().sentences)
        return score_pairs(found, recipe, pairs, seconds=time.perf_counter() - began)

    def translate(self, texts: Sequence[str], size: int) -> list[str]:
        return self.peer.translate(texts, size)


@dataclass(frozen=True)
class _TimedTranslator:
    """A row of Headwise."""

    name: str
    translator: Translator
    num_parameters: int
    decoding: str
    settings: DecodingSettings

    def score(self, recipe: TranslationRecipe, pairs: Sequence[Pair]) -> TranslatedPart:
        return translate_pairs(self.translator, recipe, pairs, decoding=self.settings)

    def translate(self, texts: Sequence[str], size: int) -> None:
        """Translate in batches of this size, and forget the results."""
        window = max(size, self.settings.batching.window)
        batching = Batching(sentences=size, tokens=ENOUGH_TOKENS, window=window)
        for _ in self.translator.stream(
            texts, self.settings.model_copy(update={"batching": batching})
        ):
            pass


def compare_parallel(
    request: ParallelRequest, *, events: Events | None = None, make_peer: MakePeer | None = None
) -> ParallelComparison:
    """Load the models, score every decoding, and time all of them in turns. `make_peer` adds
    another program for each autoregressive model that it can run."""
    request.check()
    watcher = events or Silence()
    bundles = [load_translator_bundle(model) for model in request.models]
    names = _names(request.models)
    baseline = _check_models(bundles, request.models)
    pairs, test = read_test_pairs(
        request.source, request.reference, first=bundles[0].recipe, model=request.models[0]
    )
    candidates, left_out = _candidates(request, bundles, names, make_peer)
    parts = []
    for done, one in enumerate(candidates):
        label = f"{one.name} · {one.decoding}"
        watcher.count(say(f"{label}; scored", f"{label}；已评分"), done, len(candidates))
        parts.append(one.score(bundles[0].recipe, pairs))
    watcher.count(say("scored", "已评分"), len(candidates), len(candidates))
    texts = _texts_to_time(pairs, [one.translator for one in candidates])
    speeds = time_in_turns(
        [one.translate for one in candidates],
        texts,
        batches=request.batches,
        rounds=request.rounds,
        events=watcher,
    )
    data, evaluation = bundles[0].recipe.data, bundles[0].recipe.evaluation
    metric = build_metrics(data.target, pretokenized=evaluation.pretokenized)["bleu"]
    assert isinstance(metric, BLEU)
    rows = zip(candidates, parts, speeds, strict=True)
    return ParallelComparison(
        machine=describe_machine(request.device),
        precision=candidates[0].translator.form.label,
        rounds=request.rounds,
        source=data.source,
        target=data.target,
        test=test,
        num_sentences=len(pairs),
        num_timed={size: len(texts_for(texts, size)) for size in speeds[0].sentences_per_second},
        baseline=names[baseline],
        rows=tuple(_row(*row, metric) for row in rows),
        left_out=left_out,
    )


def _names(models: Sequence[Path]) -> list[str]:
    """Short names if they tell the models apart, else the paths."""
    short = [default_name(model) for model in models]
    return short if len(set(short)) == len(short) else [str(model) for model in models]


def _check_models(bundles: Sequence[TranslatorBundle], models: Sequence[Path]) -> int:
    """The number of the baseline; an error if there is none, or if languages differ."""
    first = bundles[0].recipe.data
    for bundle, model in zip(bundles, models, strict=True):
        data = bundle.recipe.data
        if (data.source, data.target) != (first.source, first.target):
            raise UsageError(
                f"{model} translates {data.source} → {data.target}, but {models[0]} translates "
                f"{first.source} → {first.target}; compare models of the same two languages",
                f"{model} 翻译 {data.source} → {data.target}，而 {models[0]} 翻译 "
                f"{first.source} → {first.target}；请比较语言方向相同的模型",
            )
    for number, bundle in enumerate(bundles):
        if is_autoregressive(bundle.recipe):
            return number
    raise UsageError(
        "all the models given are parallel, and the speed is compared with an autoregressive one; "
        "add one, such as the teacher: headwise compare parallel runs/teacher "
        + " ".join(map(str, models)),
        "给出的模型都是并行的，而速度要与自回归模型比较；请加入一个，例如教师模型：headwise "
        "compare parallel runs/teacher " + " ".join(map(str, models)),
    )


def _candidates(
    request: ParallelRequest,
    bundles: Sequence[TranslatorBundle],
    names: Sequence[str],
    make_peer: MakePeer | None,
) -> tuple[list[_Timed], tuple[str, ...]]:
    """The rows, and why other programs are not among them."""
    # The number of parameters is that of the trained model, not of its form for inference.
    counts = [count_parameters(bundle.model) for bundle in bundles]
    translators = [
        Translator(bundle, device=request.device, precision=request.precision) for bundle in bundles
    ]
    check_used(request.decodings, translators)
    found: list[_Timed] = []
    left_out: list[str] = []
    for bundle, name, translator, count in zip(bundles, names, translators, counts, strict=True):
        found += [
            _TimedTranslator(name, translator, count, decoding, settings)
            for decoding, settings in decodings_of(translator, request.decodings)
        ]
        if make_peer is None or not is_autoregressive(bundle.recipe):
            continue
        try:
            found.append(_TimedPeer(name, translator, count, make_peer(bundle, translator)))
        except HeadwiseError as error:
            left_out.append(f"{name}: {error}")
    return found, tuple(left_out)


def _texts_to_time(pairs: Iterable[Pair], translators: Iterable[Translator]) -> list[str]:
    """Sources that every model reads in one piece."""
    different = list({id(translator): translator for translator in translators}.values())
    sources = (pair.source for pair in pairs if pair.source.strip())
    texts = [text for text in sources if all(one.fits(text) for one in different)]
    if not texts:
        raise DataError(
            "no test sentence can be timed: all are blank, or too long for one of the models; give "
            "shorter ones with --source and --reference",
            "没有可计时的测试句：全为空行，或超过某个模型的长度；请用 --source 与 --reference "
            "给出较短的句子",
        )
    return texts


def _row(one: _Timed, part: TranslatedPart, speed: Speed, metric: BLEU) -> ParallelRow:
    recipe = one.translator.recipe
    hypotheses, references = (
        tokens_of_bleu(texts, metric) for texts in (part.hypotheses, part.references)
    )
    return ParallelRow(
        model=one.name,
        decoding=one.decoding,
        is_parallel=not is_autoregressive(recipe),
        trained_on=trained_on(recipe),
        num_parameters=one.num_parameters,
        scores=part.scores,
        repetition_rate=repetition_rate(hypotheses),
        length_error=length_error(hypotheses, references),
        latency=speed.latency,
        sentences_per_second=speed.sentences_per_second,
    )
