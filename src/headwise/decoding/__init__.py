"""Decoding: from a model of next-token probabilities to sentences. Start with `choices.py`."""
