"""Comparisons of recipes, of attention kernels by length, and of language models by history."""
