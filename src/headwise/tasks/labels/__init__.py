"""Trains and uses classifiers of texts and taggers of words."""
