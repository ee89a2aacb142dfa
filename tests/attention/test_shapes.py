"""What does not fit together is said in one sentence, not by a product of matrices."""

import pytest
import torch

from headwise.attention.full import FullAttention
from headwise.attention.multi_head import MultiHeadAttention
from headwise.attention.shapes import check_heads, check_shapes
from headwise.attention.window import WindowAttention
from headwise.errors import UsageError
from headwise.language import use_language

Q = torch.zeros(2, 3, 5, 7)


@pytest.mark.parametrize(
    ("k", "v", "problem"),
    [
        ((2, 3, 11, 8), (2, 3, 11, 7), "queries and keys need the same width"),
        ((2, 3, 11, 7), (2, 3, 12, 7), "every key needs one value"),
        ((2, 4, 11, 7), (2, 4, 11, 7), "all three need the same batch and the same number of heads"),
        ((3, 11, 7), (3, 11, 7), "all three need four axes"),
    ],
)
def test_what_does_not_fit_is_refused(k: tuple[int, ...], v: tuple[int, ...], problem: str) -> None:
    with pytest.raises(UsageError, match=f"of shapes .* do not fit: {problem}; give ") as caught:
        check_shapes(Q, torch.zeros(k), torch.zeros(v))
    assert str(list(k)) in str(caught.value)
    use_language("zh")
    assert "不相配" in str(caught.value)


def test_what_fits_is_let_through() -> None:
    check_shapes(Q, torch.zeros(2, 3, 11, 7), torch.zeros(2, 3, 11, 13))
    check_shapes(Q, torch.zeros(2, 3, 11, 8), torch.zeros(2, 3, 11, 7), same_width=False)


@pytest.mark.parametrize("num_heads", [0, 3, -2])
def test_heads_divide_a_width(num_heads: int) -> None:
    check_heads(10, 5)
    with pytest.raises(UsageError, match=f"{num_heads} heads do not divide a width of 10"):
        MultiHeadAttention(10, num_heads, FullAttention())


@pytest.mark.parametrize(("left", "right"), [(0, 0), (-1, 2), (3, -1)])
def test_a_window_sees_a_neighbour(left: int, right: int) -> None:
    with pytest.raises(UsageError, match=f"a window of {left} tokens to the left and {right} to the right"):
        WindowAttention(left, right)
