"""`SourceSentence` and `Candidate`: a sentence before decoding, and a translation of it afterwards.

A text that is too long for the model is translated in several sentences. Candidate i of the text
joins candidate i of each sentence: log-probabilities are added, scores (already per token or per
length) are averaged. A prefix from the settings applies to the first sentence only. `headwise
translate` (line_translation.py) and the server share this.

Tested against: a text joined by hand; the replies of the server.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from headwise.errors import DataError
from headwise.models.limits import Limit
from headwise.text.sentence_splitting import SplitText


@dataclass(frozen=True)
class SourceSentence:
    """A text to translate at once, as text and as tokens without the end of sentence."""

    text: str
    tokens: Sequence[int]
    is_continued: bool = False
    """It continues the text of the sentence before it."""


@dataclass(frozen=True)
class Candidate:
    """One of the n best translations of a sentence."""

    text: str
    score: float
    """What candidates are ranked by: the log-probability after the length penalty."""
    log_probability: float
    is_whole: bool = True
    """False if the length limit cut it off."""


def join_candidates(split: SplitText, found: Sequence[Candidate], *, target: str) -> Candidate:
    """The translations of a text's sentences, put where the sentences were."""
    return Candidate(
        split.join([one.text for one in found], target=target),
        score=sum(one.score for one in found) / len(found),
        log_probability=sum(one.log_probability for one in found),
        is_whole=all(one.is_whole for one in found),
    )


def explain_length(
    num_tokens: int,
    limit: Limit,
    *,
    sentence: int | None = None,
    file: str | None = None,
    line: int | None = None,
) -> DataError:
    """The error for a text of too many tokens: which text, the limit, and its setting."""
    key, others = limit.key, limit.unlimited
    more = (
        f", or train a model with a larger {key}, or with {' or '.join(others)}, without a limit"
        if key
        else ""
    )
    more_zh = f"，或以更大的 {key}、或没有长度限制的 {'、'.join(others)} 训练模型" if key else ""
    who = (
        ("has", "有")
        if sentence is None
        else (f"sentence {sentence} of the input has", f"输入的第 {sentence} 句有")
    )
    return DataError(
        f"{who[0]} {num_tokens:,} tokens, at most {limit.tokens:,} are translated"
        f"{f' (the model was built with {key}={limit.tokens})' if key else ''}; split it into "
        f"sentences{more}",
        f"{who[1]} {num_tokens:,} 个词元，最多翻译 {limit.tokens:,} 个"
        f"{f'（模型以 {key}={limit.tokens} 构建）' if key else ''}；请拆成句子{more_zh}",
        file=file,
        line=line,
    )
