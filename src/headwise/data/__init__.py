"""From corpora to batches: reading, filtering, stores of token ids, order, packing, batching."""
