"""Reads text of one language, and makes training data of it: batches for language models, masked
tokens, windows of words.
"""
