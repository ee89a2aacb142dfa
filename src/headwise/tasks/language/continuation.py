"""Generates text with a language model: continues the beginning of a text, token by token.

A model trained on separate sentences stops at the end of one. A model trained on a stream of text
goes on with the next line. The model keeps what it has computed for earlier tokens
(models/text_stepper.py), from line to line if it is a recurrent model or has a memory. Another
Transformer reads at most as many tokens as in training; when this window is full, the last half of
it is read again and generation goes on (neural_token_model.py).

Tested against: greedy generation equals asking for the best next token again and again, across
line ends and full windows.
"""

from dataclasses import dataclass
from typing import Any

from headwise.decoding.choices import DecodingSettings, decode
from headwise.errors import UsageError
from headwise.tasks.arguments import require_text
from headwise.tasks.language.language_model import LanguageModel
from headwise.tasks.language.neural_token_model import NeuralTokenModel
from headwise.text.tokenizer import EOS

MAX_LENGTH = 1 << 20


@dataclass(frozen=True)
class Continuation:
    """A beginning with what was written after it, and the natural log-probability of that."""

    beginning: str
    text: str
    num_tokens: int
    log_probability: float

    def as_dict(self) -> dict[str, Any]:
        return dict(self.__dict__)


def write_on(
    model: LanguageModel,
    beginning: str,
    settings: DecodingSettings,
    *,
    length: int = 100,
    number: int = 0,
) -> Continuation:
    """At most `length` tokens after the beginning; `number` tells several drawings of one beginning
    apart.
    """
    asked = model.model
    if not isinstance(asked, NeuralTokenModel):
        raise UsageError(
            "n-grams keep nothing to write on with; use `headwise predict --length 3`, or train a "
            "neural model such as ptb-lstm",
            "n 元语法没有可用于续写的记忆；请用 `headwise predict --length 3`，或训练神经模型，"
            "例如 ptb-lstm",
        )
    if not 1 <= length <= MAX_LENGTH:
        raise UsageError(
            f"{length} tokens were asked for; between 1 and {MAX_LENGTH:,} are possible",
            f"要求 {length} 个词元；可为 1 到 {MAX_LENGTH:,}",
        )
    stepper = asked.make_stepper()
    read = [asked.first, *model.tokenizer.encode(require_text(beginning, "beginning").strip())]
    written: list[int] = []
    total, piece = 0.0, 0
    while len(written) < length:
        head, room = [*read, *written], length - len(written)
        if asked.context is not None and not asked.carries:
            begin = asked.window_begin(len(head))
            room = min(
                room, begin + asked.context - len(head) + 1
            )  # the token after a full window still belongs to it
            head = head[begin:]
        limited = settings.model_copy(update={"max_length": room})
        (result,) = decode(stepper, [head], limited, sentence_numbers=[number * MAX_LENGTH + piece])
        best = result.hypotheses[0]
        written += [*best.tokens, *([EOS] if best.finished else [])]
        total, piece = total + best.log_probability, piece + 1
        if best.finished and asked.first != EOS:
            break
    return Continuation(beginning, _text(model, [*read[1:], *written]), len(written), total)


def _text(model: LanguageModel, tokens: list[int]) -> str:
    """Ends of sentences are ends of lines."""
    lines: list[list[int]] = [[]]
    for token in tokens:
        lines.append([]) if token == EOS else lines[-1].append(token)
    return "\n".join(model.tokenizer.decode(line) for line in lines).rstrip("\n")
