"""The multi-modality problem, live: a model translates sentences that have two right translations.

The sentences are of the test split of the pocket corpus. A translation is one of the two wordings,
a mixture of both, or something else, and each of its words is marked with the wording that it comes
from (pocket/second_wording.py). A model that writes all words at once, trained on both wordings,
mixes them; one that writes word by word, or that was trained on a teacher's translations, rarely
does.
Tested with the two wordings and mixtures as translations.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count as numbers
from itertools import islice
from typing import Literal

from headwise.data.pairs.choices import PocketCorpus
from headwise.decoding.choices import DecodingSettings
from headwise.errors import UsageError
from headwise.pocket import right_texts, sentence
from headwise.pocket.second_wording import Origin, Verdict, judge_wording, mark_words
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.tasks.translation.translator import Translator

SPLIT = "test"

PocketWordings = Literal["both", "one", "other"]


@dataclass(frozen=True)
class JudgedSentence:
    """A sentence, its two right translations, and what a model wrote."""

    source: str
    right: tuple[str, ...]
    text: str
    verdict: Verdict
    words: tuple[tuple[str, Origin], ...]


def pocket_wordings(recipe: TranslationRecipe) -> PocketWordings | None:
    """What a model of this recipe has seen of the two wordings; None: another corpus.

    "other": only its validation or test set is of the pocket corpus, as that of a student is.
    """
    data = recipe.data
    trained = [one for one in data.train if isinstance(one, PocketCorpus)]
    if trained:
        return "both" if any(one.second_wording > 0 for one in trained) else "one"
    is_measured = any(isinstance(one, PocketCorpus) for one in (*data.valid, *data.test))
    return "other" if is_measured else None


def judge_sentences(
    translator: Translator, settings: DecodingSettings, *, first: int, count: int
) -> list[JudgedSentence]:
    """Translate `count` of the sentences with two right translations, from number `first` on."""
    if pocket_wordings(translator.recipe) is None:
        raise UsageError(
            "sentences with two right translations are known of the pocket corpus alone, and this "
            "model is not of it; train one with headwise train pocket "
            "data.train.second_wording=0.4",
            "只有袖珍语料中已知哪些句子有两种正确译法，而该模型不属于它；请用 headwise train "
            "pocket data.train.second_wording=0.4 训练一个",
        )
    source, target = translator.source_language, translator.target_language
    found = list(islice(_ambiguous(target), first, first + count))
    sources = [sentence(SPLIT, index).text(source) for index, _ in found]
    written = translator(sources, translator.within_positions(settings))
    return [
        JudgedSentence(
            source=given,
            right=right,
            text=one.text,
            verdict=judge_wording(one.text, right),
            words=mark_words(one.text, right),
        )
        for given, (_, right), one in zip(sources, found, written, strict=True)
    ]


def _ambiguous(language: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The numbers of the sentences with two right texts, and these."""
    for index in numbers():
        right = right_texts(SPLIT, index, language)
        if len(right) == 2:
            yield index, right
