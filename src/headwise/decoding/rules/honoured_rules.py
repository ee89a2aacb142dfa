"""Refuses rules that a generator does not follow, so that none is dropped silently.

A generator declares its rules in `Generator.honours`; none is assumed. Search over a stepper
follows all of them. A rule is asked for if a setting differs from its neutral value, which is the
default of `GenerationSettings`, or if the rules of a sentence hold it. `max_length` is no such
rule: it bounds the work, and every generator keeps it.
Tested: every rule with generators that follow all, some and none.
"""

from collections.abc import Sequence
from typing import Literal, get_args

from headwise.decoding.generation_settings import GenerationSettings
from headwise.decoding.rules.constraints import SentenceRules
from headwise.errors import UsageError

Rule = Literal[
    "forbidden", "required", "prefix", "min_length", "at_limit", "no_repeat_ngrams", "allow_unknown"
]
"""A rule is named like the setting that asks for it."""
ALL_RULES: frozenset[Rule] = frozenset(get_args(Rule))


def refuse_unsupported(
    settings: GenerationSettings,
    rules: SentenceRules | Sequence[SentenceRules] | None,
    *,
    honoured: frozenset[Rule],
) -> None:
    """Raise an error that names the rules asked for but not followed, and what works instead."""
    if honoured >= ALL_RULES:
        return
    dropped = [rule for rule in _asked_rules(settings, rules) if rule not in honoured]
    if not dropped:
        return
    kind = getattr(settings, "kind", type(settings).__name__)
    names = ", ".join(dropped)
    followed = ", ".join(rule for rule in get_args(Rule) if rule in honoured)
    raise UsageError(
        f"{kind} decoding does not follow the rule {names}; it follows "
        f"{followed or 'no rule but max_length'}; leave the rule out, or use kind=beam if the "
        "model generates token by token",
        f"{kind} 解码不支持规则 {names}；它支持 {followed or '的只有 max_length'}；"
        "请去掉该规则；若模型逐词元生成，也可使用 kind=beam",
    )


def _asked_rules(
    settings: GenerationSettings, rules: SentenceRules | Sequence[SentenceRules] | None
) -> list[Rule]:
    each = [] if rules is None else [rules] if isinstance(rules, SentenceRules) else list(rules)
    asked: set[Rule] = {
        name
        for name in ALL_RULES
        if getattr(settings, name) != GenerationSettings.model_fields[name].default
    }
    if any(one.prefix for one in each):
        asked.add("prefix")
    for one in each:
        if one.rules is not None and one.rules.forbidden:
            asked.add("forbidden")
        if one.rules is not None and one.rules.required:
            asked.add("required")
    return [rule for rule in get_args(Rule) if rule in asked]
