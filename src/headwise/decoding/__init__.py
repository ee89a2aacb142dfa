"""Decoding: from a model's next-token probabilities to sentences. Start with `choices.py`."""
