"""What was found, as it is sent: rounded where rounding of the last bits would show which batch a
sentence was in.
"""

from headwise.serving.schemas.base import CandidateReply, TranslationReply, WarningReply
from headwise.tasks.translation.input_warning import InputWarning
from headwise.tasks.translation.source_sentences import Candidate

DIGITS = 4


def as_reply(found: list[Candidate], warning: InputWarning | None) -> TranslationReply:
    """The n best of one text."""
    candidates = [
        CandidateReply(
            text=one.text,
            score=round(one.score, DIGITS),
            log_probability=round(one.log_probability, DIGITS),
        )
        for one in found
    ]
    return TranslationReply(
        text=found[0].text,
        truncated=not found[0].is_whole,
        warning=describe_warning(warning),
        n_best=candidates,
    )


def describe_warning(warning: InputWarning | None) -> WarningReply | None:
    """A warning in both languages, as faults have them."""
    if warning is None:
        return None
    return WarningReply(code=warning.code, message=warning.en, message_zh=warning.zh)
