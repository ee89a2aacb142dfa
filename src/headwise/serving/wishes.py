"""From what a request wishes of the search to the settings of the search: the recipe's own, changed where asked.

Outputs are bounded whatever the recipe says: min(2 · source + 20, 512) tokens. Requests with equal settings share batches, so
the same wish must give an equal value. Tested: every kind, n-best, contradictions.
"""

from headwise.decoding.choices import BeamSettings, DecodingSettings, GreedySettings, SamplingSettings
from headwise.decoding.length import AverageLength, LengthLimit
from headwise.serving.faults import Refusal
from headwise.serving.limits import MAX_BEST
from headwise.serving.schemas import BeamWish, GreedyWish, SamplingWish

LIMIT = LengthLimit(factor=2.0, extra=20, limit=512)


def choose_settings(
    recipe: DecodingSettings, wish: GreedyWish | BeamWish | SamplingWish | None, *, n_best: int
) -> DecodingSettings:
    """The settings of one request."""
    chosen: DecodingSettings
    match wish:
        case None:
            chosen = _bounded(recipe)
        case GreedyWish():
            chosen = GreedySettings()
        case BeamWish(size=size, length_penalty=alpha):
            chosen = BeamSettings(size=size, length_penalty=AverageLength(alpha=alpha))
        case SamplingWish():
            chosen = SamplingSettings(temperature=wish.temperature, top_k=wish.top_k, top_p=wish.top_p, seed=wish.seed)
    chosen = chosen.model_copy(update={"max_length": LIMIT, "min_length": 0})
    return chosen if n_best == 1 else _several(chosen, n_best, is_asked=wish is not None)


def _bounded(recipe: DecodingSettings) -> DecodingSettings:
    """A recipe may hold phrases and counts that are not a request's."""
    update: dict[str, object] = {"prefix": "", "required": (), "forbidden": ()}
    if isinstance(recipe, BeamSettings):
        update["num_best"] = 1
    if isinstance(recipe, SamplingSettings):
        update["num_samples"] = 1
    return recipe.model_copy(update=update)


def _several(settings: DecodingSettings, n_best: int, *, is_asked: bool) -> DecodingSettings:
    match settings:
        case SamplingSettings():
            return settings.model_copy(update={"num_samples": n_best})
        case BeamSettings(size=size) if size >= n_best or not is_asked:
            return settings.model_copy(update={"num_best": n_best, "size": max(size, n_best)})
        case GreedySettings() if not is_asked:
            # Greedy search has one candidate; a beam is what was asked for.
            return BeamSettings(size=MAX_BEST if n_best > 5 else 5, num_best=n_best, max_length=settings.max_length)
    what = "greedy search finds one translation" if isinstance(settings, GreedySettings) else "the beam is narrower"
    raise Refusal(
        422,
        "too_few_candidates",
        en=f"n_best is {n_best}, but {what}; ask for decoding {{kind: beam, size: {max(5, n_best)}}}",
        zh=f"n_best 为 {n_best}，但候选不足；请用 decoding {{kind: beam, size: {max(5, n_best)}}}",
    )
