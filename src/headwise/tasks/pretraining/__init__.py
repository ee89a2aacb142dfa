"""Encoders that learn from plain text (BERT, ELMo), and what starts from them."""
