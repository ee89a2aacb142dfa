"""Hostile files, made on the spot: each generator writes one into a directory and returns its path.

Nothing here is dangerous to keep: what would run code only makes a directory called `exploded`, and
what is huge is huge only for a reader that believes it.
"""
