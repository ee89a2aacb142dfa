"""Compares an exported translator with Headwise on probe sentences, before it is published.

    float32      the log-probability of every token within 1e-3 (rounding makes about 1e-6); greedy
                 search and beam search equal token for token
    quantised    (int8, float16, …) log-probabilities within 0.5 on average; the number of equal
                 translations is reported

If the two tokens at the first difference are tied within the tolerance, either is accepted. The
recipe's own search is compared too, because its stop rule may have no counterpart in CTranslate2
(ctranslate2_search.py).

Tested: a changed weight is detected, and nothing is published.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from headwise.decoding.choices import DecodingSettings, make_generator
from headwise.decoding.rules.length_limit import cap_limit, limit_for
from headwise.decoding.rules.phrases import encode_phrases
from headwise.decoding.search.sampling import SamplingSettings
from headwise.errors import HeadwiseError
from headwise.exporting.ctranslate2_search import exact_searches, translate_search
from headwise.models.encoder_decoder import EncoderDecoder
from headwise.models.steppers import ModelSteppers
from headwise.tasks.translation.bundle import TranslatorBundle
from headwise.tasks.translation.length_limits import within_positions
from headwise.text.tokenizer import BOS, EOS

TOLERANCE = 1e-3
ROUNDED_TOLERANCE = 0.5
MAX_TOKENS = 64
"""The most tokens of a translation that must be equal: in longer ones two hypotheses may differ by
rounding only."""


@dataclass(frozen=True)
class Agreement:
    """How well both programs agree on the probes."""

    num_probes: int
    difference: float
    """The largest difference of a token's log-probability; for rounded weights the mean."""
    num_same: int
    """Probes for which the recipe's own search (greedy for sampling) gives the same translation."""


class ProbeComparison:
    """A bundle and its probes, with the translations of Headwise."""

    def __init__(self, bundle: TranslatorBundle, probes: Sequence[str]) -> None:
        assert isinstance(bundle.model, EncoderDecoder)
        self.bundle, self.model = bundle, bundle.model
        self.steppers = ModelSteppers(bundle.model)
        self.sources = [ids for ids in map(bundle.tokenizers.source.encode, probes) if ids]
        self.source_pieces = [bundle.tokenizers.source.pieces(ids) for ids in self.sources]
        names = bundle.tokenizers.target.pieces(range(bundle.tokenizers.target.size))
        self.numbers = {name: number for number, name in enumerate(names)}
        self.settings = within_positions(bundle.recipe.decoding, bundle.recipe.model)
        brief = {"max_length": cap_limit(self.settings.max_length, MAX_TOKENS)}
        searches = exact_searches(self.settings.model_copy(update=brief))
        self.exact = [(settings, options, self._search(settings)) for settings, options in searches]

    def _search(self, settings: DecodingSettings) -> list[tuple[int, ...]]:
        phrases = encode_phrases(settings, self.bundle.tokenizers.target)
        generator = make_generator(settings, self.steppers)
        return [
            generator.generate([source], settings, phrases)[0].best.tokens
            for source in self.sources
        ]

    def _search_there(
        self, translator: Any, settings: DecodingSettings, options: dict[str, Any]
    ) -> list[tuple[int, ...]]:
        found = []
        for source, pieces in zip(self.sources, self.source_pieces, strict=True):
            limit = limit_for(settings.max_length, len(source))
            best = translator.translate_batch([pieces], max_decoding_length=limit, **options)[
                0
            ].hypotheses[0]
            numbers = [self.numbers[piece] for piece in best]
            found.append(tuple(numbers[:-1] if numbers[-1] == EOS else numbers))
        return found

    @torch.inference_mode()
    def _log_probabilities(self, source: Sequence[int], target: Sequence[int]) -> torch.Tensor:
        """Log-probabilities of every token after every prefix of a translation, [target, vocab]."""
        tokens, given = torch.tensor([[*source, EOS]]), torch.tensor([[BOS, *target]])
        places = [torch.arange(row.shape[1])[None] for row in (tokens, given)]
        hidden = self.model(
            tokens,
            given,
            source_segment=torch.ones_like(tokens),
            target_segment=torch.ones_like(given),
            source_position=places[0],
            target_position=places[1],
        )
        return self.model.output(hidden)[0].log_softmax(-1)

    def differences(self, translator: Any) -> list[np.ndarray]:
        """Differences of the log-probability of each token of the greedy translations, by probe."""
        found = []
        names = list(self.numbers)
        for source, pieces, target in zip(
            self.sources, self.source_pieces, self.exact[0][2], strict=True
        ):
            here = self._log_probabilities(source, target).gather(
                1, torch.tensor([*target, EOS])[:, None]
            )[:, 0]
            there = translator.score_batch(
                [pieces], [[names[number] for number in target]], max_input_length=0
            )[0]
            found.append(np.abs(here.numpy() - np.array(there.log_probs)))
        return found

    def _is_tied(self, number: int, here: tuple[int, ...], there: tuple[int, ...]) -> bool:
        """Whether the first tokens in which two translations of a probe differ are equally
        probable.
        """
        ours, theirs = (*here, EOS), (*there, EOS)
        place = next(
            place
            for place, pair in enumerate(zip(ours, theirs, strict=False))
            if pair[0] != pair[1]
        )
        row = self._log_probabilities(self.sources[number], here[:place])[-1]
        return abs(float(row[ours[place]] - row[theirs[place]])) <= TOLERANCE

    def _same_in_recipe(self, translator: Any) -> int:
        """The longest translation by the recipe's limits; probes of other languages often reach
        it."""
        settings: DecodingSettings
        if isinstance(self.settings, SamplingSettings):
            settings, options, here = self.exact[0]
        else:
            settings, options = self.settings, translate_search(self.settings).options
            here = self._search(settings)
        there = self._search_there(translator, settings, options)
        return sum(a == b for a, b in zip(here, there, strict=True))

    def prove(self, directory: Path) -> Agreement:
        """An export in float32 must compute the same function and find the same translations."""
        translator = load_foreign(directory, compute_type="float32")
        largest = max(float(part.max()) for part in self.differences(translator))
        if not largest <= TOLERANCE:
            raise HeadwiseError(
                "CTranslate2 gives a token another log-probability than Headwise, by "
                f"{largest:.2g} (at most {TOLERANCE} is rounding), so nothing was written; please "
                "report it with the versions of both (headwise doctor)",
                f"CTranslate2 给出的词元对数概率与 Headwise 相差 {largest:.2g}（舍入误差至多 "
                f"{TOLERANCE}），因此没有写入任何内容；请附上两者的版本（headwise doctor）"
                "报告此问题",
            )
        for settings, options, here in self.exact:
            there = self._search_there(translator, settings, options)
            for number, pair in enumerate(zip(here, there, strict=True)):
                if pair[0] != pair[1] and not self._is_tied(number, *pair):
                    raise self._explain_difference(settings.kind, number, *pair)
        return Agreement(len(self.sources), largest, self._same_in_recipe(translator))

    def measure(self, directory: Path, quantization: str) -> Agreement:
        """An export with rounded weights must be close."""
        # A CPU has no 16-bit products; there only the rounding of the weights is measured.
        translator = load_foreign(
            directory, compute_type="int8" if quantization.startswith("int8") else "float32"
        )
        mean = float(np.concatenate(self.differences(translator)).mean())
        if not mean <= ROUNDED_TOLERANCE:
            raise HeadwiseError(
                f"rounded to {quantization}, the log-probability of a token is off by {mean:.2g} "
                f"on average (at most {ROUNDED_TOLERANCE} is taken), so nothing was written; "
                "choose another --quantization, e.g. float16 or none",
                f"舍入为 {quantization} 后，词元的对数概率平均偏差 {mean:.2g}（至多 "
                f"{ROUNDED_TOLERANCE}），因此没有写入任何内容；请换一种 --quantization，例如 "
                "float16 或 none",
            )
        return Agreement(len(self.sources), mean, self._same_in_recipe(translator))

    def _explain_difference(
        self, kind: str, number: int, here: tuple[int, ...], there: tuple[int, ...]
    ) -> HeadwiseError:
        target = self.bundle.tokenizers.target
        probe = self.bundle.tokenizers.source.decode(self.sources[number])
        return HeadwiseError(
            f"with {kind} search CTranslate2 translates the probe {probe[:60]!r} as "
            f"{target.decode(there)[:60]!r}, Headwise as {target.decode(here)[:60]!r}, so nothing "
            "was written; check with sentences of your own: --probes FILE",
            f"使用 {kind} 搜索时，CTranslate2 把探测句 {probe[:60]!r} 译为 "
            f"{target.decode(there)[:60]!r}，Headwise 译为 {target.decode(here)[:60]!r}，"
            "因此没有写入任何内容；可用自己的句子检查：--probes FILE",
        )


def load_foreign(directory: Path, *, compute_type: str) -> Any:
    import ctranslate2

    # CTranslate2 also sets torch's number of threads, which would change the rounding of its sums;
    # the number is set back.
    return ctranslate2.Translator(
        str(directory),
        device="cpu",
        compute_type=compute_type,
        intra_threads=torch.get_num_threads(),
    )
