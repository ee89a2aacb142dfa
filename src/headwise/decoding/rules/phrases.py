"""Prepares forbidden and required phrases and prefixes, which the decoding settings give as text,
for the tokens of one tokenizer.

A prefix becomes tokens; forbidden and required phrases become rules of the text (`text_rules.py`).
Phrases that the tokenizer cannot write are refused: in a prefix, an unknown token would print the
mark for "unknown"; a required phrase would never appear; a forbidden one is probably a spelling
mistake. Rules and refusals are cached, because several batches need the same ones.
Tested: phrases outside word, character and piece vocabularies; a lowercasing vocabulary.
"""

from functools import lru_cache

from headwise.decoding.generation_settings import GenerationSettings
from headwise.decoding.rules.constraints import SentenceRules, check_sentence_rules
from headwise.decoding.rules.length_limit import limit_for
from headwise.decoding.rules.text_rules import TextRules, can_be_written, make_rules
from headwise.errors import UsageError
from headwise.text.phrase_matching import occurs
from headwise.text.reversed_tokenizer import ReversedTokenizer
from headwise.text.spelling import Spelling
from headwise.text.tokenizer import UNKNOWN, Tokenizer

KEPT_RULES = 8
KEPT_SPELLINGS = 4


def encode_phrases(settings: GenerationSettings, tokenizer: Tokenizer) -> SentenceRules:
    """The rules that the settings give to every sentence."""
    if isinstance(tokenizer, ReversedTokenizer) and (
        settings.prefix or settings.forbidden or settings.required
    ):
        raise UsageError(
            "a prefix, forbidden or required phrase was given, and this model writes from right to "
            "left (data.target_order=reversed), where phrases are not followed; leave them out, or "
            "use a model with data.target_order=written",
            "给出了前缀、禁用短语或必需短语，而该模型从右到左翻译（data.target_order=reversed），"
            "无法遵守；请去掉它们，或换用 data.target_order=written 的模型",
        )
    rules = rules_of(tokenizer, settings.forbidden, settings.required)
    return SentenceRules(encode_prefix(settings.prefix, tokenizer), rules)


def encode_prefix(prefix: str, tokenizer: Tokenizer) -> tuple[int, ...]:
    tokens = tuple(tokenizer.encode(prefix)) if prefix else ()
    if UNKNOWN in tokens:
        raise _outside_vocabulary(("prefix", "前缀"), prefix, reads_as=tokenizer.decode(tokens))
    return tokens


def check_shortest(settings: GenerationSettings, tokenizer: Tokenizer) -> None:
    """Refuse phrases that do not fit into the translation of the shortest sentence."""
    check_sentence_rules(
        encode_phrases(settings, tokenizer), limit=limit_for(settings.max_length, 1)
    )


def rules_of(
    tokenizer: Tokenizer, forbidden: tuple[str, ...], required: tuple[str, ...]
) -> TextRules | None:
    """The rules of these phrases for a tokenizer; the same object for the same phrases."""
    rules = _rules_or_refusal(tokenizer, forbidden, required) if forbidden or required else None
    if isinstance(rules, UsageError):
        raise UsageError(rules.en, rules.zh)
    return rules


@lru_cache(KEPT_RULES)
def _rules_or_refusal(
    tokenizer: Tokenizer, forbidden: tuple[str, ...], required: tuple[str, ...]
) -> TextRules | UsageError | None:
    """A refusal is cached as well."""
    spelling = spelling_of(tokenizer)
    try:
        rules = make_rules(forbidden, required, spelling)
        for name, phrases in (
            (("required phrase", "必需短语"), required),
            (("forbidden phrase", "禁用短语"), forbidden),
        ):
            for phrase in phrases:
                written = tokenizer.decode(tokenizer.encode(phrase))
                if not (occurs(phrase, written) or can_be_written(phrase, spelling)):
                    raise _outside_vocabulary(name, phrase, reads_as=written)
    except UsageError as error:
        return UsageError(error.en, error.zh)
    return rules


@lru_cache(KEPT_SPELLINGS)
def spelling_of(tokenizer: Tokenizer) -> Spelling:
    return Spelling.of(tokenizer.surfaces())


def _outside_vocabulary(name: tuple[str, str], phrase: str, *, reads_as: str) -> UsageError:
    return UsageError(
        f"the {name[0]} {phrase!r} is outside the model's vocabulary, which reads it as "
        f"{reads_as!r}; check its spelling and case, or leave it out",
        f"{name[1]} {phrase!r} 不在模型的词表中（读作 {reads_as!r}）；请检查拼写与大小写，或去掉它",
    )
