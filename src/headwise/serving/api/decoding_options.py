"""Turns the decoding options of a request into the settings of the search.

The recipe's settings are used, changed where the request asks for it. If the request names another
kind of search, the defaults of that kind are used, as with `headwise translate --set kind=…`. The
output length is at most min(2 · source + 20, 512) tokens, or less if the recipe says so. Requests
with equal settings share batches, so equal options must give equal settings. Tested: every kind,
n-best, contradictions.
"""

from collections.abc import Sequence
from typing import cast

from headwise.decoding.choices import (
    BeamSettings,
    DecodingSettings,
    decoding_kinds,
    kinds_with_several_results,
)
from headwise.decoding.generation_settings import GenerationSettings, check_phrase_texts
from headwise.decoding.rules.length_limit import LengthLimit
from headwise.serving.http.errors import Refusal
from headwise.serving.schemas.limits import MAX_BEST, MAX_PHRASE_BYTES, MAX_TOKENS
from headwise.serving.schemas.translation import DecodingOptions

FACTOR, EXTRA = 2.0, 20


def choose_settings(
    recipe: DecodingSettings,
    options: DecodingOptions | None,
    *,
    n_best: int,
    require: Sequence[str] = (),
) -> DecodingSettings:
    """The settings of one request. Required phrases need beam search, unless the request names
    another.
    """
    kind: type[GenerationSettings] | None = None
    if options is not None:
        kind = next(one for one in decoding_kinds() if _kind_of(one) == options.kind)
    elif require and recipe.over_steppers and not recipe.plans:
        kind = BeamSettings
    chosen: GenerationSettings = recipe.model_copy(update={"prefix": ""})
    if kind is not None and kind is not type(recipe):
        chosen = kind(forbidden=recipe.forbidden)
    if options is not None:
        given = options.model_dump(exclude_unset=True, exclude={"kind"})
        chosen = chosen.with_request_options(given)
    update = {
        "max_length": _limit_length(chosen.max_length),
        "min_length": min(chosen.min_length, MAX_TOKENS - 1),
    }
    chosen = chosen.model_copy(update=update)
    return cast("DecodingSettings", _with_n_best(chosen, n_best, is_asked=kind is not None))


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


def _kind_of(settings: type[GenerationSettings]) -> str:
    kind: str = settings.model_fields["kind"].default
    return kind


def _limit_length(asked: int | LengthLimit) -> int | LengthLimit:
    if isinstance(asked, int):
        return min(asked, MAX_TOKENS)
    return LengthLimit(
        factor=min(asked.factor, FACTOR),
        extra=min(asked.extra, EXTRA),
        limit=min(asked.limit, MAX_TOKENS),
    )


def _with_n_best(
    settings: GenerationSettings, n_best: int, *, is_asked: bool
) -> GenerationSettings:
    found = settings.with_num_results(n_best, may_widen=not is_asked)
    if found is not None:
        return found
    if settings.over_steppers and not is_asked:
        # A search with one candidate, such as greedy search, is exchanged for beam search.
        return BeamSettings(
            size=MAX_BEST if n_best > 5 else 5,
            num_best=n_best,
            max_length=settings.max_length,
            forbidden=settings.forbidden,
        )
    kind = _kind_of(type(settings))
    is_narrow = isinstance(settings, BeamSettings)
    what = "the beam is narrower" if is_narrow else f"{kind} search finds one translation"
    if not is_narrow and settings.num_hypotheses > 1:
        what = f"{kind} search has {settings.num_hypotheses} candidates"
    kinds = kinds_with_several_results(settings)
    if settings.over_steppers:
        way = f"decoding {{kind: {kinds[0]}, size: {max(5, n_best)}}}"
    elif kinds:
        way = f"decoding {{kind: {' or '.join(kinds)}}} with at least {n_best} candidates"
    else:
        way = "n_best 1"
    raise Refusal(
        422,
        "too_few_candidates",
        en=f"n_best is {n_best}, but {what}; ask for {way}",
        zh=f"n_best 为 {n_best}，但候选不足；请用 {way}",
    )
