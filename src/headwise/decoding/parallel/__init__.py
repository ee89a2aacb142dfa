"""Searches over the outputs of translators that write all tokens at once."""
