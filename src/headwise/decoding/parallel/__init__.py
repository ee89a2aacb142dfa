"""Translates with models that compute all positions of a target at once."""
