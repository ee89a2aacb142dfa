"""Corpora to batches: reading, filtering, tokenised stores on disk, packing, order."""
