"""What was found, as it is sent: rounded where rounding of the last bits would show which batch a sentence was in."""

from headwise.serving.schemas import CandidateReply, TranslationReply
from headwise.serving.search import Found

DIGITS = 4


def as_reply(found: list[Found]) -> TranslationReply:
    """The n best of one text."""
    candidates = [
        CandidateReply(
            text=one.text, score=round(one.score, DIGITS), log_probability=round(one.log_probability, DIGITS)
        )
        for one in found
    ]
    return TranslationReply(text=found[0].text, truncated=not found[0].is_whole, n_best=candidates)
