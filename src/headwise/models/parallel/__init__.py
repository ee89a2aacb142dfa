"""Translators that write all tokens at once: their weights."""
