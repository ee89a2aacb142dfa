"""Copy, reverse, sort: tasks a Transformer must learn to perfection, with fresh examples at every
step.

There is no training set to memorise: what is right on new sentences was understood. The loop is
plain torch on purpose, so that a failure here is a failure of the model and not of the training
package.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F

from headwise.decoding.choices import decode
from headwise.decoding.search.greedy import GreedySettings
from headwise.models.choices import EncoderDecoderSettings, build_model
from headwise.models.encoder_decoder import EncoderDecoder
from headwise.models.transformer_stepper import TransformerStepper
from headwise.randomness import torch_generator
from headwise.settings import check_settings
from tests.reference.sentences import BOS, EOS, PAD, packed_row, pad, padded_batch

Task = Callable[[list[int]], list[int]]
TASKS: dict[str, Task] = {"copy": list, "reverse": lambda words: words[::-1], "sort": sorted}
NUM_SPECIAL, NUM_SYMBOLS = 4, 9


def draw(count: int, max_length: int, generator: torch.Generator) -> list[list[int]]:
    lengths = torch.randint(1, max_length + 1, (count,), generator=generator).tolist()
    high = NUM_SPECIAL + NUM_SYMBOLS
    return [
        torch.randint(NUM_SPECIAL, high, (length,), generator=generator).tolist()
        for length in lengths
    ]


def make_model(key: tuple[int | str, ...], **changes) -> EncoderDecoder:
    stack = {"layers": 1, "heads": 4}
    data = {
        "dim": 48,
        "encoder": stack,
        "decoder": stack,
        "feed_forward": {"kind": "relu", "hidden": 96},
        "dropout": {"residual": 0.0, "embedding": 0.0},
        **changes,
    }
    size = NUM_SPECIAL + NUM_SYMBOLS
    settings = check_settings(EncoderDecoderSettings, data)
    return build_model(
        settings, source_size=size, target_size=size, generator=torch_generator(*key)
    )


def train(
    model: EncoderDecoder,
    task: Task,
    *,
    key: tuple[int | str, ...],
    steps: int,
    max_length: int,
    packed: bool = False,
) -> float:
    """Adam with a short warm-up and a straight way down; the mean loss of the last steps."""
    generator = torch_generator(*key, "data")
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3, betas=(0.9, 0.98))
    model.train()
    recent: list[float] = []
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = 4e-3 * min((step + 1) / 50, 1 - step / steps)
        # A packed row is one wide table of attention; fewer sentences make it as cheap as the
        # padded batch.
        sources = draw(24 if packed else 64, max_length, generator)
        pairs = [([*words, EOS], [BOS, *task(words)]) for words in sources]
        answers = [[*task(words), EOS] for words in sources]
        batch = packed_row(pairs) if packed else padded_batch(pairs)
        expected = (
            torch.tensor([[token for answer in answers for token in answer]])
            if packed
            else pad(answers)
        )
        loss = F.cross_entropy(
            batch.logits(model).flatten(0, 1), expected.flatten(), ignore_index=PAD
        )
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        recent = [*recent[-19:], loss.item()]
    return sum(recent) / len(recent)


def accuracy(
    model: EncoderDecoder, task: Task, *, key: tuple[int | str, ...], max_length: int
) -> float:
    """Share of new sentences answered without a single fault, writing freely."""
    sources = draw(300, max_length, torch_generator(*key, "new sentences"))
    found = decode(TransformerStepper(model), sources, GreedySettings(max_length=2 * max_length))
    right = [
        list(result.best.tokens) == task(words)
        for words, result in zip(sources, found, strict=True)
    ]
    return sum(right) / len(right)
