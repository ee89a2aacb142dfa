"""Refuses a memory of stored tokens that does not fit, before anything is read (`model.memory.kind:
nearest`).

Every row of a batch stores its own keys and values, 8 bytes for each number of a layer's width:

    bytes = rows · (size + length + window) · dim · 8        twice that with training.ema

`headwise plan` and `--check` count them with the weights. Tested with a small machine.
"""

from headwise.errors import UsageError
from headwise.planning.available_memory import available_memory
from headwise.planning.hardware import GIB
from headwise.tasks.language.objective import ring_shape
from headwise.tasks.language.recipe import LanguageRecipe, StreamReading
from headwise.training.precision import choose_device


def check_stored_pairs(recipe: LanguageRecipe) -> None:
    """Raise if the stored pairs alone take more memory than there is."""
    training, reading = recipe.training, recipe.reading
    if not isinstance(reading, StreamReading):
        return
    num_rows = max(1, round(training.batch_tokens / reading.length))
    shape = ring_shape(recipe, num_rows)
    room = available_memory(choose_device(training.device))
    if shape is None or room is None:
        return
    needed = shape.nbytes * (1 if training.ema is None else 2)
    if needed <= room:
        return
    raise UsageError(
        f"model.memory would store {shape.room:,} tokens of each of {num_rows:,} rows, "
        f"{needed / GIB:.1f} GiB, and {room / GIB:.1f} GiB are free; use a smaller "
        "model.memory.size, or fewer rows (training.batch_tokens)",
        f"model.memory 要为 {num_rows:,} 行各存 {shape.room:,} 个词元，共 {needed / GIB:.1f} GiB，"
        f"而可用 {room / GIB:.1f} GiB；请减小 model.memory.size，或减少行数"
        "（training.batch_tokens）",
    )
