"""Writes seconds and bytes as people read them: 4 min, 77 MiB."""

from headwise.language import say


def clock_of(seconds: float) -> str:
    """3 s, 4 min, 5.1 h or 6.2 days."""
    for unit, size in (
        (say("days", "天"), 86400.0),
        (say("h", "小时"), 3600.0),
        (say("min", "分"), 60.0),
    ):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} {say('s', '秒')}"


def span_of(seconds: float) -> str:
    """Milliseconds of what is short, else a clock that people read: 0.42 ms, 31.7 ms, 60.8 s, 2.1
    min.
    """
    if seconds >= 1:
        return clock_of(seconds)
    return f"{1e3 * seconds:.2f} ms" if seconds < 0.01 else f"{1e3 * seconds:.1f} ms"


def mebibytes(count: float) -> str:
    """77 MiB; from 10 GiB on 128.8 GiB."""
    return f"{count / (1 << 20):,.0f} MiB" if count < 10 << 30 else f"{count / (1 << 30):,.1f} GiB"
