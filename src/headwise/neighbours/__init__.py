"""A memory of neighbours: states of a finished model with the tokens that followed them, and their
search (kNN-LM, kNN-MT).
"""
