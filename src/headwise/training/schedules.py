"""Learning rate schedules: functions of the step (1 is the first update), without state.

Adam's first steps have poor estimates of the scale of the gradient, so every schedule can rise
linearly from a low rate over `warmup` steps. They differ in how they fall afterwards:

    inverse_sqrt   peak · sqrt(warmup / step)                            as in fairseq
    noam           factor · dim^-½ · min(step^-½, step · warmup^-1.5)    Vaswani et al. 2017
    cosine         final + (peak - final) · (1 + cos(π · share)) / 2     Loshchilov & Hutter 2017
    linear         peak + (final - peak) · share
    constant       peak

where `share` runs from 0 at the end of the warm-up to 1 at the last step. Tested against
hand-computed values.
"""

import math


def warm_up(step: int, *, peak: float, warmup: int, initial: float = 0.0) -> float:
    """A line from `initial` (at step 0) to `peak` (at step `warmup`), then `peak`."""
    return peak if step >= warmup else initial + (peak - initial) * step / warmup


def inverse_sqrt(step: int, *, peak: float, warmup: int, initial: float = 0.0) -> float:
    if step < warmup:
        return warm_up(step, peak=peak, warmup=warmup, initial=initial)
    return peak * math.sqrt(max(warmup, 1) / max(step, 1))


def noam(step: int, *, factor: float, dim: int, warmup: int) -> float:
    """The schedule of "Attention is all you need"; its maximum is factor / sqrt(dim · warmup)."""
    step, warmup = max(step, 1), max(warmup, 1)
    return float(factor * dim**-0.5 * min(step**-0.5, step * warmup**-1.5))


def cosine(
    step: int, *, peak: float, warmup: int, steps: int, initial: float = 0.0, final: float = 0.0
) -> float:
    if step < warmup:
        return warm_up(step, peak=peak, warmup=warmup, initial=initial)
    return (
        final
        + (peak - final)
        * (1 + math.cos(math.pi * share_done(step, warmup=warmup, steps=steps)))
        / 2
    )


def linear(
    step: int, *, peak: float, warmup: int, steps: int, initial: float = 0.0, final: float = 0.0
) -> float:
    if step < warmup:
        return warm_up(step, peak=peak, warmup=warmup, initial=initial)
    return peak + (final - peak) * share_done(step, warmup=warmup, steps=steps)


def share_done(step: int, *, warmup: int, steps: int) -> float:
    """The share of the steps after the warm-up that is done, from 0 to 1."""
    return min(1.0, max(0, step - warmup) / max(1, steps - warmup))
