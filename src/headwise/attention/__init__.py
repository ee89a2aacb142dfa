"""Computes attention: masks, scores, kernels (the ways to compute it), multi-head attention, the
cache of a decoder, and taps, which collect the weights while a model runs.
"""

from headwise.attention.cache import KeyValueCache
from headwise.attention.checked_attention import attend
from headwise.attention.kernels.full import FullAttention, attention_weights
from headwise.attention.kernels.fused import FusedAttention
from headwise.attention.masks import Mask
from headwise.attention.multi_head import MultiHeadAttention
from headwise.attention.taps import tap_attention

__all__ = [
    "FullAttention",
    "FusedAttention",
    "KeyValueCache",
    "Mask",
    "MultiHeadAttention",
    "attend",
    "attention_weights",
    "tap_attention",
]
