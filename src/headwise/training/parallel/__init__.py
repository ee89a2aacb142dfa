"""Losses of translators that write all tokens at once."""
