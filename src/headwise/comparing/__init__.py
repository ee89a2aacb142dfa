"""Comparisons: recipes side by side, attention kernels by length, the lineage of language models."""
