"""Code for GPUs: kernels written in Triton, and the recording of steps as CUDA graphs.

For each kernel there is a function in plain torch that computes the same. It is the definition, the
fallback, and what the kernel is tested against:

    cache_slot_attention.py   attention/cache_slot_attention.py   a step of attention over the cache
    projection.py             blocks/inference/projection.py      product with norm and residual
    token_ranking.py          decoding/search/candidates.py       the best tokens of every row
    token_drawing.py          decoding/search/row_draws.py        a token drawn for every row
    beam_selection.py         decoding/search/selection.py        a selection step of beam search
    graph_recursion.py        training/parallel/graph_loss.py     sums and best paths of graphs
    ctc_recursion.py          training/parallel/ctc.py            sums and best alignments of CTC
    softmax_rows.py           training/parallel/token_scores.py   normalizers, and their gradients

Triton comes with CUDA builds of torch; where it is missing, or the tensors lie on a CPU, the torch
functions are used.
"""

from functools import cache
from importlib.util import find_spec

from torch import Tensor


@cache
def has_triton() -> bool:
    return find_spec("triton") is not None


def runs_kernels(tensor: Tensor) -> bool:
    """Whether the kernels of this folder can work on this tensor."""
    return tensor.is_cuda and has_triton()
