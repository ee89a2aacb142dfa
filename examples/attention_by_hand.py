"""Attention by hand: three words, the query of the last one finds the word it means."""

import torch

from headwise.attention import FullAttention, attention_weights
from headwise.attention.masks import causal

words = ["animal", "street", "it"]
# [batch, head, time, head_dim]
keys = torch.tensor([[4.0, 0.0], [0.0, 4.0], [1.0, 1.0]])[None, None]
# "it" asks for the first kind of thing.
queries = torch.tensor([[0.0, 0.0], [0.0, 0.0], [2.0, 0.0]])[None, None]
values = torch.tensor([[1.0], [2.0], [3.0]])[None, None]
weights = attention_weights(queries, keys, causal())  # a word sees itself and what stands before it
for word, row in zip(words, weights[0, 0], strict=True):
    print(
        f"{word:>8} attends to",
        "  ".join(f"{other} {share:.2f}" for other, share in zip(words, row, strict=True)),
    )
print("weighted sums:", FullAttention()(queries, keys, values, causal()).flatten().tolist())
