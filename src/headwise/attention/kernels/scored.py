"""Full attention with an exchangeable score, normalizer and window over the source.

    scores  = score(q, k)  (+ bias)                     scores/
    weights = normalizer(scores, visible keys)          normalizers.py; a window (local_position.py)
                                                        may narrow them
    output  = weights v

With the scaled dot product, softmax and no window it equals `FullAttention`, and such a recipe is
built with that. It is quadratic in time and memory, whatever the window: it is for learning and
comparing, not for long rows (attention.kind=window is).

Tested against: the table of laws; attention/kernels/full.py where it must be the same.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from headwise.attention.biases import Bias, VectorBias, dense_bias
from headwise.attention.local_position import (
    LocalWindow,
    PlacedTable,
    Places,
    PredictiveWindow,
    find_places,
)
from headwise.attention.masks import Mask
from headwise.attention.normalizers import Normalizer, Softmax
from headwise.attention.scores.comparison import KeyMapping, LearnedScore, PositionScore, Score
from headwise.attention.shapes import check_shapes, empty_output, empty_weights, is_empty

MAX_SCORE = 1e30
"""Scores are bounded so that a difference of two stays in float32."""
MAX_WIDE_SCORE = 1e150
"""The same in float64, where the square of a difference must be finite as well."""


class ScoredAttention(nn.Module):
    """A kernel made of exchangeable parts; it owns the weights of those that are learned."""

    def __init__(
        self,
        score: Score,
        normalizer: Normalizer | None = None,
        *,
        window: LocalWindow | None = None,
        dropout_rate: float = 0.0,
    ) -> None:
        super().__init__()
        self.score = score
        self.normalizer = Softmax() if normalizer is None else normalizer
        self.window = window
        self.dropout_rate = dropout_rate

    @property
    def max_length(self) -> int | None:
        """The longest row it can read; None: any."""
        return self.score.max_length if isinstance(self.score, PositionScore) else None

    @property
    def head_dim(self) -> int | None:
        """The width of queries for which its learned parts were built; None: any."""
        if isinstance(self.window, PredictiveWindow):
            return self.window.place_hidden.shape[1]
        return self.score.query_dim if isinstance(self.score, LearnedScore) else None

    @property
    def _asks_for_places(self) -> bool:
        return self.window is not None or isinstance(self.score, PositionScore)

    def prepare(self, mask: Mask, num_queries: int, num_keys: int, device: torch.device) -> Mask:
        if mask.is_empty(num_queries, num_keys):
            return mask
        resolved = mask.resolve(num_queries, num_keys, device)
        if not self._asks_for_places or resolved is mask:
            return resolved
        table = resolved.dense(num_queries, num_keys, device)
        assert table is not None
        places = find_places(mask, num_queries, num_keys, device)
        return Mask((PlacedTable(table, places),), blind_count=mask.blind_count)

    def map_keys(
        self, k: Float[Tensor, "batch head key key_dim"]
    ) -> Float[Tensor, "batch head key mapped"]:
        """The part of the score that depends on the keys only, computed once if queries come one
        after the other."""
        return self.score.map_keys(k) if isinstance(self.score, KeyMapping) else k

    def stand_at(self, position: Int[Tensor, "#batch query"]) -> "StandingAttention":
        """The same kernel with the positions of its queries, which a single decoding step does not
        contain."""
        return StandingAttention(self, position)

    def forward(
        self,
        q: Float[Tensor, "batch head query head_dim"],
        k: Float[Tensor, "batch head key head_dim"],
        v: Float[Tensor, "batch head key value_dim"],
        mask: Mask,
        *,
        bias: Bias | None = None,
        training: bool = False,
        position: Int[Tensor, "#batch query"] | None = None,
    ) -> Float[Tensor, "batch head query value_dim"]:
        check_shapes(q, k, v, same_width=False)
        if is_empty(q, k):
            return empty_output(q, k, v)
        weights = self.weights(q, k, mask, bias=bias, training=training, position=position)
        if training and self.dropout_rate > 0:
            weights = F.dropout(weights, self.dropout_rate)
        output = weights @ v
        return output + bias.mix(weights) if isinstance(bias, VectorBias) else output

    def weights(
        self,
        q: Float[Tensor, "batch head query head_dim"],
        k: Float[Tensor, "batch head key key_dim"],
        mask: Mask,
        *,
        bias: Bias | None = None,
        training: bool = False,
        position: Int[Tensor, "#batch query"] | None = None,
        mapped: bool = False,
    ) -> Float[Tensor, "batch head query key"]:
        """`mapped`: k comes from `map_keys`."""
        if is_empty(q, k):
            return empty_weights(q, k)
        num_queries, num_keys = q.shape[-2], k.shape[-2]
        allowed = mask.dense(num_queries, num_keys, q.device)
        places = (
            find_places(mask, num_queries, num_keys, q.device) if self._asks_for_places else None
        )
        if isinstance(self.score, PositionScore):
            assert places is not None
            scores = self.score(q, k, key_place=places.key)
        elif mapped and isinstance(self.score, KeyMapping):
            scores = self.score.compare(q, k)
        else:
            scores = self.score(q, k)
        limit = MAX_WIDE_SCORE if scores.dtype == torch.float64 else MAX_SCORE
        scores = scores.clamp(-limit, limit)
        if bias is not None:
            bias = dense_bias(bias, num_queries, num_keys)
            scores = scores + bias
            visible = bias != -torch.inf
            allowed = visible if allowed is None else allowed & visible
        factor = None
        if self.window is not None:
            assert places is not None
            places = places if position is None else Places(position, places.key)
            allowed, factor = self.window(q, allowed, places)
        weights = self.normalizer(scores, allowed, training=training)
        return (weights if factor is None else weights * factor).to(q.dtype)


@dataclass(frozen=True, eq=False)
class StandingAttention:
    """A `ScoredAttention` whose queries are at `position`."""

    kernel: ScoredAttention
    position: Int[Tensor, "#batch query"]

    def prepare(self, mask: Mask, num_queries: int, num_keys: int, device: torch.device) -> Mask:
        return self.kernel.prepare(mask, num_queries, num_keys, device)

    def __call__(
        self,
        q: Float[Tensor, "batch head query head_dim"],
        k: Float[Tensor, "batch head key head_dim"],
        v: Float[Tensor, "batch head key value_dim"],
        mask: Mask,
        *,
        bias: Bias | None = None,
        training: bool = False,
    ) -> Float[Tensor, "batch head query value_dim"]:
        return self.kernel(q, k, v, mask, bias=bias, training=training, position=self.position)

    def weights(
        self,
        q: Float[Tensor, "batch head query head_dim"],
        k: Float[Tensor, "batch head key head_dim"],
        mask: Mask,
        *,
        bias: Bias | None = None,
    ) -> Float[Tensor, "batch head query key"]:
        return self.kernel.weights(q, k, mask, bias=bias, position=self.position)
