"""Evaluation: scores of translations, labels and word vectors, significance tests, word
alignment.
"""
