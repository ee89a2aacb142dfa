"""Limits how often a caller (an API key or a client address) may ask, by a token bucket for each.

    tokens ← min(rate, tokens + rate · minutes since the last request)

A request takes one token. Without a token it is refused with 429 and the time to wait. Tested: by
hand-worked times.
"""

import math
import time
from collections import OrderedDict
from collections.abc import Callable

from headwise.serving.http.errors import Refusal

MAX_CALLERS = 10_000


class RateLimit:
    """Buckets by caller. With too many callers the one unseen for longest is dropped."""

    def __init__(self, rate: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        """`rate`: requests per minute; 0: no limit."""
        self._rate, self._clock = rate, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str) -> None:
        """Count one request of a caller, or refuse it and say how long to wait."""
        if not self._rate:
            return
        tokens = self._tokens_of(caller)
        self._buckets[caller] = (tokens - 1 if tokens >= 1 else tokens, self._clock())
        if len(self._buckets) > MAX_CALLERS:
            self._buckets.popitem(last=False)
        if tokens < 1:
            raise self._too_fast(tokens)

    def give_back(self, caller: str) -> None:
        """Undo one `take`: the request was another caller's."""
        if caller in self._buckets:
            self._buckets[caller] = (
                min(float(self._rate), self._tokens_of(caller) + 1),
                self._clock(),
            )

    def _tokens_of(self, caller: str) -> float:
        """The tokens a caller has now. The caller becomes the last to be dropped."""
        now = self._clock()
        if caller not in self._buckets:
            return float(self._rate)
        tokens, before = self._buckets[caller]
        self._buckets.move_to_end(caller)
        return min(float(self._rate), tokens + (now - before) * self._rate / 60)

    def _too_fast(self, tokens: float) -> Refusal:
        wait = max(1, math.ceil((1 - tokens) * 60 / self._rate))
        return Refusal(
            429,
            "too_fast",
            en=(
                f"more than {self._rate} requests a minute; wait {wait} s, or send several texts "
                "in one request"
            ),
            zh=f"每分钟超过 {self._rate} 个请求；请等待 {wait} 秒，或在一个请求中发送多个文本",
            retry_after=wait,
        )
