"""Reads text with labels: a label for a text, tags for its words, or the sense of one word."""
