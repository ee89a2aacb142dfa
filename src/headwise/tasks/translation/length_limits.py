"""The longest source and the longest translation that a model allows.

They follow from the model's position encodings and from limits of our own. The translator, the
server and the export use this file; it is tested through them.
"""

from headwise.decoding.choices import DecodingSettings
from headwise.decoding.rules.length_limit import cap_limit
from headwise.models.choices import TranslatorSettings
from headwise.models.limits import Limit, source_limits, target_limits

MAX_SOURCE_TOKENS = 2048


def longest_source(model: TranslatorSettings) -> Limit:
    """The most tokens a sentence may have, its end included.

    A limit without a key is ours and not the model's.
    """
    return min(
        [Limit("", MAX_SOURCE_TOKENS), *source_limits(model)], key=lambda limit: limit.tokens
    )


def within_positions(settings: DecodingSettings, model: TranslatorSettings) -> DecodingSettings:
    """The same settings, with outputs no longer than the model has positions for."""
    known = min((limit.tokens for limit in target_limits(model)), default=None)
    if known is None:
        return settings
    return settings.model_copy(update={"max_length": cap_limit(settings.max_length, known - 1)})
