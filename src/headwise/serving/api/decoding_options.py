"""From what a request wishes of the search to the settings of the search: the recipe's own, changed
where asked; another kind of search starts from that kind's defaults, as `headwise translate --set
kind=…` does.

Outputs are bounded whatever the recipe says: min(2 · source + 20, 512) tokens, or fewer if the
recipe says so. Requests with equal settings share batches, so the same wish must give an equal
value. Tested: every kind, n-best, contradictions.
"""

from collections.abc import Mapping, Sequence

from headwise.decoding.choices import (
    BeamSettings,
    DecodingSettings,
    GreedySettings,
    SamplingSettings,
)
from headwise.decoding.generation_settings import check_phrase_texts
from headwise.decoding.rules.length_limit import LengthLimit
from headwise.decoding.search.length_penalty import AverageLength
from headwise.serving.http.errors import Refusal
from headwise.serving.schemas.base import BeamWish, GreedyWish, SamplingWish
from headwise.serving.schemas.limits import MAX_BEST, MAX_PHRASE_BYTES, MAX_TOKENS

FACTOR, EXTRA = 2.0, 20


def choose_settings(
    recipe: DecodingSettings,
    wish: GreedyWish | BeamWish | SamplingWish | None,
    *,
    n_best: int,
    require: Sequence[str] = (),
) -> DecodingSettings:
    """The settings of one request; required phrases are searched for by beam unless another search
    was asked for.
    """
    if require and wish is None and not isinstance(recipe, BeamSettings):
        wish = BeamWish(kind="beam")
    chosen = _bounded(recipe)
    if wish is not None:
        same = wish.kind == recipe.kind
        match wish:
            case GreedyWish():
                chosen = chosen if same else GreedySettings(forbidden=recipe.forbidden)
            case BeamWish():
                beam: dict[str, object] = {
                    "size": wish.size,
                    "length_penalty": AverageLength(alpha=wish.length_penalty),
                }
                chosen = (chosen if same else BeamSettings(forbidden=recipe.forbidden)).model_copy(
                    update=_asked(wish, beam)
                )
            case SamplingWish():
                chosen = (
                    chosen if same else SamplingSettings(forbidden=recipe.forbidden)
                ).model_copy(update=_asked(wish, wish.model_dump()))
    length = _bounded_length(chosen.max_length)
    chosen = chosen.model_copy(
        update={"max_length": length, "min_length": min(chosen.min_length, MAX_TOKENS - 1)}
    )
    return chosen if n_best == 1 else _several(chosen, n_best, is_asked=wish is not None)


def add_phrases(
    settings: DecodingSettings, *, forbid: Sequence[str], require: Sequence[str]
) -> DecodingSettings:
    """The phrases of a request beside those of the recipe; what contradicts is refused."""
    if not forbid and not require:
        return settings
    _bound_phrases(*forbid, *require)
    forbidden = tuple(dict.fromkeys((*settings.forbidden, *forbid)))
    required = tuple(dict.fromkeys((*settings.required, *require)))
    changed = settings.model_copy(update={"forbidden": forbidden, "required": required})
    check_phrase_texts(changed)
    return changed


def _bound_phrases(*phrases: str) -> None:
    """A server is shared: one request may not ask for all the rules that a command line may."""
    num_bytes = sum(len(phrase.encode("utf-8", "surrogatepass")) for phrase in phrases)
    if num_bytes > MAX_PHRASE_BYTES:
        raise Refusal(
            422,
            "too_many_phrases",
            en=(
                f"the {len(phrases)} phrases of forbid and require have {num_bytes:,} bytes of "
                f"UTF-8 together, at most {MAX_PHRASE_BYTES} are watched for in a request; send "
                "fewer or shorter ones"
            ),
            zh=(
                f"forbid 与 require 的 {len(phrases)} 个短语共 {num_bytes:,} 字节（UTF-8），"
                f"一次请求最多 {MAX_PHRASE_BYTES} 字节；请减少或缩短"
            ),
        )


def _asked(wish: BeamWish | SamplingWish, values: Mapping[str, object]) -> dict[str, object]:
    """What the request itself says; the rest stays as the recipe has it."""
    return {
        name: value
        for name, value in values.items()
        if name in wish.model_fields_set and name != "kind"
    }


def _bounded_length(asked: int | LengthLimit) -> int | LengthLimit:
    if isinstance(asked, int):
        return min(asked, MAX_TOKENS)
    return LengthLimit(
        factor=min(asked.factor, FACTOR),
        extra=min(asked.extra, EXTRA),
        limit=min(asked.limit, MAX_TOKENS),
    )


def _bounded(recipe: DecodingSettings) -> DecodingSettings:
    """Forbidden words are the recipe's to keep; a prefix and the number of answers are the
    request's to choose.
    """
    update: dict[str, object] = {"prefix": ""}
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
            return BeamSettings(
                size=MAX_BEST if n_best > 5 else 5,
                num_best=n_best,
                max_length=settings.max_length,
                forbidden=settings.forbidden,
            )
    what = (
        "greedy search finds one translation"
        if isinstance(settings, GreedySettings)
        else "the beam is narrower"
    )
    raise Refusal(
        422,
        "too_few_candidates",
        en=(
            f"n_best is {n_best}, but {what}; ask for decoding {{kind: beam, size: "
            f"{max(5, n_best)}}}"
        ),
        zh=f"n_best 为 {n_best}，但候选不足；请用 decoding {{kind: beam, size: {max(5, n_best)}}}",
    )
