"""Learning rates as plain functions of the step (1 is the first update): no objects, nothing to
save or resume.

Adam's first steps are taken with poor estimates of the gradient's scale, so every schedule can
start low and rise in a straight line over `warmup` steps; they differ in how they come down again:

    inverse_sqrt   peak · sqrt(warmup / step)                                Vaswani et al. 2017, in fairseq's form
    noam           factor · dim^-½ · min(step^-½, step · warmup^-1.5)        the same curve, height given by the width
    cosine         final + (peak - final) · (1 + cos(π · share)) / 2         Loshchilov & Hutter 2017
    linear         peak + (final - peak) · share
    constant       peak

where `share` runs from 0 at the end of the warm-up to 1 at the last step. Tested against
hand-worked values.
"""

import math


def warm_up(step: int, *, peak: float, warmup: int, initial: float = 0.0) -> float:
    """The straight line from `initial` (at step 0) to `peak` (at step `warmup`), and `peak` from
    there on.
    """
    return peak if step >= warmup else initial + (peak - initial) * step / warmup


def inverse_sqrt(step: int, *, peak: float, warmup: int, initial: float = 0.0) -> float:
    if step < warmup:
        return warm_up(step, peak=peak, warmup=warmup, initial=initial)
    return peak * math.sqrt(max(warmup, 1) / max(step, 1))


def noam(step: int, *, factor: float, dim: int, warmup: int) -> float:
    """The rate of "Attention is all you need"; its highest value is factor / sqrt(dim · warmup)."""
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
    """How much of the way from the end of the warm-up to the last step is behind us, from 0 to 1."""
    return min(1.0, max(0, step - warmup) / max(1, steps - warmup))
