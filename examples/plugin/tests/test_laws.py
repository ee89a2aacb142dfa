from headwise_laplace import Laplace

from headwise.laws import check


def test_the_kernel_obeys_the_laws() -> None:
    check(Laplace.example())
