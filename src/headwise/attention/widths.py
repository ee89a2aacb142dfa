"""The width of queries a kernel was built for: kernels that own weights compare vectors of one size only.

Tested in tests/attention/test_entrance.py: every kernel of the table of laws, given heads of another width.
"""

from headwise.attention.hashed import HashedAttention
from headwise.attention.local_position import PredictiveWindow
from headwise.attention.multi_head import Kernel
from headwise.attention.performer import PerformerAttention
from headwise.attention.scored import ScoredAttention
from headwise.attention.scores import AdditiveScore, BilinearScore, ConcatScore, LocationScore


def built_width(kernel: Kernel) -> int | None:
    """None: any."""
    match kernel:
        case HashedAttention():
            return kernel.rotations.shape[1]
        case PerformerAttention():
            return kernel.rows.shape[1]
        case ScoredAttention(window=PredictiveWindow() as window):
            return window.place_hidden.shape[1]
        case ScoredAttention(score=AdditiveScore() as score):
            return score.query_map.shape[1]
        case ScoredAttention(score=ConcatScore() as score):
            return score.query_dim
        case ScoredAttention(score=BilinearScore() as score):
            return score.between.shape[0]
        case ScoredAttention(score=LocationScore() as score):
            return score.place_map.shape[1]
        case _:
            return None
