"""Losses of non-autoregressive models."""
