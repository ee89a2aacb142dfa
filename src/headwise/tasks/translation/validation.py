"""Validation of a translator during training: the loss of the validation set, and BLEU and chrF of
translations.

    loss, perplexity    every pair of the set (teacher forcing)
    bleu, chrf          the first `evaluation.validation_sentences` pairs, translated by greedy
                        search with the weights of this step; with several directions, of
                        each (`bleu_en-de`), and the mean of those that are learnt

The loss measures the probability of the right token after a right beginning; a translation also
shows what follows a wrong token. A few hundred sentences and greedy search take little time, and
their scores rise and fall with the final score. Validation draws no random numbers and changes no
weights, so training gives the same bits with and without it.

Tested: weights and optimiser are the same with and without validation, also after resuming; the
scores are those of the finished bundle.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from statistics import fmean
from typing import cast

from headwise.data.batching import PairSource
from headwise.data.pairs.parallel_files import Pair
from headwise.data.pairs.preparation import read_part
from headwise.decoding.choices import DecodingSettings
from headwise.decoding.search.greedy import GreedySettings
from headwise.tasks.translation.objective import RowShape, validation_loss
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.tasks.translation.several_directions import each_direction
from headwise.tasks.translation.translated_part import translate_pairs
from headwise.tasks.translation.translator import Translator
from headwise.training.updates import Trainable


@dataclass
class Validation:
    """Measures the module of a task; the training loop calls it, in evaluation mode, without
    gradients.
    """

    recipe: TranslationRecipe
    task: Trainable
    store: PairSource
    shape: RowShape
    make_translator: Callable[[], Translator]
    """A translator of the weights as they are now: on a CPU it holds them in a layout of its own,
    so each time anew."""
    _pairs: dict[str, Sequence[Pair]] = field(default_factory=dict, init=False)

    def __call__(self, step: int) -> dict[str, float]:
        metrics = validation_loss(self.task, self.store, self.shape)
        if self.recipe.evaluation.validation_sentences > 0:
            metrics |= self._translation_scores()
        return metrics

    def _translation_scores(self) -> dict[str, float]:
        translator = self.make_translator()
        if not self.recipe.data.directions:
            return self._scores_of(translator, "")
        found = {
            direction: self._scores_of(one, direction)
            for direction, one in each_direction(translator, "valid").items()
        }
        learnt = [found[one] for one in found if one in self.recipe.data.directions]
        measured = [one for one in learnt or found.values() if one]
        mean = {key: fmean(one[key] for one in measured) for key in ("bleu", "chrf") if measured}
        each = {f"bleu_{one}": scores["bleu"] for one, scores in found.items() if scores}
        return mean | each

    def _scores_of(self, translator: Translator, direction: str) -> dict[str, float]:
        """BLEU and chrF of a translator of one direction."""
        if direction not in self._pairs:
            # A sentence too long to translate is the business of the end, when every sentence is;
            # it must not stop a training.
            fitting = (
                pair
                for pair in read_part(translator.recipe.data, "valid")
                if translator.fits(pair.source)
            )
            count = self.recipe.evaluation.validation_sentences
            self._pairs[direction] = tuple(islice(fitting, count))
        pairs = self._pairs[direction]
        if not pairs:
            return {}
        own = self.recipe.decoding
        search = cast("DecodingSettings", own.unaided)
        if own.over_steppers:
            search = GreedySettings(max_length=own.max_length)
        translated = translate_pairs(
            translator, translator.recipe, pairs, decoding=search, num_resamples=0, unlike="never"
        )
        return {"bleu": translated.scores.bleu.value, "chrf": translated.scores.chrf.value}
