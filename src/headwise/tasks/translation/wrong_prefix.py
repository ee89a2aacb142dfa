"""Measures how a translator goes on after a wrong beginning: the exposure bias in BLEU.

    reference     y_1 … y_n  y_n+1 … y_T
    right prefix  y_1 … y_n  → greedy search writes the rest;  BLEU against y_n+1 … y_T
    wrong prefix  w_1 … w_n  → greedy search writes the rest;  BLEU against y_n+1 … y_T

Both prefixes are forced, have as many tokens, and are not scored, so both numbers are about the
same tokens. The difference says what one mistake costs the words after it. A part of it is no fault
of the model: after another first word the right sentence may go on otherwise. So the number is for
comparing translators that get the same wrong tokens.

The wrong token at place i is drawn uniformly, by seed, sentence and place, among

    frequent    the POOL tokens that most often stand at place i of the references (the same for
                every model with this vocabulary)
    likely      the LIKELY most probable tokens of the model itself after the prefix so far

without the right token and the special ones. References with no more than n tokens are left out.

Tested against: references and prefixes by hand; a search that must continue them; the right prefix
of what the model writes itself gives the same translation.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch

from headwise.decoding.batches import generate_stream
from headwise.decoding.choices import DecodingSettings
from headwise.decoding.rules.phrases import encode_phrases
from headwise.errors import UsageError
from headwise.evaluation.translation import TranslationScores, score_translations
from headwise.randomness import numpy_generator
from headwise.tasks.translation.forced_states import ROWS, states_along
from headwise.tasks.translation.token_pair import TokenPair
from headwise.tasks.translation.translator import Translator
from headwise.text.phrase_matching import on_one_line
from headwise.text.tokenizer import NUM_SPECIAL

WrongTokens = Literal["frequent", "likely"]
POOL = 20
LIKELY = 5
Tokens = tuple[int, ...]


@dataclass(frozen=True)
class AfterPrefix:
    """The continuations after the right and after the wrong beginning."""

    right: TranslationScores
    wrong: TranslationScores

    @property
    def drop(self) -> float:
        """The BLEU that the mistake costs."""
        return self.right.bleu.value - self.wrong.bleu.value


def choose_wrong(
    translator: Translator,
    pairs: Sequence[TokenPair],
    *,
    rule: WrongTokens,
    count: int,
    seed: int,
) -> list[Tokens]:
    """`count` wrong tokens for each pair, from left to right."""
    prefixes: list[Tokens] = [()] * len(pairs)
    for place in range(count):
        if rule == "likely":
            pools = likely_tokens(translator, pairs, prefixes)
        else:
            seen = Counter(pair.target[place] for pair in pairs)
            frequent = sorted(seen, key=lambda token: (-seen[token], token))
            pools = [[one for one in frequent if one >= NUM_SPECIAL][: POOL + 1]] * len(pairs)
        chosen = []
        for number, (pair, pool) in enumerate(zip(pairs, pools, strict=True)):
            wrong = [token for token in pool if token != pair.target[place]]
            wrong = wrong[: LIKELY if rule == "likely" else POOL]
            if not wrong:
                raise UsageError(
                    f"all references have the same token at place {place + 1}, so none of the "
                    "frequent ones is wrong there; give --wrong likely, or more sentences",
                    f"所有参考译文的第 {place + 1} 个词元都相同，常见词元中没有错误的；请用 "
                    "--wrong likely，或给出更多句子",
                )
            generator = numpy_generator(seed, "wrong prefix", number, place)
            chosen.append((*prefixes[number], wrong[int(generator.integers(len(wrong)))]))
        prefixes = chosen
    return prefixes


@torch.inference_mode()
def likely_tokens(
    translator: Translator, pairs: Sequence[TokenPair], prefixes: Sequence[Tokens]
) -> list[list[int]]:
    """The tokens that the model finds most probable after each prefix, the best first."""
    model, found = translator.model, []
    for begin in range(0, len(pairs), ROWS):
        part = slice(begin, begin + ROWS)
        states = states_along(model, [pair.source for pair in pairs[part]], prefixes[part])
        logits = model.logits(states[:, -1]).float()
        logits[:, :NUM_SPECIAL] = -torch.inf
        found += logits.topk(min(LIKELY + 1, logits.shape[1] - NUM_SPECIAL)).indices.tolist()
    return found


def continue_after(
    translator: Translator, pairs: Sequence[TokenPair], prefixes: Sequence[Tokens]
) -> list[Tokens]:
    """What greedy search writes after each prefix."""
    settings = greedy_settings(translator)
    phrases = encode_phrases(settings, translator.tokenizers.target)
    results = generate_stream(
        translator.generator(settings),
        (pair.source for pair in pairs),
        settings,
        rules=[replace(phrases, prefix=prefix) for prefix in prefixes],
    )
    return [
        result.best.tokens[len(prefix) :] for result, prefix in zip(results, prefixes, strict=True)
    ]


def greedy_settings(translator: Translator) -> DecodingSettings:
    """Greedy search, with what else the recipe says about searches."""
    return translator.within_positions(translator.settings(["kind=greedy"]))


def measure_after_prefixes(
    translator: Translator, pairs: Sequence[TokenPair], wrong: Sequence[Tokens]
) -> AfterPrefix:
    """BLEU of the continuations after the right and after these wrong prefixes."""
    right = [tuple(pair.target[: len(prefix)]) for pair, prefix in zip(pairs, wrong, strict=True)]
    references = [
        text_of(translator, pair.target[len(prefix) :])
        for pair, prefix in zip(pairs, wrong, strict=True)
    ]
    scores = []
    for prefixes in (right, wrong):
        texts = [text_of(translator, one) for one in continue_after(translator, pairs, prefixes)]
        evaluation = translator.recipe.evaluation
        scores.append(
            score_translations(
                texts,
                references,
                language=translator.target_language,
                pretokenized=evaluation.pretokenized,
                lowercase=evaluation.lowercase,
            )
        )
    return AfterPrefix(*scores)


def text_of(translator: Translator, tokens: Sequence[int]) -> str:
    """The text of some tokens, on one line."""
    return on_one_line(translator.tokenizers.target.decode(tokens))
