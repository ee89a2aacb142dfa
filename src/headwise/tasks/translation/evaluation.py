"""The work behind `headwise evaluate`: scores translations and compares two systems."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from headwise.errors import DataError
from headwise.evaluation.significance import Comparison, compare_systems
from headwise.evaluation.translation import TranslationScores, build_metrics, score_translations
from headwise.language import say
from headwise.storage import write_text
from headwise.tasks.checkpoint_bundle import Which
from headwise.tasks.text_input import read_text_lines
from headwise.tasks.translation.bundle import TranslatorBundle, load_translator_bundle
from headwise.tasks.translation.checkpoint_bundle import load_checkpoint_bundle
from headwise.tasks.translation.drafting_speed import DraftingSpeed
from headwise.tasks.translation.evaluation_request import Measurement
from headwise.tasks.translation.line_translation import read_places, translate_lines
from headwise.tasks.translation.translator import Translator


@dataclass(frozen=True)
class MeasuredScores:
    """The scores of a system and, with a baseline, the paired comparisons."""

    scores: TranslationScores
    num_sentences: int
    form: str | None = None
    """In what form the model computed, if there was one."""
    step: int | None = None
    """Of the checkpoint, where the weights of an unfinished run were measured."""
    comparisons: tuple[Comparison, ...] = ()
    speed: DraftingSpeed | None = None
    """Tokens and steps, if the model writes several tokens in a step."""

    def as_dict(self) -> dict[str, Any]:
        scores = self.scores
        result: dict[str, Any] = {
            "bleu": scores.bleu.value,
            "chrf": scores.chrf.value,
            "ter": scores.ter.value,
            "exact_match": scores.exact_match,
            "signature": scores.bleu.signature,
            "sentences": self.num_sentences,
            "details": {
                score.name: score.as_dict() for score in (scores.bleu, scores.chrf, scores.ter)
            },
        }
        if self.form is not None:
            result["form"] = self.form
        if self.step is not None:
            result["step"] = self.step
        if self.speed is not None:
            result["tokens_per_step"] = self.speed.tokens_per_step
        if self.comparisons:
            result["comparisons"] = [comparison.as_dict() for comparison in self.comparisons]
        return result

    def rows(self) -> list[tuple[str, str, str, str]]:
        """For a table: metric, score, interval, signature."""
        listed = []
        for score in (self.scores.bleu, self.scores.chrf, self.scores.ter):
            interval = (
                ""
                if score.low is None or score.high is None
                else f"{score.low:.1f} – {score.high:.1f}"
            )
            listed.append((score.name, f"{score.value:.2f}", interval, score.signature))
        listed.append(
            (say("exact match", "完全一致"), f"{100 * self.scores.exact_match:.1f} %", "", "")
        )
        if self.speed is not None:
            name = say("tokens per step", "每步词元数")
            listed.append((name, f"{self.speed.tokens_per_step:.2f}", "", ""))
        return listed

    def remarks(self) -> list[str]:
        unfinished = say(
            f"weights of step {self.step}: the training is not finished",
            f"第 {self.step} 步的权重：训练尚未完成",
        )
        return [unfinished] * (self.step is not None) + [
            say(
                f"{one.name}: {one.system:.2f} against {one.baseline:.2f}, difference "
                f"{one.difference:+.2f}, p = {one.p_value:.3f} ({one.method})",
                f"{one.name}：{one.system:.2f}，对照 {one.baseline:.2f}，差 "
                f"{one.difference:+.2f}，p = {one.p_value:.3f}（{one.method}）",
            )
            for one in self.comparisons
        ]


def measure(wanted: Measurement) -> MeasuredScores:
    """Translate if there is a model, then score, then compare."""
    wanted.check()
    references = list(read_text_lines(wanted.reference))
    if not references:
        raise DataError(
            "is empty; give the file of right translations",
            "是空文件；请给出参考译文文件",
            file=wanted.reference,
        )
    system = wanted.system
    found = _translations(wanted, system, is_baseline=False)
    hypotheses, language = found.texts, found.language
    _check_count(hypotheses, references, system, wanted.reference)
    if wanted.output is not None:
        write_text(wanted.output, "".join(f"{line}\n" for line in hypotheses))
    metrics = build_metrics(language, pretokenized=wanted.pretokenized, lowercase=wanted.lowercase)
    scores = score_translations(
        hypotheses,
        references,
        language=language,
        pretokenized=wanted.pretokenized,
        lowercase=wanted.lowercase,
    )
    comparisons: tuple[Comparison, ...] = ()
    if wanted.against is not None:
        # The baseline has no memory: a store belongs to one model, and is what is measured.
        plain = tuple(one for one in wanted.overrides if not one.startswith("memory."))
        baseline = _translations(
            replace(wanted, overrides=plain), wanted.against, is_baseline=True
        ).texts
        _check_count(baseline, references, wanted.against, wanted.reference)
        comparisons = (
            compare_systems(baseline, hypotheses, references, metric="bleu", metrics=metrics),
            compare_systems(baseline, hypotheses, references, metric="chrf", metrics=metrics),
        )
    return MeasuredScores(
        scores, len(references), found.form, found.step, comparisons, speed=found.speed
    )


class _Translations(NamedTuple):
    """Texts, their language, and of a model its form, the step of its checkpoint and its speed."""

    texts: list[str]
    language: str | None
    form: str | None = None
    step: int | None = None
    speed: DraftingSpeed | None = None


def _translations(wanted: Measurement, system: Path, *, is_baseline: bool) -> _Translations:
    """Of a system; --checkpoint and the other members of an ensemble are not the baseline's."""
    if not wanted.is_model(system):
        hypotheses = list(read_text_lines(system))
        return _Translations(hypotheses, wanted.target_language or guess_language(hypotheses))
    assert wanted.source is not None, "checked"
    which = None if is_baseline else wanted.checkpoint
    bundles = [
        _load(one, which, wanted.target_language)
        for one in (system, *(() if is_baseline else wanted.others))
    ]
    translator = Translator.join(bundles, wanted.mean, wanted.device, wanted.precision)
    decoding = translator.settings(wanted.overrides)
    lines = read_places(wanted.source)
    found = list(translate_lines(translator, lines, decoding))
    language = wanted.target_language or translator.target_language
    return _Translations(
        [line.text for line in found],
        language,
        translator.form.name,
        None if which is None else bundles[0].results["steps"],
        DraftingSpeed.sum_of(line.speed for line in found),
    )


def _load(path: Path, which: Which | None, target: str | None) -> TranslatorBundle:
    """A bundle; of several directions, the one into the target language."""
    if which is None:
        bundle = load_translator_bundle(path, several_directions=True)
    else:
        bundle = load_checkpoint_bundle(path, which)
    return bundle.toward(target) if bundle.recipe.data.directions else bundle


def guess_language(texts: Sequence[str]) -> str | None:
    """Chinese, Japanese or nothing: only these need another tokenisation, and their scripts give
    them away.
    """
    letters = [letter for text in texts[:1000] for letter in text if letter.isalpha()]
    if not letters:
        return None
    if sum("\u3040" <= letter <= "\u30ff" for letter in letters) > len(letters) / 10:
        return "ja"
    return (
        "zh"
        if sum("\u4e00" <= letter <= "\u9fff" for letter in letters) > len(letters) / 3
        else None
    )


def _check_count(
    hypotheses: Sequence[str], references: Sequence[str], system: Path, reference: Path
) -> None:
    if len(hypotheses) != len(references):
        raise DataError(
            f"has {len(references):,} lines, but {system} gives {len(hypotheses):,} translations; "
            "source and reference must match line by line",
            f"有 {len(references):,} 行，而 {system} 给出 {len(hypotheses):,} 句译文；"
            "源文与参考译文必须逐行对应",
            file=reference,
        )
