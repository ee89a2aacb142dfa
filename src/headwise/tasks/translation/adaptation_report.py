"""Trains an adaptation and says what it gained and lost: scores before and after, by corpus.

    runs/mine/adaptation.json     for each corpus of data.test: BLEU before and after, difference, p

The translations after are those that the run has measured (`translations/`); the model it started
from translates the same sentences. Both systems translated the same sentences, so the differences
are tested in pairs (evaluation/significance.py). Tested on the pocket corpus.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from headwise.data.pairs.choices import corpus_name
from headwise.data.pairs.parallel_files import Pair
from headwise.data.pairs.preparation import read_part
from headwise.errors import CheckpointError
from headwise.evaluation.significance import compare_systems
from headwise.evaluation.translation import build_metrics
from headwise.language import say
from headwise.storage import write_json
from headwise.tasks.events import Events, Silence
from headwise.tasks.run import train
from headwise.tasks.run_start import RunSummary
from headwise.tasks.translation.adaptation import adaptation_recipe
from headwise.tasks.translation.adaptation_request import AdaptationRequest
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.tasks.translation.translated_part import FOLDER, translate_pairs
from headwise.tasks.translation.translator import Translator
from headwise.training.run_recipe import FILE as RECIPE

REPORT = "adaptation.json"


@dataclass(frozen=True)
class CorpusGain:
    """The scores of one held-out corpus."""

    corpus: str
    sentences: int
    before: float
    after: float
    p_value: float
    signature: str

    @property
    def difference(self) -> float:
        return self.after - self.before


@dataclass(frozen=True)
class Adaptation:
    """A finished adaptation: its run, and what changed on each held-out corpus."""

    summary: RunSummary
    gains: tuple[CorpusGain, ...]

    def as_dict(self) -> dict[str, Any]:
        return {**self.summary.as_dict(), "adaptation": [asdict(one) for one in self.gains]}


def adapt(
    request: AdaptationRequest, *, events: Events | None = None, anyway: bool = False
) -> Adaptation:
    """Adapt a translator; the same call goes on with a run that was stopped."""
    watcher = events or Silence()
    recipe = adaptation_recipe(request)
    resume = (request.run / RECIPE).exists()
    summary = train(recipe, run=request.run, resume=resume, events=watcher, anyway=anyway)
    gains = measure_gains(recipe, request.run, watcher)
    write_json(request.run / REPORT, [asdict(one) for one in gains])
    return Adaptation(summary, gains)


def measure_gains(recipe: TranslationRecipe, run: Path, watcher: Events) -> tuple[CorpusGain, ...]:
    """Compare the model that a run started from with its own, on each corpus of data.test."""
    assert recipe.model.kind == "encoder_decoder"
    assert recipe.model.start_from is not None
    if not recipe.data.test:
        return ()
    watcher.note(
        say(
            "translating the test data with the model as it was …",
            "正在用适应前的模型翻译测试数据……",
        )
    )
    before = Translator.load(recipe.model.start_from, device=recipe.training.device)
    file = run / FOLDER / f"test.{recipe.data.target}"
    after = file.read_text(encoding="utf-8").split("\n")[:-1]
    gains, begin = [], 0
    for corpus in recipe.data.test:
        part = recipe.data.model_copy(update={"test": (corpus,)})
        pairs = list(read_part(part, "test"))
        mine = after[begin : begin + len(pairs)]
        begin += len(pairs)
        if len(mine) != len(pairs):
            raise CheckpointError(
                f"has {len(after):,} lines, fewer than the test data; remove the run and adapt "
                "again",
                f"只有 {len(after):,} 行，少于测试数据；请删除该运行并重新适应",
                file=file,
            )
        if pairs:
            gains.append(_gain(recipe, corpus_name(corpus), pairs, before, mine))
    return tuple(gains)


def _gain(
    recipe: TranslationRecipe,
    name: str,
    pairs: Sequence[Pair],
    before: Translator,
    after: Sequence[str],
) -> CorpusGain:
    evaluation = recipe.evaluation
    # That the text is new to the old model is why it was adapted.
    old = translate_pairs(
        before, recipe, pairs, decoding=recipe.decoding, num_resamples=0, unlike="never"
    )
    metrics = build_metrics(
        recipe.data.target,
        pretokenized=evaluation.pretokenized,
        lowercase=evaluation.lowercase,
    )
    found = compare_systems(old.hypotheses, after, old.references, metric="bleu", metrics=metrics)
    return CorpusGain(
        name, len(pairs), found.baseline, found.system, found.p_value, found.signature
    )
