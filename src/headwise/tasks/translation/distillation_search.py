"""Which translations of a sentence go into a distilled corpus: search, ranking and filters.

    best      the N best of a beam search (Kim & Rush 2016 keep one, of a beam of 5)
    closest   of all hypotheses of the beam, the N with the highest sentence BLEU against the
              reference: sequence-level interpolation, the same paper
    sampled   N translations drawn from the teacher's distribution

A translation is left out if it is empty, if the length limit cut it off, if it is longer than a row
of the data, if its length is out of proportion (`data.filter.max_ratio`), or if it is kept already.
Of what is left the worst share can be dropped, by the mean log-probability of its tokens; the order
of probability is that of a shard, so that a shard does not depend on the others. Noise is added
last (data/pairs/noising.py).

Tested against: the translator itself, brute-force ranking, and one hand-made case for each filter.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from headwise.data.pairs.filtering import FilterSettings, LengthLimits, check_lengths
from headwise.data.pairs.noising import add_noise
from headwise.decoding.choices import DecodingSettings
from headwise.decoding.search.beam import BeamSettings
from headwise.decoding.search.sampling import SamplingSettings
from headwise.errors import UsageError
from headwise.evaluation.sentence_similarity import sentence_bleu
from headwise.randomness import numpy_generator, seed_from
from headwise.settings import Settings, apply_overrides, check_settings
from headwise.tasks.translation.distillation_request import Mode
from headwise.tasks.translation.distillation_sources import SourceLine
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.tasks.translation.source_sentences import Candidate, SourceSentence
from headwise.tasks.translation.translator import Translator
from headwise.text.cleaning import clean_line

REASONS = {
    "unreadable_source": ("source longer than the teacher reads", "源句超过教师模型可读长度"),
    "empty": ("translation is empty", "译文为空"),
    "unfinished": ("translation cut off by the length limit", "译文被长度上限截断"),
    "max_tokens": ("translation longer than a row of the data", "译文超过数据的一行"),
    "max_ratio": (
        "lengths too different (data.filter.max_ratio)",
        "长度相差过大（data.filter.max_ratio）",
    ),
    "identical": ("translation equals source", "译文与源句相同"),
    "duplicate": ("translation kept already", "译文重复"),
    "worst": ("among the least probable (--drop-worst)", "概率最低的部分（--drop-worst）"),
}
_ANY_LENGTH = 1 << 30


class _SearchOfTeacher(Settings):
    decoding: DecodingSettings


@dataclass(frozen=True)
class Distilled:
    """One line of the new corpus."""

    source: str
    target: str
    reference: str | None


def choose_search(
    recipe: TranslationRecipe, mode: Mode, keep: int, changes: Sequence[str] = ()
) -> DecodingSettings:
    """The teacher's decoding for a mode: a search of one path becomes a beam, or draws."""
    own = recipe.decoding
    wanted = SamplingSettings if mode == "sampled" else BeamSettings
    is_asked = any(change.partition("=")[0].strip() == "kind" for change in changes)
    if own.over_steppers and not isinstance(own, wanted) and not is_asked:
        changes = [f"kind={wanted.model_fields['kind'].default}", *changes]
    if mode == "sampled" and not own.over_steppers:
        raise UsageError(
            f"--mode sampled draws token by token, and this teacher decodes with kind={own.kind}; "
            "use --mode best, or a teacher that writes one token after the other",
            f"--mode sampled 逐词元抽样，而该教师模型的解码是 kind={own.kind}；"
            "请使用 --mode best，或换用逐词生成的教师模型",
        )
    changed = apply_overrides(
        {"decoding": own.model_dump(mode="json")},
        [f"decoding.{change}" for change in changes],
        settings=_SearchOfTeacher,
    )
    settings = check_settings(_SearchOfTeacher, changed).decoding
    count = max(keep, settings.num_hypotheses) if mode == "closest" else keep
    found = settings.with_num_results(count, may_widen=True)
    if found is None or (mode == "closest" and count < 2):
        raise UsageError(
            f"decoding with kind={settings.kind} gives one translation of a sentence, and "
            f"--mode {mode} --keep {keep} needs several; leave out the change of kind, or use "
            "--mode best --keep 1",
            f"kind={settings.kind} 的解码每句只给出一个译文，而 --mode {mode} --keep {keep} "
            "需要多个；请不要更改 kind，或使用 --mode best --keep 1",
        )
    return found


class Distiller:
    """A teacher with a way to search and to filter."""

    def __init__(
        self,
        teacher: Translator,
        search: DecodingSettings,
        *,
        mode: Mode,
        keep: int,
        filters: FilterSettings,
        row_tokens: int,
        drop_worst: float = 0.0,
        noise: bool = False,
    ) -> None:
        self._teacher, self._search, self._mode, self._keep = teacher, search, mode, keep
        self._filters, self._drop_worst, self._noise = filters, drop_worst, noise
        self._limits = LengthLimits(_ANY_LENGTH, filters.max_tokens or row_tokens - 1)
        evaluation = teacher.recipe.evaluation
        self._closeness = sentence_bleu(
            teacher.target_language,
            pretokenized=evaluation.pretokenized,
            lowercase=evaluation.lowercase,
        )

    def translate(
        self, lines: Sequence[SourceLine], *, shard: int
    ) -> tuple[list[Distilled], Counter[str]]:
        """The pairs of a shard, and how many translations each filter left out."""
        dropped: Counter[str] = Counter()
        encoded = [SourceSentence(line.text, self._teacher.encode(line.text)) for line in lines]
        longest = self._teacher.longest_source.tokens
        readable = [len(sentence.tokens) < longest for sentence in encoded]
        dropped["unreadable_source"] += readable.count(False)
        asked = [sentence for sentence, fits in zip(encoded, readable, strict=True) if fits]
        answers = self._teacher.stream_sentences(asked, self._settings_of(shard))
        kept: list[Distilled] = []
        scores: list[float] = []
        for line, sentence in _only(zip(lines, encoded, strict=True), readable):
            chosen = self._choose(line, sentence, next(answers).n_best, dropped)
            kept += [Distilled(line.text, text, line.reference) for text in chosen]
            scores += chosen.values()
        if num_worst := int(self._drop_worst * len(kept)):
            worst = set(sorted(range(len(kept)), key=scores.__getitem__)[:num_worst])
            kept = [one for number, one in enumerate(kept) if number not in worst]
            dropped["worst"] += num_worst
        if self._noise:
            kept = [_with_noise(one, shard, number) for number, one in enumerate(kept)]
        return kept, +dropped

    def _settings_of(self, shard: int) -> DecodingSettings:
        """Each shard draws numbers of its own, whoever translates it."""
        if not isinstance(self._search, SamplingSettings):
            return self._search
        seed = seed_from(self._search.seed, "shard", shard) >> 32
        return self._search.model_copy(update={"seed": seed})

    def _choose(
        self,
        line: SourceLine,
        sentence: SourceSentence,
        candidates: Sequence[Candidate],
        dropped: Counter[str],
    ) -> dict[str, float]:
        """The translations that are kept, with the mean log-probability of their tokens."""
        if self._mode == "closest":
            reference = line.reference
            assert reference is not None
            candidates = sorted(
                candidates, key=lambda one: -self._closeness(one.text, reference)
            )  # stable: of equals the one the teacher prefers
        kept: dict[str, float] = {}
        for candidate in candidates:
            if len(kept) == self._keep:
                break
            text = clean_line(candidate.text)
            reason = self._refuse(line, sentence, text, is_whole=candidate.is_whole)
            if reason is None and text in kept:
                reason = "duplicate"
            if reason is None:
                length = 1 + len(self._teacher.tokenizers.target.encode(text))
                kept[text] = candidate.log_probability / length
            else:
                dropped[reason] += 1
        return kept

    def _refuse(
        self, line: SourceLine, sentence: SourceSentence, text: str, *, is_whole: bool
    ) -> str | None:
        """The name of the first filter that leaves a translation out."""
        if not text:
            return "empty"
        if not is_whole:
            return "unfinished"
        if self._filters.drop_identical and text == line.text:
            return "identical"
        return check_lengths(
            len(sentence.tokens),
            len(self._teacher.tokenizers.target.encode(text)),
            limits=self._limits,
            max_ratio=self._filters.max_ratio,
        )


def _with_noise(pair: Distilled, shard: int, number: int) -> Distilled:
    """Every pair of every shard has noise of its own, whoever translates it."""
    return replace(pair, target=add_noise(pair.target, numpy_generator("noise", shard, number)))


def _only(
    pairs: "zip[tuple[SourceLine, SourceSentence]]", wanted: Sequence[bool]
) -> Iterator[tuple[SourceLine, SourceSentence]]:
    return (pair for pair, is_wanted in zip(pairs, wanted, strict=True) if is_wanted)
