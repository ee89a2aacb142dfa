"""Turns the decoding options of a request into the settings of the search.

The recipe's settings are used, changed where the request asks for it. If the request names another
kind of search, the defaults of that kind are used, as with `headwise translate --set kind=…`. The
output length is at most min(2 · source + 20, 512) tokens, or less if the recipe says so. Requests
with equal settings share batches, so equal options must give equal settings. Tested: every kind,
n-best, contradictions.
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
from headwise.serving.schemas.limits import MAX_BEST, MAX_PHRASE_BYTES, MAX_TOKENS
from headwise.serving.schemas.translation import BeamOptions, GreedyOptions, SamplingOptions

FACTOR, EXTRA = 2.0, 20


def choose_settings(
    recipe: DecodingSettings,
    options: GreedyOptions | BeamOptions | SamplingOptions | None,
    *,
    n_best: int,
    require: Sequence[str] = (),
) -> DecodingSettings:
    """The settings of one request. Required phrases need beam search, unless the request names
    another.
    """
    if require and options is None and not isinstance(recipe, BeamSettings):
        options = BeamOptions(kind="beam")
    chosen = _limit(recipe)
    if options is not None:
        same = options.kind == recipe.kind
        match options:
            case GreedyOptions():
                chosen = chosen if same else GreedySettings(forbidden=recipe.forbidden)
            case BeamOptions():
                beam: dict[str, object] = {
                    "size": options.size,
                    "length_penalty": AverageLength(alpha=options.length_penalty),
                }
                chosen = (chosen if same else BeamSettings(forbidden=recipe.forbidden)).model_copy(
                    update=_given(options, beam)
                )
            case SamplingOptions():
                chosen = (
                    chosen if same else SamplingSettings(forbidden=recipe.forbidden)
                ).model_copy(update=_given(options, options.model_dump()))
    length = _limit_length(chosen.max_length)
    chosen = chosen.model_copy(
        update={"max_length": length, "min_length": min(chosen.min_length, MAX_TOKENS - 1)}
    )
    return chosen if n_best == 1 else _with_n_best(chosen, n_best, is_asked=options is not None)


def add_phrases(
    settings: DecodingSettings, *, forbid: Sequence[str], require: Sequence[str]
) -> DecodingSettings:
    """Add the phrases of the request to those of the recipe; contradictions are refused."""
    if not forbid and not require:
        return settings
    _limit_phrases(*forbid, *require)
    forbidden = tuple(dict.fromkeys((*settings.forbidden, *forbid)))
    required = tuple(dict.fromkeys((*settings.required, *require)))
    changed = settings.model_copy(update={"forbidden": forbidden, "required": required})
    check_phrase_texts(changed)
    return changed


def _limit_phrases(*phrases: str) -> None:
    """Limit the phrases of a request more than the command line does: a server is shared."""
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


def _given(
    options: BeamOptions | SamplingOptions, values: Mapping[str, object]
) -> dict[str, object]:
    """The options that the request itself sets; the others stay as in the recipe."""
    return {
        name: value
        for name, value in values.items()
        if name in options.model_fields_set and name != "kind"
    }


def _limit_length(asked: int | LengthLimit) -> int | LengthLimit:
    if isinstance(asked, int):
        return min(asked, MAX_TOKENS)
    return LengthLimit(
        factor=min(asked.factor, FACTOR),
        extra=min(asked.extra, EXTRA),
        limit=min(asked.limit, MAX_TOKENS),
    )


def _limit(recipe: DecodingSettings) -> DecodingSettings:
    """The recipe keeps its forbidden words; the request sets prefix and number of results."""
    update: dict[str, object] = {"prefix": ""}
    if isinstance(recipe, BeamSettings):
        update["num_best"] = 1
    if isinstance(recipe, SamplingSettings):
        update["num_samples"] = 1
    return recipe.model_copy(update=update)


def _with_n_best(settings: DecodingSettings, n_best: int, *, is_asked: bool) -> DecodingSettings:
    match settings:
        case SamplingSettings():
            return settings.model_copy(update={"num_samples": n_best})
        case BeamSettings(size=size) if size >= n_best or not is_asked:
            return settings.model_copy(update={"num_best": n_best, "size": max(size, n_best)})
        case GreedySettings() if not is_asked:
            # Greedy search finds one candidate, so several need beam search.
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
