"""Scores a pre-trained model on each line of a text, for comparisons of runs.

Masked language models: in each line 15 % of the tokens, at least one, are replaced by the mask. The
choice depends on the number of the line alone, so that every model and every seed has to predict
the same tokens, whatever its batches and its own masking are.

    loss of a line = - Σ log P(masked token | the rest of the line)

ELMo: every word is predicted from both sides, as in training.

    loss of a line = - Σ log P(next word | words so far) - Σ log P(word before | words that follow)

Tested: other batch sizes mask the same tokens; the sum over lines of ELMo's losses is that of its
validation.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from headwise.data.labels.labelled_rows import LabelledTokens, rows_in_order
from headwise.data.splits import Part
from headwise.data.text.choices import read_texts
from headwise.data.text.masking import FIRST_WORD, MASK
from headwise.data.text.text_batches import pad_lines
from headwise.models.elmo import BidirectionalLanguageModel
from headwise.models.masked_language_model import MaskedLanguageModel
from headwise.randomness import numpy_generator
from headwise.tasks.item_scores import save_item_scores
from headwise.tasks.pretraining.elmo_objective import (
    ElmoData,
    ElmoLoss,
    number_words,
    spell_words,
)
from headwise.tasks.pretraining.elmo_recipe import ElmoRecipe
from headwise.tasks.pretraining.masked_objective import MaskedData
from headwise.tasks.pretraining.masked_recipe import MaskedRecipe
from headwise.tasks.task import rows_of_batch
from headwise.text.tokenizer import BOS
from headwise.training.prefetching import map_tensors

SHARE = 0.15
"""Of the tokens of a line that are masked."""
CHUNK = 512
"""Tokens whose logits are made at a time."""


def mask_line(tokens: Sequence[int], number: int) -> tuple[list[int], list[int]]:
    """A line with masked tokens, and the token to guess at each position (0: none)."""
    ids = np.array(tokens, dtype=np.int64)
    known = np.flatnonzero(ids >= FIRST_WORD)
    if len(known) == 0:
        return list(tokens), [0] * len(tokens)
    generator = numpy_generator("compared lines", number)
    count = max(1, round(SHARE * len(known)))
    chosen = generator.choice(known, size=count, replace=False)
    shown, targets = ids.copy(), np.zeros_like(ids)
    shown[chosen], targets[chosen] = MASK, ids[chosen]
    return shown.tolist(), targets.tolist()


def save_masked_lines(
    recipe: MaskedRecipe,
    prepared: MaskedData,
    model: MaskedLanguageModel,
    part: Part,
    directory: Path,
) -> None:
    """Loss, correct guesses and masked tokens of each line of a part."""
    in_words = recipe.text.kind == "words"
    lines = prepared.tokenizer.encode_batch(list(read_texts(recipe.data, part, in_words=in_words)))
    store, owners = _cut(recipe, lines)
    sums = np.zeros((3, len(lines)))
    rows, row_tokens = (
        rows_of_batch(recipe.training.batch_tokens, recipe.data.row_tokens),
        recipe.data.row_tokens,
    )
    with torch.inference_mode():
        for batch, packed in rows_in_order(store, rows=rows, row_tokens=row_tokens):
            targets = batch.targets.flatten()
            places = targets.nonzero()[:, 0]
            if len(places) == 0:
                continue
            losses, correct = _guess(
                model, batch.tokens, batch.segment, batch.position, places, targets
            )
            # A position's segment is the number of its piece in the row, counted from 1.
            row = (places // row_tokens).tolist()
            segment = batch.segment.flatten()[places].tolist()
            own = [owners[packed[one][other - 1]] for one, other in zip(row, segment, strict=True)]
            for column, values in enumerate((losses, correct, np.ones(len(own)))):
                np.add.at(sums[column], own, values)
    columns = dict(zip(("loss", "correct", "tokens"), sums, strict=True))
    save_item_scores(directory, part, columns)


def _cut(recipe: MaskedRecipe, lines: Sequence[Sequence[int]]) -> tuple[LabelledTokens, list[int]]:
    """Masked lines in pieces that fit into a row, and the line that each piece belongs to."""
    size = recipe.data.row_tokens // (2 if recipe.second_task == "next_sentence" else 1) - 1
    tokens: list[int] = []
    targets: list[int] = []
    ends, owners = [0], []
    for number, line in enumerate(lines):
        shown, wanted = mask_line(line, number)
        for first in range(0, len(line), size):
            tokens += [BOS, *shown[first : first + size]]
            targets += [0, *wanted[first : first + size]]
            ends.append(len(tokens))
            owners.append(number)
    store = LabelledTokens(*(np.array(one, dtype=np.int64) for one in (tokens, targets, ends)))
    return store, owners


def _guess(
    model: MaskedLanguageModel,
    tokens: Tensor,
    segment: Tensor,
    position: Tensor,
    places: Tensor,
    targets: Tensor,
) -> tuple[np.ndarray, np.ndarray]:
    """The loss of each masked token, and whether it was guessed."""
    device = model.head.bias.device
    hidden = model(
        tokens.to(device),
        segment=segment.to(device),
        position=position.to(device),
        places=places.to(device),
    ).hidden
    return _losses(hidden, model.word_vectors, model.head.bias, targets[places].to(device))


def _losses(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor
) -> tuple[np.ndarray, np.ndarray]:
    """Cross-entropy of each token, some at a time, and whether the best guess is right."""
    losses, correct = [], []
    for first in range(0, len(targets), CHUNK):
        logits = F.linear(hidden[first : first + CHUNK], weight, bias).float()
        wanted = targets[first : first + CHUNK]
        losses.append(F.cross_entropy(logits, wanted, reduction="none"))
        correct.append(logits.argmax(-1) == wanted)
    return (
        torch.cat(losses).double().cpu().numpy(),
        torch.cat(correct).double().cpu().numpy(),
    )


def save_elmo_lines(
    recipe: ElmoRecipe,
    prepared: ElmoData,
    model: BidirectionalLanguageModel,
    part: Part,
    directory: Path,
) -> None:
    """Loss and predicted words of each line of a part, both directions together."""
    every = number_words(recipe, prepared.tokenizer, (part,))
    task = ElmoLoss(model, spell_words(every), 0.0)
    lines = every.encode_batch(list(read_texts(recipe.data, part, in_words=True)))
    longest = recipe.data.row_tokens - 2
    pieces = [
        (number, line[first : first + longest])
        for number, line in enumerate(lines)
        for first in range(0, len(line), longest)
    ]
    pieces.sort(key=lambda piece: len(piece[1]))
    sums = np.zeros((2, len(lines)))
    size = max(1, recipe.training.batch_tokens // recipe.data.row_tokens)
    device = model.output.weight.device
    with torch.inference_mode():
        for first in range(0, len(pieces), size):
            here = pieces[first : first + size]
            batch = pad_lines([piece for _, piece in here], first=BOS)
            owners = np.array([number for number, _ in here])
            for hidden, targets, row in task.predictions(
                map_tensors(batch, lambda tensor: tensor.to(device))
            ):
                losses, _ = _losses(hidden, model.output.weight, model.output.bias, targets)
                own = owners[row.cpu().numpy()]
                np.add.at(sums[0], own, losses)
                np.add.at(sums[1], own, 1)
    save_item_scores(directory, part, dict(zip(("loss", "tokens"), sums, strict=True)))
