"""Trains and uses language models: n-grams, neural n-grams, recurrent networks and Transformers."""
