"""How a translator goes on after a wrong beginning, for one sentence: exposure bias to be seen.

    right    y_1 … y_n  → greedy search writes the rest    y: the reference or, without one, what
    wrong    w_1 … w_n  → greedy search writes the rest       the model writes by itself

Both beginnings are forced and have as many tokens. If both continuations end with the same tokens,
the model has found its way back: that is the common tail. With a reference the decoder is also
compared, position by position, along the reference and along the model's own translation
(`tasks/translation/forced_states.py`). `headwise exposure` measures the same over a test set.

Tested against: that command's parts; tails by hand; forced beginnings that are the model's own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch

from headwise.decoding.choices import DecodingSettings
from headwise.decoding.generator import Watcher
from headwise.decoding.rules.constraints import check_sentence_rules
from headwise.decoding.rules.length_limit import limit_for
from headwise.decoding.rules.phrases import encode_phrases
from headwise.errors import UsageError
from headwise.explorer.data.next_token_choices import (
    Decision,
    TokenChoice,
    describe_steps,
    name_token,
)
from headwise.explorer.data.translation_trace import check_prefix
from headwise.models.limits import target_limits
from headwise.tasks.translation.forced_states import (
    DecoderAgreement,
    measure_agreement,
    states_along,
)
from headwise.tasks.translation.translator import Translator
from headwise.text.phrase_matching import on_one_line
from headwise.text.tokenizer import NUM_SPECIAL

Tokens = tuple[int, ...]


@dataclass(frozen=True)
class ForcedTranslation:
    """A translation whose first tokens were forced."""

    tokens: Tokens
    text: str
    num_forced: int
    finished: bool
    steps: tuple[Decision, ...]
    """One for each token, and for the end if it was written."""


@dataclass(frozen=True)
class WrongBeginning:
    """Both continuations of one sentence."""

    own: str
    """What the model writes by itself."""
    likely: tuple[TokenChoice, ...]
    """First tokens that the model finds probable, without the right one."""
    right: ForcedTranslation
    wrong: ForcedTranslation
    num_same: int
    """Tokens of the common tail, the end included."""
    agreement: DecoderAgreement | None
    """Along the reference and along the model's own translation, if there is a reference."""
    read: tuple[tuple[str, str], ...]
    """At each position of the agreement: the next token of the reference, and of the own one."""


def continue_both(
    translator: Translator,
    text: str,
    settings: DecodingSettings,
    *,
    wrong: Sequence[int] = (),
    reference: str = "",
    num_likely: int = 8,
    before_step: Callable[[], None] | None = None,
) -> WrongBeginning:
    """Force both beginnings; without a wrong one, the likeliest first token that is not right."""
    source = translator.encode(text)
    if not source:
        raise UsageError("the sentence is empty; give some words", "句子为空；请给出一些词")
    writer = _Writer(translator, source, settings, before_step)
    known = tuple(translator.tokenizers.target.encode(reference)) if reference.strip() else ()
    _check_length(translator, known)
    own = writer.write(())
    right = known or own.tokens
    likely = _likely(translator, source, right[:1], num_likely)
    beginning = tuple(wrong) or tuple(one.token for one in likely[:1])
    _check_wrong(translator, beginning, right)
    after_right = writer.write(right[: len(beginning)])
    after_wrong = writer.write(beginning)
    agreement: DecoderAgreement | None = None
    read: tuple[tuple[str, str], ...] = ()
    if known:
        shared = min(len(known), len(own.tokens)) + 1
        agreement = measure_agreement(
            translator.model, [source], [known], [own.tokens], num_positions=shared
        )
        read = tuple(zip(_next(translator, known), _next(translator, own.tokens), strict=False))
    num_same = same_tail(after_right, after_wrong)
    return WrongBeginning(own.text, likely, after_right, after_wrong, num_same, agreement, read)


def _next(translator: Translator, tokens: Tokens) -> tuple[str, ...]:
    tokenizer = translator.tokenizers.target
    return (*(name_token(tokenizer, token) for token in tokens), "</s>")


def same_tail(one: ForcedTranslation, other: ForcedTranslation) -> int:
    """How many tokens both end with, forced ones excepted; the end alone is no agreement."""
    if not (one.finished and other.finished):
        return 0
    first, second = (list(some.tokens[some.num_forced :]) for some in (one, other))
    count = 0
    while count < min(len(first), len(second)) and first[-1 - count] == second[-1 - count]:
        count += 1
    return count + 1 if count else 0


class _Writer:
    """Greedy search for one sentence, after a forced beginning."""

    def __init__(
        self,
        translator: Translator,
        source: list[int],
        settings: DecodingSettings,
        before_step: Callable[[], None] | None,
    ) -> None:
        self.translator, self.source = translator, source
        self.settings = translator.within_positions(settings)
        self.before_step = before_step

    def write(self, beginning: Tokens) -> ForcedTranslation:
        translator, target = self.translator, self.translator.tokenizers.target
        rules = replace(encode_phrases(self.settings, target), prefix=beginning)
        check_sentence_rules(rules, limit=limit_for(self.settings.max_length, len(self.source)))
        (result,) = translator.generator(self.settings).generate(
            [self.source], self.settings, rules, watcher=Watcher(self.before_step)
        )
        best = result.best
        steps = describe_steps(
            translator,
            self.source,
            best.tokens,
            num_best=1,
            finished=best.finished,
            before_step=self.before_step,
        )
        text = on_one_line(target.decode(best.tokens))
        return ForcedTranslation(tuple(best.tokens), text, len(beginning), best.finished, steps)


@torch.inference_mode()
def _likely(
    translator: Translator, source: list[int], right: Tokens, count: int
) -> tuple[TokenChoice, ...]:
    """The most probable first tokens but the right one."""
    model = translator.model
    scores = model.logits(states_along(model, [source], [()])[:, -1]).float().log_softmax(-1)[0]
    scores[:NUM_SPECIAL] = -torch.inf
    scores[list(right)] = -torch.inf
    best = scores.topk(min(count, len(scores) - NUM_SPECIAL - len(right)))
    return tuple(
        TokenChoice(token, name_token(translator.tokenizers.target, token), value)
        for token, value in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    )


def _check_wrong(translator: Translator, beginning: Tokens, right: Tokens) -> None:
    check_prefix(translator, beginning)
    if beginning == right[: len(beginning)]:
        raise UsageError(
            "this is how the right translation begins; give another beginning",
            "这正是正确译文的开头；请给出别的开头",
        )


def _check_length(translator: Translator, reference: Tokens) -> None:
    longest = min((one.tokens for one in target_limits(translator.recipe.model)), default=None)
    if longest is not None and len(reference) >= longest:
        raise UsageError(
            f"the reference has {len(reference):,} tokens, and the model reads fewer than "
            f"{longest:,}; give a shorter one",
            f"参考译文有 {len(reference):,} 个词元，而模型读的少于 {longest:,} 个；请给出更短的",
        )
