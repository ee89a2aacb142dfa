"""Adds up the residual stream x of one decoding step on a GPU, and fuses its norms into the matrix
products that read it.

A sub-layer (attention or feed-forward network) reads x by a product with its first matrix W, and
adds the result y of its last product to x. `Residual` (blocks/residual.py) defines where the norm
stands:

    norm before the sub-layer    read: norm(x) Wᵀ         add: x ← x + y
    norm after the sub-layer     read: owed(x) Wᵀ         add: x ← owed(x) + y; then owed is the
                                                          norm of this sub-layer

With the norm after the sub-layer, the norm of the last sum is not applied at once but remembered as
`owed`; the next read or add applies it. With few rows the product applies the norm itself; with
many rows the sum and its norm are one operation (blocks/inference/projection.py). The results are
those of `Residual`. models/static_step.py uses this on a GPU.

Tested through the whole decoder: step by step = at once.
"""

from jaxtyping import Float
from torch import Tensor, nn

from headwise.blocks.inference.projection import Activation, add_and_norm, fuses, project
from headwise.blocks.residual import Residual


class FusedResidual:
    def __init__(self, x: Float[Tensor, "row dim"]) -> None:
        self._x = x
        self._addend: Tensor | None = None
        self._owed: nn.Module | None = None

    def read(
        self,
        weight: Float[Tensor, "output dim"],
        bias: Float[Tensor, "output"] | None,
        *,
        norm: nn.Module | None = None,
        activation: Activation | None = None,
    ) -> Float[Tensor, "row output"]:
        """A product of the stream, after the reader's norm or the deferred one."""
        if fuses(self._x):
            return project(
                self._x,
                weight,
                bias,
                norm=self._owed if norm is None else norm,
                activation=activation,
            )
        return project(self._settle(norm), weight, bias, activation=activation)

    def add(
        self,
        y: Float[Tensor, "row hidden"],
        weight: Float[Tensor, "dim hidden"],
        bias: Float[Tensor, "dim"] | None,
        *,
        residual: Residual,
    ) -> None:
        """The end of a sub-layer: its last product, of `y`, is added to the stream as this residual
        connection defines it."""
        if fuses(self._x):
            self._x = project(y, weight, bias, residual=self._x, residual_norm=self._owed)
        else:
            self._addend = project(y, weight, bias)
        self._owed = residual.norm if residual.place == "after" else None

    def _settle(self, norm: nn.Module | None) -> Float[Tensor, "row dim"]:
        """The stream after the norm, for readers of many rows; a deferred norm is applied."""
        if norm is not None:
            self._x, seen = add_and_norm(self._x, self._addend, norm)
        elif self._owed is not None:
            _, seen = add_and_norm(self._x, self._addend, self._owed)
            self._x = seen
        else:
            seen = self._x = self._x if self._addend is None else self._x + self._addend
        self._addend, self._owed = None, None
        return seen


def norm_before(residual: Residual) -> nn.Module | None:
    """The norm that the first product inside a residual connection applies to its input."""
    return residual.norm if residual.place == "before" else None
