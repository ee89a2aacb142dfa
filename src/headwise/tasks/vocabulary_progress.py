"""How far the learning of a vocabulary is, for whoever watches: the percentage and the time left, once it takes longer than a moment."""

import time
from collections.abc import Callable

from headwise.language import clock, say
from headwise.tasks.events import Events

QUIET_SECONDS = 2.0


def watch_vocabulary(watcher: Events) -> Callable[[float], None]:
    """What `learn_tokenizer` is to call with the share that is done."""
    began: float | None = None

    def tell(share: float) -> None:
        nonlocal began
        began = began or time.monotonic()
        seconds = time.monotonic() - began
        if seconds >= QUIET_SECONDS:
            left = clock(seconds * (1 - share) / share if share > 0 else None)
            label = say(f"learning the vocabulary, left {left}; percent", f"正在学习词表，剩余 {left}；百分比")
            watcher.count(label, min(round(100 * share), 99), 100)

    return tell
