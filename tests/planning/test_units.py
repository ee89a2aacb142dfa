import pytest

from headwise.language import use_language
from headwise.planning.units import clock_of, mebibytes, span_of


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.00042, "0.42 ms"),
        (0.0317, "31.7 ms"),
        (60.8197, "60.8 s"),
        (126, "2.1 min"),
        (0.0, "0.00 ms"),
    ],
)
def test_long_times_are_no_thousands_of_milliseconds(seconds: float, text: str) -> None:
    assert span_of(seconds) == text


def test_units_are_of_both_languages() -> None:
    assert clock_of(70 * 86400) == "70.0 days"
    assert mebibytes(3 << 20) == "3 MiB"
    use_language("zh")
    assert span_of(60.8) == "60.8 秒"
    use_language(None)
