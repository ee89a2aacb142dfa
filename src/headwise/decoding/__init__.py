"""Decoding: turning a model that gives next-token probabilities into one that gives sentences. Start with `choices.py`."""
